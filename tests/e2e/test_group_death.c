/*
 * test_group_death.c - a process of a group is killed at any moment: each that is left has an error with its
 * rank within twice the peer timeout, keeps its input, and goes on in a smaller group. Over UDP on loopback.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/collective.h>
#include <longhaul/group.h>

#include "base/prng.h"

#define RANKS           4u
#define KILLS           8u
#define COUNT           200000u
#define BLOB_MAX        65536u
#define PEER_TIMEOUT_NS (1 * LH_NS_PER_S)

/* Why a process ended; 0: as it should. */
enum end {
    RIGHT,
    NO_GROUP,
    NO_ERROR,
    WRONG_ERROR,
    WRONG_RANK,
    LATE,
    WRONG_INPUT,
    NO_SHRINK,
    NO_SUM,
    WRONG_SUM
};

struct meeting {
    pthread_barrier_t barrier;
    uint8_t blobs[RANKS][BLOB_MAX];
    _Atomic uint64_t killed_ns;
};

struct member {
    struct meeting *meeting;
    uint32_t rank;
};

static uint64_t now_ns(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * LH_NS_PER_S + (uint64_t)at.tv_nsec;
}

static int exchange(void *context, const void *mine, size_t bytes, void *all)
{
    struct member *member = context;
    memcpy(member->meeting->blobs[member->rank], mine, bytes);
    pthread_barrier_wait(&member->meeting->barrier);
    for (uint32_t r = 0; r < RANKS; r++)
        memcpy((uint8_t *)all + r * bytes, member->meeting->blobs[r], bytes);
    pthread_barrier_wait(&member->meeting->barrier);
    return 0;
}

static int sum(struct lh_group *group, const int32_t *in, int32_t *out, struct lh_collective_result *result)
{
    struct lh_collective *op;
    int error = lh_allreduce(group, in, out, COUNT, LH_I32, LH_SUM, NULL, &op);
    if (error)
        return error;
    error = lh_collective_wait(op, LH_TIME_NEVER, result);
    lh_collective_free(op);
    return error ? error : result->error;
}

static enum end go_on(struct lh_group *group, const int32_t *in, int32_t *out)
{
    struct lh_group *smaller;
    struct lh_collective_result result = {0};
    if (lh_group_shrink(group, &smaller) != 0) {
        fprintf(stderr, "rank %u: %s\n", lh_group_rank(group), lh_last_error());
        return NO_SHRINK;
    }
    if (lh_group_size(smaller) != RANKS - 1 || sum(smaller, in, out, &result) != 0) {
        fprintf(stderr, "rank %u of %u: %s %s\n", lh_group_rank(group), lh_group_size(smaller),
                lh_last_error(), result.message);
        return NO_SUM;
    }
    for (uint32_t i = 0; i < COUNT; i++)
        if (out[i] != (int32_t)(i * (RANKS - 1)))
            return WRONG_SUM;
    lh_group_destroy(group);
    lh_group_destroy(smaller);
    return RIGHT;
}

static enum end member_run(struct member *member, uint32_t victim)
{
    struct lh_group_attr attr;
    struct lh_group *group;
    struct lh_collective_result result = {0};
    int32_t *in = malloc(COUNT * sizeof *in), *out = malloc(COUNT * sizeof *out);
    lh_group_attr_init(&attr);
    attr.rank = member->rank;
    attr.size = RANKS;
    attr.exchange = exchange;
    attr.exchange_context = member;
    attr.device = "udp:127.0.0.1";
    attr.peer_timeout_ns = PEER_TIMEOUT_NS;
    if (!in || !out || lh_group_create(&attr, &group) != 0)
        return NO_GROUP;
    for (uint32_t i = 0; i < COUNT; i++)
        in[i] = (int32_t)i;
    pthread_barrier_wait(&member->meeting->barrier); /* from now on the parent may kill */
    int error = 0;
    while (error == 0)
        error = sum(group, in, out, &result);
    uint64_t killed = member->meeting->killed_ns, noticed = now_ns();
    if (killed == 0)
        return NO_ERROR;
    if (error != -LH_EPEER)
        return WRONG_ERROR;
    if (result.error != 0 && result.failed_rank != victim)
        return WRONG_RANK;
    if (lh_group_error(group, victim) != -LH_EPEER)
        return WRONG_RANK;
    if (noticed - killed > 2 * PEER_TIMEOUT_NS)
        return LATE;
    for (uint32_t i = 0; i < COUNT; i++)
        if (in[i] != (int32_t)i)
            return WRONG_INPUT;
    return go_on(group, in, out);
}

static struct meeting *meet(void)
{
    pthread_barrierattr_t shared;
    struct meeting *meeting =
        mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(meeting != MAP_FAILED);
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&meeting->barrier, &shared, RANKS);
    return meeting;
}

static void kill_one(struct lh_prng *prng)
{
    struct meeting *meeting = meet();
    pid_t children[RANKS];
    uint32_t victim = (uint32_t)lh_prng_below(prng, RANKS);
    for (uint32_t r = 0; r < RANKS; r++) {
        struct member member = {.meeting = meeting, .rank = r};
        children[r] = fork();
        assert_true(children[r] >= 0);
        if (children[r] == 0)
            _exit((int)member_run(&member, victim));
    }
    const struct timespec moment = {.tv_nsec = 300000000 + (long)lh_prng_below(prng, 100000000)};
    nanosleep(&moment, NULL);
    meeting->killed_ns = now_ns();
    kill(children[victim], SIGKILL);
    for (uint32_t r = 0; r < RANKS; r++) {
        int status = 0;
        waitpid(children[r], &status, 0);
        if (r != victim && status != 0)
            fail_msg("rank %u, after the death of rank %u: end %d", r, victim, WEXITSTATUS(status));
    }
    munmap(meeting, sizeof *meeting);
}

static void test_death(void **state)
{
    struct lh_prng prng;
    (void)state;
    lh_prng_seed(&prng, 20);
    for (uint32_t i = 0; i < KILLS; i++)
        kill_one(&prng);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_death),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
