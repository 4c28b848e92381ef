/*
 * mpi_group.c - a group of all ranks of an MPI job: they exchange addresses by MPI_Allgather. Programs that
 * call no function of Longhaul preload the shim instead (docs/mpi.md).
 *
 *   mpicc mpi_group.c -llonghaul && mpirun -n 4 a.out
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

#include <longhaul/collective.h>

#define COUNT (1 << 20)

static int exchange(void *context, const void *mine, size_t bytes, void *all)
{
    (void)context;
    return MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD) ? -LH_EPEER
                                                                                                : 0;
}

static void check(int error)
{
    if (error) {
        fprintf(stderr, "mpi_group: %s\n", lh_last_error());
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
}

int main(int argc, char **argv)
{
    struct lh_group_attr attr;
    struct lh_group *group;
    struct lh_collective *sum;
    struct lh_collective_result result;
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    lh_group_attr_init(&attr);
    attr.rank = (uint32_t)rank;
    attr.size = (uint32_t)size;
    attr.exchange = exchange;
    attr.device =
        argc > 1 ? argv[1] : "udp:127.0.0.1"; /* between hosts: an address that the others reach */
    attr.site = getenv("LONGHAUL_SITE");
    check(lh_group_create(&attr, &group));

    float *vector = malloc(COUNT * sizeof *vector);
    for (int i = 0; vector && i < COUNT; i++)
        vector[i] = (float)rank;
    check(lh_allreduce(group, vector, vector, COUNT, LH_F32, LH_SUM, NULL, &sum));
    check(lh_collective_wait(sum, LH_TIME_NEVER, &result));
    lh_collective_free(sum);
    if (result.error)
        fprintf(stderr, "mpi_group: %s\n", result.message);
    else if (rank == 0)
        printf("%d ranks, %s: %.0f\n", size, result.schedule, (double)vector[COUNT - 1]);
    free(vector);
    lh_group_destroy(group);
    MPI_Finalize();
    return result.error != 0;
}
