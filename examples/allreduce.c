/*
 * allreduce.c - sums a vector over ranks: four processes on this machine that meet in shared memory.
 *
 *   allreduce [RANKS [BYTES [ROUNDS]]]
 *
 * Elsewhere the exchange goes over whatever started the processes: MPI, a TCP rendezvous, a file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/collective.h>
#include <longhaul/group.h>
#include <longhaul/units.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS_MAX 16u
#define BLOB_MAX  65536u

struct meeting {
    pthread_barrier_t barrier;
    uint8_t blobs[RANKS_MAX][BLOB_MAX];
};

struct member {
    struct meeting *meeting;
    uint32_t rank;
    uint32_t ranks;
};

static int exchange(void *context, const void *mine, size_t bytes, void *all)
{
    struct member *member = context;
    if (bytes > BLOB_MAX)
        return -LH_ERANGE;
    memcpy(member->meeting->blobs[member->rank], mine, bytes);
    pthread_barrier_wait(&member->meeting->barrier);
    for (uint32_t r = 0; r < member->ranks; r++)
        memcpy((uint8_t *)all + r * bytes, member->meeting->blobs[r], bytes);
    pthread_barrier_wait(&member->meeting->barrier);
    return 0;
}

static int sum(struct lh_group *group, const float *in, float *out, size_t count, lh_time *elapsed_ns)
{
    struct lh_collective *op;
    struct lh_collective_result result;
    int error = lh_allreduce(group, in, out, count, LH_F32, LH_SUM, NULL, &op);
    if (error)
        return error;
    error = lh_collective_wait(op, LH_TIME_NEVER, &result);
    lh_collective_free(op);
    if (!error && result.error)
        fprintf(stderr, "rank %u: %s\n", lh_group_rank(group), result.message);
    *elapsed_ns = result.ended_ns - result.started_ns;
    return error ? error : result.error;
}

static int rounds(struct lh_group *group, size_t count, uint32_t number)
{
    uint32_t rank = lh_group_rank(group), ranks = lh_group_size(group);
    float *in = malloc(count * sizeof *in), *out = malloc(count * sizeof *out);
    int error = in && out ? 0 : -LH_ENOMEM;
    for (size_t i = 0; i < count && !error; i++)
        in[i] = (float)(rank + i % 1000);
    for (uint32_t n = 0; n < number && !error; n++) {
        lh_time elapsed = 0;
        size_t wrong = 0;
        error = sum(group, in, out, count, &elapsed);
        for (size_t i = 0; i < count; i++)
            wrong += out[i] != (float)(ranks * (ranks - 1) / 2 + ranks * (i % 1000));
        if (!error && rank == 0)
            printf("%zu bytes over %u ranks in %.3f ms, %zu wrong\n", count * sizeof *in, ranks,
                   (double)elapsed / 1e6, wrong);
    }
    free(in);
    free(out);
    return error;
}

static int run(struct member *member, size_t count, uint32_t number)
{
    struct lh_group_attr attr;
    struct lh_group *group;
    lh_group_attr_init(&attr);
    attr.rank = member->rank;
    attr.size = member->ranks;
    attr.exchange = exchange;
    attr.exchange_context = member;
    attr.device = "udp:127.0.0.1";
    int error = lh_group_create(&attr, &group);
    if (error) {
        fprintf(stderr, "rank %u: %s\n", member->rank, lh_last_error());
        return 1;
    }
    error = rounds(group, count, number);
    lh_group_destroy(group);
    return error ? 1 : 0;
}

static struct meeting *meet(uint32_t ranks)
{
    pthread_barrierattr_t shared;
    struct meeting *meeting =
        mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (meeting == MAP_FAILED)
        return NULL;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&meeting->barrier, &shared, ranks);
    return meeting;
}

int main(int argc, char **argv)
{
    uint32_t ranks = argc > 1 ? (uint32_t)atoi(argv[1]) : 4;
    size_t bytes = argc > 2 ? (size_t)atoll(argv[2]) : 1 << 20;
    uint32_t number = argc > 3 ? (uint32_t)atoi(argv[3]) : 3;
    if (ranks < 1 || ranks > RANKS_MAX) {
        fprintf(stderr, "allreduce: %s ranks: out of range (1 to %u)\n", argv[1], RANKS_MAX);
        return 2;
    }
    struct member member = {.meeting = meet(ranks), .ranks = ranks};
    if (!member.meeting) {
        perror("allreduce: shared memory");
        return 1;
    }
    for (uint32_t r = 1; r < ranks && member.rank == 0; r++)
        if (fork() == 0)
            member.rank = r;
    int status = run(&member, bytes / sizeof(float), number), other;
    while (member.rank == 0 && wait(&other) > 0)
        status = status || other;
    return status;
}
