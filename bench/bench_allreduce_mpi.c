/*
 * bench_allreduce_mpi.c - MPI_Allreduce of floats, measured as 'longhaul collective' does: a barrier before
 * each operation, the mean of the ranks' times; mean, p50 and p99 as JSON at rank 0. Started by mpirun.
 *
 * usage: bench_allreduce_mpi BYTES ITERATIONS WARMUP
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 4)
        MPI_Abort(MPI_COMM_WORLD, 2);
    int count = atoi(argv[1]) / (int)sizeof(float), iterations = atoi(argv[2]), warmup = atoi(argv[3]);
    float *in = calloc((size_t)count, sizeof *in), *out = calloc((size_t)count, sizeof *out);
    double *times = calloc((size_t)iterations, sizeof *times),
           *sums = calloc((size_t)iterations, sizeof *sums);
    if (!in || !out || !times || !sums)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < count; i++)
        in[i] = (float)rank + 1;
    for (int i = -warmup; i < iterations; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        if (i >= 0)
            times[i] = MPI_Wtime() - start;
    }
    MPI_Allreduce(times, sums, iterations, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    int wrong = 0;
    double mean = 0;
    for (int i = 0; i < count; i++)
        wrong += out[i] != (float)(ranks * (ranks + 1) / 2);
    for (int i = 0; i < iterations; i++)
        mean += (sums[i] /= ranks) / iterations;
    qsort(sums, (size_t)iterations, sizeof *sums, by_size);
    if (rank == 0)
        printf("{\"time_mean_s\": %.9f, \"time_p50_s\": %.9f, \"time_p99_s\": %.9f, \"wrong\": %d}\n", mean,
               sums[(iterations - 1) / 2], sums[(iterations * 99 + 99) / 100 - 1], wrong);
    MPI_Finalize();
    return 0;
}
