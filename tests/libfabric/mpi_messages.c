/*
 * mpi_messages.c - an MPI program that knows nothing of Longhaul: sizes, orders, wildcards, probes, receives
 * that are canceled, collectives; each byte is checked. Rank 0 prints "RANKS ranks: ok".
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

static void check(int condition, const char *text)
{
    if (condition)
        return;
    fprintf(stderr, "rank %d: %s\n", rank, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}
#define CHECK(condition) check(condition, #condition)

static void fill(unsigned char *bytes, size_t count, int seed)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)(i * 7 + (i >> 9) + (size_t)seed * 13);
}

static int is_filled(const unsigned char *bytes, size_t count, int seed)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != (unsigned char)(i * 7 + (i >> 9) + (size_t)seed * 13))
            return 0;
    return 1;
}

/* Around a ring, to itself where there is one rank. */
static void sizes(void)
{
    const int wanted[] = {0, 1, 64, 4055, 4056, 4057, 65536, 1 << 20, 16 << 20};
    unsigned char *out = malloc(16 << 20), *in = malloc(16 << 20);
    int before = (rank + ranks - 1) % ranks, after = (rank + 1) % ranks;
    CHECK(out && in);
    for (int i = 0; i < (int)(sizeof wanted / sizeof *wanted); i++) {
        MPI_Request requests[2];
        fill(out, (size_t)wanted[i], rank + i);
        memset(in, 0, (size_t)wanted[i]);
        if (i % 2)
            MPI_Irecv(in, wanted[i], MPI_BYTE, before, i, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, wanted[i], MPI_BYTE, after, i, MPI_COMM_WORLD, &requests[1]);
        if (i % 2 == 0) /* it may come before its receive */
            MPI_Irecv(in, wanted[i], MPI_BYTE, before, i, MPI_COMM_WORLD, &requests[0]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(is_filled(in, (size_t)wanted[i], before + i));
    }
    free(out);
    free(in);
}

static void wildcards_and_probes(void)
{
    enum { MESSAGES = 100 };
    MPI_Status status;
    MPI_Message message;
    MPI_Request request;
    int next[64] = {0}, count, flag = 0;
    unsigned char bytes[6000];
    if (rank > 0) {
        for (int i = 0; i < MESSAGES; i++) {
            int length = i % 3 ? 16 : 6000;
            fill(bytes, (size_t)length, i);
            MPI_Send(bytes, length, MPI_BYTE, 0, i, MPI_COMM_WORLD);
        }
        MPI_Send(bytes, 8, MPI_BYTE, 0, 1000, MPI_COMM_WORLD);
        MPI_Ssend(bytes, 8, MPI_BYTE, 0, 1001, MPI_COMM_WORLD);
        return;
    }
    for (int i = 0; i < MESSAGES * (ranks - 1); i++) {
        MPI_Probe(MPI_ANY_SOURCE, i / (ranks - 1), MPI_COMM_WORLD, &status);
        int source = status.MPI_SOURCE;
        MPI_Mprobe(source, status.MPI_TAG, MPI_COMM_WORLD, &message, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK(status.MPI_TAG == next[source]++ && count == (status.MPI_TAG % 3 ? 16 : 6000));
        MPI_Mrecv(bytes, 6000, MPI_BYTE, &message, &status);
        CHECK(is_filled(bytes, (size_t)count, status.MPI_TAG));
    }
    for (int i = 1; i < ranks; i++) {
        MPI_Recv(bytes, 8, MPI_BYTE, MPI_ANY_SOURCE, 1001, MPI_COMM_WORLD,
                 &status); /* passes the one before */
        MPI_Recv(bytes, 8, MPI_BYTE, status.MPI_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        CHECK(status.MPI_TAG == 1000);
    }
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
    CHECK(!flag);
    MPI_Irecv(bytes, 8, MPI_BYTE, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag);
}

static void collectives(void)
{
    enum { COUNT = 100000 };
    double *in = malloc(COUNT * sizeof *in), *out = malloc(COUNT * sizeof *out);
    CHECK(in && out);
    for (int i = 0; i < 200; i++) {
        int count = i % 50 ? i : COUNT;
        for (int j = 0; j < count; j++)
            in[j] = rank + j;
        MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (int j = 0; j < count; j++)
            CHECK(out[j] == (double)ranks * (ranks - 1) / 2 + (double)ranks * j);
    }
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    sizes();
    MPI_Barrier(MPI_COMM_WORLD);
    wildcards_and_probes();
    MPI_Barrier(MPI_COMM_WORLD);
    collectives();
    if (rank == 0)
        printf("%d ranks: ok\n", ranks);
    MPI_Finalize();
    return 0;
}
