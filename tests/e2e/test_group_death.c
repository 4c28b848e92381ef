/*
 * test_group_death.c - processes of a group are killed one after another, each at a moment of its own: when
 * it would send its n-th packets. Each that is left has an error with the victim's rank within twice the peer
 * timeout, keeps its input, and goes on in a smaller group. Over UDP on loopback.
 *
 * usage: test_group_death [KILLS]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/collective.h>
#include <longhaul/group.h>

#include "base/prng.h"

#define RANKS           6u
#define KILLS           15u
#define COUNT           200000u /* some 30 calls that send, of each rank */
#define CALLS           300u    /* a victim's last is one of these */
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
    uint32_t victims; /* all ranks but one, or fewer */
    uint32_t victim[RANKS];
    uint64_t calls[RANKS];             /* that each lives on */
    _Atomic uint64_t killed_ns[RANKS]; /* by victim */
    _Atomic uint32_t ready[RANKS];     /* ranks that have the group in which the i-th victim dies */
    _Atomic bool failed;               /* a rank has ended as it should not */
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

/* ---- the moment -------------------------------------------------------------------------------------- */

/* Of a victim, from its turn on: calls that send packets, until the one that it dies in. */
static _Atomic int64_t calls_left;
static _Atomic uint64_t *killed_at;

static void arm(_Atomic uint64_t *killed_ns, uint64_t calls)
{
    killed_at = killed_ns;
    calls_left = (int64_t)calls + 1;
}

static void count_call(void)
{
    if (calls_left <= 0 || atomic_fetch_sub(&calls_left, 1) != 1)
        return;
    *killed_at = now_ns();
    kill(getpid(), SIGKILL);
}

/* In place of the C library's. */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    count_call();
    return syscall(SYS_sendmsg, fd, message, flags);
}

int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    count_call();
    return (int)syscall(SYS_sendmmsg, fd, messages, count, flags);
}

/* ---- a member ---------------------------------------------------------------------------------------- */

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

/* The others go on in a smaller group, which takes the place of *group. */
static enum end go_on(struct lh_group **group, const int32_t *in, int32_t *out)
{
    struct lh_group *smaller;
    struct lh_collective_result result = {0};
    uint32_t left = lh_group_size(*group) - 1;
    if (lh_group_shrink(*group, &smaller) != 0) {
        fprintf(stderr, "rank %u: %s\n", lh_group_rank(*group), lh_last_error());
        return NO_SHRINK;
    }
    if (lh_group_size(smaller) != left || sum(smaller, in, out, &result) != 0) {
        fprintf(stderr, "rank %u of %u: %s %s\n", lh_group_rank(smaller), lh_group_size(smaller),
                lh_last_error(), result.message);
        return NO_SUM;
    }
    for (uint32_t i = 0; i < COUNT; i++)
        if (out[i] != (int32_t)(i * left))
            return WRONG_SUM;
    lh_group_destroy(*group);
    *group = smaller;
    return RIGHT;
}

/* A rank has its group, or its sum, before the others have theirs: a victim that died then would take the
 * group from them, which is right and not what is tested. */
static void await_others(struct meeting *meeting, uint32_t i, uint32_t ranks)
{
    const struct timespec pause = {.tv_nsec = 100 * 1000};
    atomic_fetch_add(&meeting->ready[i], 1);
    while (meeting->ready[i] < ranks && !meeting->failed)
        nanosleep(&pause, NULL);
}

/* The i-th victim dies; at the victim this does not return. */
static enum end lose(struct member *member, uint32_t i, struct lh_group **group, const int32_t *in,
                     int32_t *out)
{
    struct meeting *meeting = member->meeting;
    struct lh_collective_result result = {0};
    uint32_t victim = meeting->victim[i];
    await_others(meeting, i, lh_group_size(*group));
    if (lh_group_rank(*group) == victim)
        arm(&meeting->killed_ns[i], meeting->calls[i]);
    int error = 0;
    while (error == 0)
        error = sum(*group, in, out, &result);
    uint64_t killed = meeting->killed_ns[i], noticed = now_ns();
    if (killed == 0)
        return NO_ERROR;
    if (error != -LH_EPEER)
        return WRONG_ERROR;
    if (result.error != 0 && result.failed_rank != victim)
        return WRONG_RANK;
    if (lh_group_error(*group, victim) != -LH_EPEER)
        return WRONG_RANK;
    if (noticed - killed > 2 * PEER_TIMEOUT_NS)
        return LATE;
    for (uint32_t k = 0; k < COUNT; k++)
        if (in[k] != (int32_t)k)
            return WRONG_INPUT;
    return go_on(group, in, out);
}

static enum end member_run(struct member *member)
{
    struct lh_group_attr attr;
    struct lh_group *group;
    enum end end = RIGHT;
    int32_t *in = malloc(COUNT * sizeof *in), *out = malloc(COUNT * sizeof *out);
    lh_group_attr_init(&attr);
    attr.rank = member->rank;
    attr.size = RANKS;
    attr.exchange = exchange;
    attr.exchange_context = member;
    attr.device = "udp:127.0.0.1";
    attr.peer_timeout_ns = PEER_TIMEOUT_NS;
    if (!in || !out || lh_group_create(&attr, &group) != 0) {
        fprintf(stderr, "rank %u: %s\n", member->rank, lh_last_error());
        return NO_GROUP;
    }
    for (uint32_t i = 0; i < COUNT; i++)
        in[i] = (int32_t)i;
    for (uint32_t i = 0; i < member->meeting->victims && end == RIGHT; i++)
        end = lose(member, i, &group, in, out);
    return end;
}

/* ---- groups ------------------------------------------------------------------------------------------ */

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

/* Whom, as ranks of the group at that time, and when. */
static void draw(struct meeting *meeting, struct lh_prng *prng, uint32_t kills)
{
    meeting->victims = kills < RANKS - 1 ? kills : RANKS - 1;
    for (uint32_t i = 0; i < meeting->victims; i++) {
        meeting->victim[i] = (uint32_t)lh_prng_below(prng, RANKS - i);
        meeting->calls[i] = lh_prng_below(prng, CALLS);
    }
}

static void run_group(struct meeting *meeting)
{
    pid_t children[RANKS];
    uint32_t killed = 0;
    for (uint32_t r = 0; r < RANKS; r++) {
        struct member member = {.meeting = meeting, .rank = r};
        children[r] = fork();
        assert_true(children[r] >= 0);
        if (children[r] == 0) {
            enum end end = member_run(&member);
            if (end != RIGHT)
                meeting->failed = true;
            _exit((int)end);
        }
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        int status = 0;
        waitpid(children[r], &status, 0);
        killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        if (WIFEXITED(status) && WEXITSTATUS(status) != RIGHT)
            fail_msg("rank %u: end %d", r, WEXITSTATUS(status));
    }
    assert_int_equal(killed, meeting->victims);
}

static uint32_t kills = KILLS;

static void test_death(void **state)
{
    struct lh_prng prng;
    (void)state;
    lh_prng_seed(&prng, 20);
    for (uint32_t i = 0; i < kills; i += RANKS - 1) {
        struct meeting *meeting = meet();
        draw(meeting, &prng, kills - i);
        run_group(meeting);
        munmap(meeting, sizeof *meeting);
    }
}

int main(int argc, char **argv)
{
    /* A rank that gets no processor for PEER_TIMEOUT_NS, since other tests have them all, counts as dead.
     * Where it is not allowed the test goes on as it is. */
    setpriority(PRIO_PROCESS, 0, -10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_death),
    };
    if (argc > 1)
        kills = (uint32_t)strtoul(argv[1], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
