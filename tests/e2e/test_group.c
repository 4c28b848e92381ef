/*
 * test_group.c - groups over UDP on loopback, with an emulated loss: a thread per rank, created by
 * lh_group_create(). Every collective, with callers that wait and with a thread per group.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/engine.h>
#include <longhaul/queue.h>

#include "collective/schedules.h"
#include "group/mesh.h"
#include "support/collective_case.h"
#include "support/rank_threads.h"
#include "support/sanitized.h"

#define RANKS      4u
#define LIMIT_NS   (60 * LH_NS_PER_S)
#define PATIENT_NS (3600 * LH_NS_PER_S) /* longer than a test may take */
#define CASES      (COLLECTIVES + 3u)   /* with the v-variants */

static const enum collective with_parts[] = {COLLECTIVE_GATHER, COLLECTIVE_SCATTER, COLLECTIVE_ALLTOALL};
static struct collective_case cases[CASES];
static int32_t sums_of_ranks[RANKS];

/* peer_timeout_ns: 0: the default. */
static struct lh_group *create_with(const struct rank_thread *thread, const struct lh_attr *connection,
                                    lh_time peer_timeout_ns, bool threaded)
{
    struct lh_group_attr attr;
    struct lh_group *group;
    lh_group_attr_init(&attr);
    attr.peer_timeout_ns = peer_timeout_ns;
    attr.rank = thread->rank;
    attr.size = thread->size;
    attr.exchange = rank_threads_exchange;
    attr.exchange_context = (void *)(uintptr_t)thread;
    attr.site = thread->rank < 2 ? "one" : "two";
    attr.device = "udp:127.0.0.1";
    attr.attr = connection;
    attr.thread = threaded;
    sim_engines_must(lh_group_create(&attr, &group), "lh_group_create");
    return group;
}

static struct lh_group *create_over(const struct rank_thread *thread, const struct lh_link_spec *link,
                                    lh_time peer_timeout_ns, bool threaded)
{
    struct lh_attr connection;
    lh_attr_init(&connection);
    connection.link = *link;
    return create_with(thread, &connection, peer_timeout_ns, threaded);
}

static struct lh_group *create(const struct rank_thread *thread, bool threaded)
{
    struct lh_link_spec link = {.loss = 0.01, .seed = thread->rank + 1};
    return create_over(thread, &link, 0, threaded);
}

static void start_cases(struct lh_group *group)
{
    for (uint32_t each = 0; each < CASES; each++)
        collective_case_start_at(&cases[each], group);
}

static struct collective_case case_of(uint32_t each, size_t count)
{
    bool uneven = each >= COLLECTIVES;
    struct collective_case made = {.collective = uneven ? with_parts[each - COLLECTIVES] : each,
                                   .uneven = uneven,
                                   .type = (enum lh_type)(each % LH_TYPES),
                                   .reduction = (enum lh_reduction)(each % LH_BAND),
                                   .count = count,
                                   .root = 1,
                                   .size = RANKS};
    lh_collective_options_init(&made.options);
    return made;
}

static void set_cases(size_t count)
{
    for (uint32_t each = 0; each < CASES; each++)
        cases[each] = case_of(each, count);
}

static void check_cases(void)
{
    for (uint32_t each = 0; each < CASES; each++) {
        for (uint32_t r = 0; r < RANKS; r++)
            collective_case_check(&cases[each], r);
        collective_case_free(&cases[each]);
    }
}

/* ---- callers that wait ------------------------------------------------------------------------------- */

static void wait_all(struct rank_thread *thread)
{
    static const size_t counts[] = {3, 40000, SANITIZED ? 100000 : 300000};
    struct lh_group *group = create(thread, false);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (thread->rank == 0)
            set_cases(counts[i]);
        rank_threads_meet(thread);
        start_cases(group);
        for (uint32_t each = 0; each < CASES; each++)
            sim_engines_must(lh_collective_wait(cases[each].ops[thread->rank], LIMIT_NS, NULL), "wait");
        rank_threads_meet(thread);
        if (thread->rank == 0)
            check_cases();
        rank_threads_meet(thread);
    }
    sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
}

static void test_wait(void **state)
{
    (void)state;
    rank_threads_run(RANKS, wait_all);
}

/* ---- a thread of the group, and a completion queue --------------------------------------------------- */

static void queue_all(struct rank_thread *thread)
{
    struct lh_group *group = create(thread, true);
    struct lh_completion_queue *queue;
    struct lh_completion entries[CASES];
    uint32_t done = 0;
    sim_engines_must(lh_completion_queue_create(lh_group_engine(group), CASES, &queue), "queue");
    if (thread->rank == 0)
        set_cases(30000);
    rank_threads_meet(thread);
    for (uint32_t each = 0; each < CASES; each++) {
        struct collective_case mine = case_of(each, 30000); /* others write to theirs in `cases` */
        mine.options.queue = queue;
        mine.options.user = each;
        collective_case_start_at(&mine, group);
        cases[each].in[thread->rank] = mine.in[thread->rank];
        cases[each].out[thread->rank] = mine.out[thread->rank];
        cases[each].kept[thread->rank] = mine.kept[thread->rank];
        cases[each].ops[thread->rank] = mine.ops[thread->rank];
    }
    while (done < (1u << CASES) - 1) {
        int n = lh_queue_wait(queue, entries, CASES, LIMIT_NS);
        assert_true(n > 0);
        for (int i = 0; i < n; i++) {
            assert_int_equal(entries[i].operation, LH_OPERATION_COLLECTIVE);
            assert_int_equal(entries[i].result.error, 0);
            assert_false(done >> entries[i].user & 1);
            done |= 1u << entries[i].user;
        }
    }
    rank_threads_meet(thread);
    if (thread->rank == 0)
        check_cases();
    rank_threads_meet(thread);
    sim_engines_must(lh_completion_queue_destroy(queue), "queue");
    sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
}

static void test_queue(void **state)
{
    (void)state;
    rank_threads_run(RANKS, queue_all);
}

/* ---- the end ----------------------------------------------------------------------------------------- */

/* Rank 0 is done as soon as rank 1 has begun, half a round trip before its message is acknowledged. That
 * alone ends its wait, for rank 1 stays; and the thread sees it, which has polled for the entry. */
static void destroy_first(struct rank_thread *thread)
{
    struct lh_link_spec link = {.delay_ns = 100 * LH_NS_PER_MS};
    struct lh_group *group = create_over(thread, &link, PATIENT_NS, true);
    struct lh_collective_options options;
    struct lh_completion_queue *queue;
    struct lh_completion entry;
    struct lh_collective *op;
    int32_t value = 1;
    sim_engines_must(lh_completion_queue_create(lh_group_engine(group), 1, &queue), "queue");
    lh_collective_options_init(&options);
    options.queue = queue;
    rank_threads_meet(thread);
    sim_engines_must(lh_broadcast(group, &value, 1, LH_I32, 0, &options, &op), "lh_broadcast");
    assert_int_equal(lh_queue_wait(queue, &entry, 1, LIMIT_NS), 1);
    lh_collective_free(op);
    sim_engines_must(lh_completion_queue_destroy(queue), "queue");
    if (thread->rank != 0)
        rank_threads_meet(thread);
    sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
    if (thread->rank == 0)
        rank_threads_meet(thread);
}

static void test_destroy_first(void **state)
{
    (void)state;
    rank_threads_run(2, destroy_first);
}

/* ---- smaller groups ---------------------------------------------------------------------------------- */

static void sum_in(struct lh_group *group, uint32_t members, uint32_t bit)
{
    int32_t in = 1 << bit, out = 0;
    struct lh_collective *op;
    struct lh_collective_result result;
    assert_int_equal(lh_group_size(group), members);
    sim_engines_must(lh_allreduce(group, &in, &out, 1, LH_I32, LH_SUM, NULL, &op), "lh_allreduce");
    sim_engines_must(lh_collective_wait(op, LIMIT_NS, &result), "wait");
    assert_int_equal(result.error, 0);
    lh_collective_free(op);
    sums_of_ranks[bit] = out;
}

/* Even and odd ranks, in reverse order; rank 3 is in no group of the second split. */
static void split_all(struct rank_thread *thread)
{
    struct lh_group *group = create(thread, thread->rank % 2 == 0), *part, *none;
    uint32_t color = thread->rank % 2, expected = color == 0 ? 1 + 4 : 2 + 8;
    sim_engines_must(lh_group_split(group, color, RANKS - thread->rank, &part), "lh_group_split");
    assert_int_equal(lh_group_rank(part), thread->rank < 2 ? 1 : 0);
    assert_string_equal(lh_group_site(part, lh_group_rank(part)), thread->rank < 2 ? "one" : "two");
    sum_in(part, 2, thread->rank);
    assert_int_equal(sums_of_ranks[thread->rank], expected);
    color = thread->rank == 3 ? LH_GROUP_NO_COLOR : 0;
    sim_engines_must(lh_group_split(group, color, 0, &none), "lh_group_split");
    if (thread->rank == 3) {
        assert_null(none);
    } else {
        sum_in(none, 3, thread->rank);
        assert_int_equal(sums_of_ranks[thread->rank], 7);
    }
    sum_in(group, RANKS, thread->rank);
    assert_int_equal(sums_of_ranks[thread->rank], 15);
    sim_engines_must(lh_group_destroy(part), "lh_group_destroy");
    sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
    sim_engines_must(lh_group_destroy(none), "lh_group_destroy");
}

static void test_split(void **state)
{
    (void)state;
    rank_threads_run(RANKS, split_all);
}

/* Rank 2 leaves while all others sum: an error with its number, and they go on. */
static void leave(struct rank_thread *thread)
{
    struct lh_group *group = create(thread, false), *smaller;
    struct lh_collective *op;
    struct lh_collective_result result;
    int32_t in = 1, out;
    if (thread->rank == 2) {
        sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
        return;
    }
    sim_engines_must(lh_allreduce(group, &in, &out, 1, LH_I32, LH_SUM, NULL, &op), "lh_allreduce");
    sim_engines_must(lh_collective_wait(op, LIMIT_NS, &result), "wait");
    lh_collective_free(op);
    assert_int_equal(result.error, -LH_ECLOSED);
    assert_int_equal(result.failed_rank, 2);
    sim_engines_must(lh_group_shrink(group, &smaller), "lh_group_shrink");
    sum_in(smaller, 3, thread->rank);
    assert_int_equal(sums_of_ranks[thread->rank], 1 + 2 + 8);
    sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
    sim_engines_must(lh_group_destroy(smaller), "lh_group_destroy");
}

static void test_leave(void **state)
{
    (void)state;
    rank_threads_run(RANKS, leave);
}

#define BYTES (1u << 20)

/* Rank 0 leaves as soon as its part is done. Its messages may be incomplete, and so it does not wait for them
 * before: they are still on their way, and arrive whole. */
static void leave_with_messages_under_way(struct rank_thread *thread)
{
    struct lh_attr connection;
    struct lh_collective *op;
    struct lh_collective_result result;
    uint8_t *data = malloc(BYTES);
    lh_attr_init(&connection);
    connection.link.delay_ns = 20 * LH_NS_PER_MS;
    connection.reliability = "bounded:deadline=50s";
    struct lh_group *group = create_with(thread, &connection, PATIENT_NS, false);
    memset(data, thread->rank == 0, BYTES);
    sim_engines_must(lh_broadcast(group, data, BYTES, LH_U8, 0, NULL, &op), "lh_broadcast");
    sim_engines_must(lh_collective_wait(op, LIMIT_NS, &result), "wait");
    assert_int_equal(result.error, 0);
    assert_int_equal(result.missing_bytes, 0);
    lh_collective_free(op);
    assert_int_equal(data[0] + data[BYTES / 2] + data[BYTES - 1], 3);
    free(data);
    sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
}

static void test_leave_with_messages_under_way(void **state)
{
    (void)state;
    rank_threads_run(2, leave_with_messages_under_way);
}

/* ---- what is refused --------------------------------------------------------------------------------- */

/* By its name, not by that of a schedule. */
static void refuse(struct rank_thread *thread)
{
    struct lh_group *group = create(thread, false);
    struct lh_collective *op;
    int32_t in = 0, out = 0;
    assert_int_equal(lh_allreduce(group, &in, &out, SIZE_MAX, LH_I32, LH_SUM, NULL, &op), -LH_EINVAL);
    assert_string_equal(lh_last_error(), "allreduce: 18446744073709551615 elements: out of range");
    rank_threads_meet(thread);
    sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
}

static void test_refuse(void **state)
{
    (void)state;
    rank_threads_run(RANKS, refuse);
}

/* ---- threads of a rank ------------------------------------------------------------------------------- */

struct impatient {
    struct rank_thread *thread;
    struct lh_collective *op;
};

/* Nobody else begins the operation before. */
static void *wait_little(void *context)
{
    struct impatient *impatient = context;
    assert_int_equal(lh_collective_wait(impatient->op, 500 * LH_NS_PER_MS, NULL), -LH_ETIMEDOUT);
    rank_threads_meet(impatient->thread);
    return NULL;
}

/* The one that polls for all gives up: another goes on. */
static void give_up(struct rank_thread *thread)
{
    const struct timespec a_while = {.tv_nsec = 100 * (long)LH_NS_PER_MS};
    struct lh_group *group = create(thread, false);
    struct impatient impatient = {.thread = thread};
    pthread_t other;
    if (thread->rank != 0)
        rank_threads_meet(thread);
    sim_engines_must(lh_barrier(group, NULL, &impatient.op), "lh_barrier");
    if (thread->rank == 0) {
        assert_int_equal(pthread_create(&other, NULL, wait_little, &impatient), 0);
        nanosleep(&a_while, NULL); /* so that it polls; the order does not matter else */
    }
    sim_engines_must(lh_collective_wait(impatient.op, LIMIT_NS, NULL), "wait");
    if (thread->rank == 0)
        pthread_join(other, NULL);
    lh_collective_free(impatient.op);
    sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
}

static void test_give_up(void **state)
{
    (void)state;
    rank_threads_run(2, give_up);
}

/* ---- after a fork ------------------------------------------------------------------------------------ */

/* A child's calls are refused: no thread of its works for it. */
static void test_child(void **state)
{
    struct lh_group_attr attr;
    struct lh_group *group, *made;
    struct lh_collective *op;
    int status;
    (void)state;
    lh_group_attr_init(&attr);
    attr.size = 1;
    attr.device = "udp:127.0.0.1";
    sim_engines_must(lh_group_create(&attr, &group), "lh_group_create");
    sim_engines_must(lh_barrier(group, NULL, &op), "lh_barrier");
    pid_t child = fork();
    if (child == 0)
        _exit(lh_group_split(group, 0, 0, &made) == -LH_ESTATE &&
                      lh_group_shrink(group, &made) == -LH_ESTATE &&
                      lh_collective_wait(op, LIMIT_NS, NULL) == -LH_ESTATE
                  ? 0
                  : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    lh_collective_free(op);
    sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
}

/* ---- packets ----------------------------------------------------------------------------------------- */

/* An interface of MTU 65536, and one of 1500. */
#define INTERFACES                                                                                         \
    "ip link set lo up && ip address add 10.9.9.1/32 dev lo && "                                           \
    "ip link add wide mtu 1500 type veth peer name other && ip address add 10.9.9.2/32 dev wide && "       \
    "ip link set other up && ip link set wide up"

static const char *packet_devices[2];
static uint32_t packet_mtu, packet_bytes[2], packet_limits[2];

static void create_over_devices(struct rank_thread *thread)
{
    struct lh_group_attr attr;
    struct lh_group *group;
    struct lh_attr given, found;
    lh_attr_init(&given);
    given.mtu_bytes = packet_mtu;
    lh_group_attr_init(&attr);
    attr.rank = thread->rank;
    attr.size = thread->size;
    attr.exchange = rank_threads_exchange;
    attr.exchange_context = thread;
    attr.device = packet_devices[thread->rank];
    attr.attr = &given;
    sim_engines_must(lh_group_create(&attr, &group), "lh_group_create");
    const struct link *link = &group->mesh->links[1 - thread->rank];
    sim_engines_must(lh_connection_attr(link->lanes[LANE_BULK].connection, &found), "lh_connection_attr");
    packet_bytes[thread->rank] = found.mtu_bytes;
    packet_limits[thread->rank] = lh_group_mtu(group);
    rank_threads_meet(thread);
    sim_engines_must(lh_group_destroy(group), "lh_group_destroy");
}

static void expect_packets(const char *one, const char *other, uint32_t asked, uint32_t bytes,
                           uint32_t limit)
{
    packet_devices[0] = one;
    packet_devices[1] = other;
    packet_mtu = asked;
    rank_threads_run(2, create_over_devices);
    assert_int_equal(packet_bytes[0], bytes);
    assert_int_equal(packet_bytes[1], bytes);
    assert_int_equal(packet_limits[0], limit);
    assert_int_equal(packet_limits[1], limit);
}

/* As large as the interfaces of all ranks take, unless another size is asked for. */
static void test_packets_fill_the_interfaces(void **state)
{
    int status = 0;
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (unshare(CLONE_NEWNET) != 0 || system(INTERFACES) != 0)
            _exit(77);
        expect_packets("udp:10.9.9.1", "udp:10.9.9.1", 0, 8896, 8896);
        expect_packets("udp:10.9.9.1", "udp:10.9.9.2", 0, 1408, 1408);
        expect_packets("udp:10.9.9.2", "udp:10.9.9.1", 1024, 1024, 1408);
        expect_packets("udp:127.0.0.1", "udp:127.0.0.1", 0, 4096, 0);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wait),    cmocka_unit_test(test_queue),
        cmocka_unit_test(test_split),   cmocka_unit_test(test_leave_with_messages_under_way),
        cmocka_unit_test(test_leave),   cmocka_unit_test(test_refuse),
        cmocka_unit_test(test_give_up), cmocka_unit_test(test_destroy_first),
        cmocka_unit_test(test_child),   cmocka_unit_test(test_packets_fill_the_interfaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
