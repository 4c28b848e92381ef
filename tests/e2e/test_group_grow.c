/*
 * test_group_grow.c - groups that grow, over UDP on loopback: threads with and without a key, whose
 * connections and secrets are compared; newcomers with another key; an exchange that fails at one rank; and
 * processes of which one is killed and comes back.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <fcntl.h>
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
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/collective.h>
#include <longhaul/group.h>

#include "fabric/udp/udp_state.h"
#include "group/group.h"
#include "message/connection_state.h"
#include "sdr/qp.h"
#include "support/rank_threads.h"
#include "support/sim_engines.h"

#define THREADS  4u
#define COUNT    50000u
#define LIMIT_NS (60 * LH_NS_PER_S)
#define BLOB_MAX (1u << 16)

static char folder[] = "/tmp/longhaul-grow-XXXXXX";
static char files[2][64];

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    for (int i = 0; i < 2; i++) {
        snprintf(files[i], sizeof files[i], "%s/key%d", folder, i);
        int fd = open(files[i], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 || dprintf(fd, "%063d%d\n", 0, i) < 0)
            return -1;
        close(fd);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(files[0]);
    unlink(files[1]);
    return rmdir(folder);
}

/* ---- an exchange ------------------------------------------------------------------------------------- */

/* Of so many ranks, threads or processes. */
struct meeting {
    pthread_barrier_t barrier;
    uint8_t blobs[THREADS][BLOB_MAX];
};

static void meeting_init(struct meeting *meeting, uint32_t size, int shared)
{
    pthread_barrierattr_t attr;
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, shared);
    assert_int_equal(pthread_barrier_init(&meeting->barrier, &attr, size), 0);
    pthread_barrierattr_destroy(&attr);
}

/* An operation of two ranks that add 1 each; 1 begins it in the midst of an exchange. */
struct pending {
    struct lh_group *group; /* NULL: it has begun, or is another's to begin */
    struct lh_collective *op;
    int32_t in[COUNT], out[COUNT];
};

static void begin_pending(struct pending *pending)
{
    for (uint32_t i = 0; i < COUNT; i++)
        pending->in[i] = 1;
    sim_engines_must(
        lh_allreduce(pending->group, pending->in, pending->out, COUNT, LH_I32, LH_SUM, NULL, &pending->op),
        "lh_allreduce");
    pending->group = NULL;
}

struct visitor {
    struct meeting *meeting;
    uint32_t rank, size;
    uint32_t calls, fails_at; /* the first is 1; 0: none does */
    struct pending *pending;  /* begins in the second; NULL: none */
};

static int exchange(void *context, const void *mine, size_t bytes, void *all)
{
    struct visitor *visitor = context;
    assert_true(bytes <= BLOB_MAX);
    memcpy(visitor->meeting->blobs[visitor->rank], mine, bytes);
    pthread_barrier_wait(&visitor->meeting->barrier);
    for (uint32_t r = 0; r < visitor->size; r++)
        memcpy((uint8_t *)all + r * bytes, visitor->meeting->blobs[r], bytes);
    pthread_barrier_wait(&visitor->meeting->barrier);
    if (visitor->calls == 1 && visitor->pending && visitor->pending->group)
        begin_pending(visitor->pending);
    return ++visitor->calls == visitor->fails_at ? -LH_ECANCELED : 0;
}

/* ---- threads ----------------------------------------------------------------------------------------- */

static struct meeting meetings[16];
static uint8_t secrets[64][SEAL_SECRET_BYTES];
static uint32_t secret_count;

struct wish {
    uint32_t meeting, rank, size;
    const char *key;
    uint32_t fails_at;
    lh_time timeout_ns;
    struct pending *pending;
};

static int grow(struct lh_group *old, const struct wish *wish, struct lh_group **grown)
{
    struct visitor visitor = {.meeting = &meetings[wish->meeting],
                              .rank = wish->rank,
                              .size = wish->size,
                              .fails_at = wish->fails_at,
                              .pending = wish->pending};
    struct lh_group_attr attr;
    struct lh_attr connection;
    struct lh_security security;
    lh_group_attr_init(&attr);
    lh_attr_init(&connection);
    lh_security_init(&security);
    security.key_file = wish->key;
    connection.security = wish->key ? &security : NULL;
    attr.attr = &connection;
    attr.rank = wish->rank;
    attr.size = wish->size;
    attr.device = old ? NULL : "udp:127.0.0.1";
    attr.exchange = exchange;
    attr.exchange_context = &visitor;
    attr.timeout_ns = wish->timeout_ns;
    attr.thread = true;
    return lh_group_grow(old, &attr, grown);
}

/* Takes the place of *group. */
static void must_grow(struct lh_group **group, const struct wish *wish)
{
    struct lh_group *old = *group;
    sim_engines_must(grow(old, wish, group), "lh_group_grow");
    sim_engines_must(lh_group_destroy(old), "lh_group_destroy");
}

/* Of ranks that add 1 each. Returns its error. */
static int sum(struct lh_group *group)
{
    struct lh_collective *op;
    struct lh_collective_result result;
    int32_t *in = malloc(COUNT * sizeof *in), *out = malloc(COUNT * sizeof *out);
    assert_true(in && out);
    for (uint32_t i = 0; i < COUNT; i++)
        in[i] = 1;
    sim_engines_must(lh_allreduce(group, in, out, COUNT, LH_I32, LH_SUM, NULL, &op), "lh_allreduce");
    sim_engines_must(lh_collective_wait(op, LIMIT_NS, &result), "lh_collective_wait");
    lh_collective_free(op);
    for (uint32_t i = 0; i < COUNT && !result.error; i++)
        if (out[i] != (int32_t)lh_group_size(group))
            fail_msg("element %u is %d", i, out[i]);
    free(in);
    free(out);
    return result.error;
}

static struct lh_connection *bulk(const struct lh_group *group, uint32_t rank)
{
    return member_link(&group->members, rank)->lanes[LANE_BULK].connection;
}

static const uint8_t *secret_of(const struct lh_group *group, uint32_t rank)
{
    return udp_endpoint_of(bulk(group, rank)->qp->endpoint)->keys->tx_secret;
}

/* One thread at a time: rank 0 of a group of all others. */
static void add_secrets(const struct lh_group *group, const char *key)
{
    for (uint32_t r = 1; r < lh_group_size(group) && key; r++)
        memcpy(secrets[secret_count++], secret_of(group, r), SEAL_SECRET_BYTES);
}

/* 0 and 1 meet; 2 joins; 1 leaves, and 3 comes in its place; 1 comes back. */
static void live(const struct rank_thread *thread, const char *key)
{
    struct lh_group *group = NULL;
    uint32_t host = thread->rank;
    if (host < 2)
        must_grow(&group, &(struct wish){.meeting = 0, .rank = host, .size = 2, .key = key});
    struct lh_connection *first = host == 0 ? bulk(group, 1) : NULL;
    if (host == 0)
        add_secrets(group, key);
    if (host < 3)
        must_grow(&group, &(struct wish){.meeting = 1, .rank = host, .size = 3, .key = key});
    if (host < 3)
        assert_int_equal(sum(group), 0);
    if (host < 3)
        pthread_barrier_wait(&meetings[1].barrier); /* the others leave 1 out: nothing is under way to it */
    if (host == 0)
        assert_ptr_equal(bulk(group, 1), first);
    struct lh_connection *second = host == 0 ? bulk(group, 2) : NULL;
    if (host == 0 && key)
        assert_memory_equal(secret_of(group, 1), secrets[0], SEAL_SECRET_BYTES);
    if (host == 0)
        add_secrets(group, key);
    if (host == 1)
        sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
    if (host == 1)
        group = NULL;
    if (host != 1)
        must_grow(&group, &(struct wish){.meeting = 2, .rank = host - (host > 0), .size = 3, .key = key});
    if (host != 1)
        assert_int_equal(sum(group), 0);
    if (host == 0)
        assert_ptr_equal(bulk(group, 1), second);
    must_grow(&group, &(struct wish){.meeting = 3, .rank = host, .size = 4, .key = key});
    assert_int_equal(sum(group), 0);
    if (host == 0)
        add_secrets(group, key);
    sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
}

static void live_clear(struct rank_thread *thread)
{
    live(thread, NULL);
}

static void live_sealed(struct rank_thread *thread)
{
    live(thread, files[0]);
}

static void run_lives(void (*run)(struct rank_thread *thread))
{
    static const uint32_t sizes[] = {2, 3, 3, 4};
    for (uint32_t i = 0; i < 4; i++)
        meeting_init(&meetings[i], sizes[i], PTHREAD_PROCESS_PRIVATE);
    rank_threads_run(THREADS, run);
    for (uint32_t i = 0; i < 4; i++)
        pthread_barrier_destroy(&meetings[i].barrier);
}

static void test_lives(void **state)
{
    (void)state;
    run_lives(live_clear);
}

/* Of rank 0, in order: with 1; with 1 and 2; with 1 again, 2 and 3. Those that are kept are the same, and no
 * other is used twice. */
static void test_sealed_lives(void **state)
{
    static const uint32_t same[] = {0, 0, 2, 3, 2, 5};
    (void)state;
    secret_count = 0;
    run_lives(live_sealed);
    assert_int_equal(secret_count, 6);
    for (uint32_t i = 0; i < 6; i++)
        for (uint32_t other = 0; other < i; other++) {
            bool equal = memcmp(secrets[i], secrets[other], SEAL_SECRET_BYTES) == 0;
            assert_int_equal(equal, same[i] == same[other]);
        }
}

/* ---- the old group goes on --------------------------------------------------------------------------- */

/* 0 and 1 grow while an operation of theirs runs, which 0 began before, and 1 in between; it ends after the
 * new group has made another. One destroys the new group first, the other the old one. */
static void grow_meanwhile(struct rank_thread *thread)
{
    static struct pending all[2];
    struct lh_group *old = NULL, *grown;
    struct lh_collective_result result;
    uint32_t host = thread->rank;
    struct pending *pending = host < 2 ? &all[host] : NULL;
    if (host < 2) {
        must_grow(&old, &(struct wish){.meeting = 0, .rank = host, .size = 2});
        pending->group = old;
    }
    if (host == 0)
        begin_pending(pending);
    sim_engines_must(
        grow(old, &(struct wish){.meeting = 1, .rank = host, .size = 3, .pending = pending}, &grown),
        "lh_group_grow");
    assert_int_equal(sum(grown), 0);
    if (host < 2) {
        sim_engines_must(lh_collective_wait(pending->op, LIMIT_NS, &result), "lh_collective_wait");
        assert_int_equal(result.error, 0);
        for (uint32_t i = 0; i < COUNT; i++)
            assert_int_equal(pending->out[i], 2);
        lh_collective_free(pending->op);
        assert_int_equal(sum(old), 0);
    }
    sim_engines_must(lh_group_destroy(host == 0 ? grown : old), "lh_group_destroy");
    sim_engines_must(lh_group_destroy(host == 0 ? old : grown), "lh_group_destroy");
}

static void test_pending(void **state)
{
    (void)state;
    meeting_init(&meetings[0], 2, PTHREAD_PROCESS_PRIVATE);
    meeting_init(&meetings[1], 3, PTHREAD_PROCESS_PRIVATE);
    rank_threads_run(3, grow_meanwhile);
    pthread_barrier_destroy(&meetings[0].barrier);
    pthread_barrier_destroy(&meetings[1].barrier);
}

/* 1 leaves; 0 goes on alone, twice; then 1 joins again. */
static void go_on_alone(struct rank_thread *thread)
{
    struct lh_group *group = NULL;
    uint32_t host = thread->rank;
    must_grow(&group, &(struct wish){.meeting = 0, .rank = host, .size = 2, .key = files[0]});
    pthread_barrier_wait(&meetings[0].barrier); /* 0 leaves 1 out: nothing is under way to it */
    if (host == 1) {
        sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
        group = NULL;
    }
    for (uint32_t i = 0; i < 2 && host == 0; i++) {
        must_grow(&group, &(struct wish){.meeting = 1, .size = 1, .key = files[0]});
        assert_int_equal(sum(group), 0);
    }
    must_grow(&group, &(struct wish){.meeting = 0, .rank = host, .size = 2, .key = files[0]});
    assert_int_equal(sum(group), 0);
    sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
}

static void test_alone(void **state)
{
    (void)state;
    meeting_init(&meetings[0], 2, PTHREAD_PROCESS_PRIVATE);
    rank_threads_run(2, go_on_alone);
    pthread_barrier_destroy(&meetings[0].barrier);
}

/* ---- growth that fails ------------------------------------------------------------------------------- */

/* 0 and 1 are members. At each attempt something is wrong, at all; the old group works; then one succeeds,
 * with another key, which the members have for it. */
static void fail_and_grow(struct rank_thread *thread)
{
    struct lh_group *group = NULL, *grown = NULL;
    uint32_t host = thread->rank;
    if (host < 2)
        must_grow(&group, &(struct wish){.meeting = 0, .rank = host, .size = 2, .key = files[0]});
    struct wish wish = {.meeting = 1, .rank = host, .size = 3, .key = files[host == 2]};
    assert_int_equal(grow(group, &wish, &grown), -LH_EHANDSHAKE);
    assert_non_null(strstr(lh_last_error(), "another key"));
    if (host < 2)
        assert_int_equal(sum(group), 0);
    wish = (struct wish){
        .meeting = 1, .rank = host, .size = 3, .key = files[0], .fails_at = host == 1 ? 3 : 0};
    int error = grow(group, &wish, &grown); /* a newcomer may see them leave first */
    assert_true(host < 2 ? error == -LH_ECANCELED : error < 0);
    if (host < 2)
        assert_int_equal(sum(group), 0);
    wish.key = NULL; /* members of an encrypted group need one */
    if (host < 2) {
        assert_int_equal(grow(group, &wish, &grown), -LH_EINVAL);
        assert_non_null(strstr(lh_last_error(), "it is encrypted"));
    }
    assert_null(grown);
    must_grow(&group, &(struct wish){.meeting = 1, .rank = host, .size = 3, .key = files[1]});
    assert_int_equal(sum(group), 0);
    sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
}

static void test_failures(void **state)
{
    (void)state;
    meeting_init(&meetings[0], 2, PTHREAD_PROCESS_PRIVATE);
    meeting_init(&meetings[1], 3, PTHREAD_PROCESS_PRIVATE);
    rank_threads_run(3, fail_and_grow);
    pthread_barrier_destroy(&meetings[0].barrier);
    pthread_barrier_destroy(&meetings[1].barrier);
}

/* ---- processes --------------------------------------------------------------------------------------- */

#define KILLS           4u
#define PROCESSES       3u
#define PEER_TIMEOUT_NS (1 * LH_NS_PER_S)

static int grow_process(struct lh_group *old, struct meeting *meeting, uint32_t rank,
                        struct lh_group **grown)
{
    struct visitor visitor = {.meeting = meeting, .rank = rank, .size = PROCESSES};
    struct lh_group_attr attr;
    lh_group_attr_init(&attr);
    attr.rank = rank;
    attr.size = PROCESSES;
    attr.device = "udp:127.0.0.1";
    attr.exchange = exchange;
    attr.exchange_context = &visitor;
    attr.peer_timeout_ns = PEER_TIMEOUT_NS;
    int error = lh_group_grow(old, &attr, grown);
    if (old && lh_group_destroy(old))
        return -LH_ESTATE;
    return error;
}

/* first: the meeting that it joins at. Returns why it ends; 0: as it should. */
static int run_process(struct meeting *shared, uint32_t rank, uint32_t first)
{
    struct lh_group *group = NULL;
    for (uint32_t i = first; i <= KILLS; i++) {
        if (grow_process(group, &shared[i], rank, &group))
            return 1;
        if (sum(group))
            return 3;
        pthread_barrier_wait(&shared[KILLS + 1].barrier); /* the parent kills the last */
        int error = 0;
        while (!error && i < KILLS) /* ends within the peer timeout, or the test by its own */
            error = sum(group);
    }
    return lh_group_destroy(group) ? 4 : 0;
}

static pid_t start_process(struct meeting *shared, uint32_t rank, uint32_t first)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(run_process(shared, rank, first));
    return pid;
}

static void test_processes(void **state)
{
    pid_t pids[PROCESSES];
    int status;
    (void)state;
    struct meeting *shared =
        mmap(NULL, (KILLS + 2) * sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    for (uint32_t i = 0; i <= KILLS; i++)
        meeting_init(&shared[i], PROCESSES, PTHREAD_PROCESS_SHARED);
    meeting_init(&shared[KILLS + 1], PROCESSES + 1, PTHREAD_PROCESS_SHARED);
    for (uint32_t r = 0; r < PROCESSES; r++)
        pids[r] = start_process(shared, r, 0);
    for (uint32_t i = 0; i <= KILLS; i++) {
        pthread_barrier_wait(&shared[KILLS + 1].barrier);
        if (i == KILLS)
            break;
        kill(pids[PROCESSES - 1], SIGKILL);
        waitpid(pids[PROCESSES - 1], &status, 0);
        pids[PROCESSES - 1] = start_process(shared, PROCESSES - 1, i + 1);
    }
    for (uint32_t r = 0; r < PROCESSES; r++) {
        waitpid(pids[r], &status, 0);
        if (status)
            fail_msg("process %u ends with %#x", r, (unsigned)status);
    }
    munmap(shared, (KILLS + 2) * sizeof *shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes), /* before there are threads */
        cmocka_unit_test(test_lives),     cmocka_unit_test(test_sealed_lives),
        cmocka_unit_test(test_pending),   cmocka_unit_test(test_alone),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
