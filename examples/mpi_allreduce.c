/*
 * mpi_allreduce.c - a program as any other of MPI: sums of vectors. mpi_allreduce.sh runs it over Longhaul.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, size, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int bytes = 1 << 10; bytes <= 4 << 20; bytes *= 16) {
        int count = bytes / (int)sizeof(float);
        float *vector = malloc((size_t)bytes);
        double time = MPI_Wtime();
        for (int i = 0; i < count; i++)
            vector[i] = (float)rank;
        MPI_Allreduce(MPI_IN_PLACE, vector, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        time = MPI_Wtime() - time;
        for (int i = 0; i < count; i++)
            wrong += vector[i] != (float)(size * (size - 1) / 2);
        if (rank == 0)
            printf("%8d KiB  %7.1f ms\n", bytes >> 10, 1e3 * time);
        free(vector);
    }
    MPI_Finalize();
    return wrong != 0;
}
