/*
 * test_completion_queue.c - requests of many connections complete into queues, over a simulated network; the
 * caller's polls are all the progress there is.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/engine.h>
#include <longhaul/queue.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "netsim/fabric/sim_packets.h"
#include "support/connection_pair.h"

#define PEERS    4u
#define MESSAGES 5u /* of each connection */
#define MESSAGE  40000u
#define ALL      (PEERS * MESSAGES)
#define LINK     "rtt=2ms,rate=1Gbit,loss=1e-2"
#define STEP_NS  (50 * LH_NS_PER_US)
#define HANG_NS  (60 * LH_NS_PER_S) /* virtual */

static struct sim_world *world;
static struct lh_engine *engines[2]; /* one a host */
static struct lh_completion_queue *queues[2];
static struct lh_connection *ends[PEERS][2];
static uint8_t some[MESSAGE];

static void must(int code, const char *what)
{
    if (code < 0)
        fail_msg("%s: %d, %s", what, code, lh_last_error());
}

static void expect_refused(int code, int expected, const char *words)
{
    assert_int_equal(code, expected);
    if (!strstr(lh_last_error(), words))
        fail_msg("'%s' does not say '%s'", lh_last_error(), words);
}

static struct lh_engine *create_engine(int host)
{
    struct lh_engine_attr attr;
    struct lh_engine *engine;
    char device[32];
    lh_engine_attr_init(&attr);
    snprintf(device, sizeof device, "sim:queues/%d", host);
    attr.device = device;
    attr.workers = LH_NO_WORKERS;
    must(lh_engine_create(&attr, &engine), "lh_engine_create");
    return engine;
}

static void open_between(uint32_t peer)
{
    for (int end = 0; end < 2; end++) {
        struct lh_attr attr;
        connection_pair_attr(&attr);
        attr.engine = engines[end];
        must(lh_open(&attr, &ends[peer][end]), "lh_open");
    }
    for (int end = 0; end < 2; end++) {
        uint8_t blob[LH_BLOB_MAX];
        size_t bytes = sizeof blob;
        must(lh_blob(ends[peer][1 - end], blob, &bytes), "lh_blob");
        must(lh_attach(ends[peer][end], blob, bytes), "lh_attach");
    }
}

static void begin(uint64_t seed, uint32_t capacity)
{
    struct lh_link_spec spec;
    must(lh_link_parse(LINK, &spec), "lh_link_parse");
    world = sim_world_create("queues", seed, &spec);
    assert_non_null(world);
    for (int host = 0; host < 2; host++) {
        engines[host] = create_engine(host);
        must(lh_completion_queue_create(engines[host], capacity, &queues[host]),
             "lh_completion_queue_create");
    }
    for (uint32_t peer = 0; peer < PEERS; peer++)
        open_between(peer);
}

static void end(void)
{
    for (uint32_t peer = 0; peer < PEERS; peer++)
        for (int i = 0; i < 2; i++)
            lh_close(ends[peer][i]);
    for (int host = 0; host < 2; host++) {
        must(lh_completion_queue_destroy(queues[host]), "lh_completion_queue_destroy");
        must(lh_engine_destroy(engines[host]), "lh_engine_destroy");
    }
    sim_world_destroy(world);
}

static void step(void)
{
    lh_time event = sim_world_next_event(world), next = sim_world_now(world) + STEP_NS;
    sim_world_advance(world, event < next ? event : next);
}

/* Polls both queues until `wanted` entries have come out of `host`'s; any of the other must be fine. */
static void poll_until(int host, struct lh_completion *entries, uint32_t wanted)
{
    lh_time until = sim_world_now(world) + HANG_NS;
    struct lh_completion other;
    for (uint32_t got = 0; got < wanted;) {
        int taken = lh_poll(queues[host], entries + got, wanted - got);
        must(taken, "lh_poll");
        got += (uint32_t)taken;
        taken = lh_poll(queues[1 - host], &other, 1);
        must(taken, "lh_poll");
        assert_true(taken == 0 || other.result.error == 0);
        if (taken == 0)
            step();
        assert_true(sim_world_now(world) < until);
    }
}

/* ---- what completes ---------------------------------------------------------------------------------- */

/* User values: the connection and the number of the message. */
static uint64_t user_of(uint32_t peer, uint32_t message)
{
    return UINT64_C(0xABCD000000000000) | (uint64_t)peer << 32 | message;
}

static void check_entry(const struct lh_completion *entry, uint8_t *const buffers[ALL],
                        uint8_t *const data[ALL], bool seen[ALL])
{
    uint32_t peer = (uint32_t)(entry->user >> 32 & 0xFFFF), message = (uint32_t)entry->user;
    uint32_t i = peer * MESSAGES + message;
    assert_int_equal(entry->user, user_of(peer, message));
    assert_int_equal(entry->result.error, 0);
    assert_int_equal(entry->result.bytes, MESSAGE - i);
    assert_true(entry->result.ended_ns >= entry->result.started_ns);
    assert_ptr_equal(entry->connection, ends[peer][1]);
    assert_null(entry->request);
    assert_int_equal(entry->operation, LH_OPERATION_RECV);
    assert_false(seen[i]);
    assert_memory_equal(buffers[i], data[i], MESSAGE - i);
    seen[i] = true;
}

static void transfer_all(void)
{
    uint8_t *data[ALL], *buffers[ALL];
    bool seen[ALL] = {false};
    struct lh_completion entries[ALL];
    for (uint32_t i = 0; i < ALL; i++) {
        uint64_t user = user_of(i / MESSAGES, i % MESSAGES);
        data[i] = connection_pair_bytes(MESSAGE, i + 1);
        buffers[i] = connection_pair_bytes(MESSAGE, 99);
        must(lh_post_recv(ends[i / MESSAGES][1], buffers[i], MESSAGE, NULL, queues[1], user, NULL),
             "lh_post_recv");
        must(lh_post_send(ends[i / MESSAGES][0], data[i], MESSAGE - i, NULL, queues[0], user, NULL),
             "lh_post_send");
    }
    poll_until(1, entries, ALL);
    for (uint32_t i = 0; i < ALL; i++)
        check_entry(&entries[i], buffers, data, seen);
    for (uint32_t i = 0; i < ALL; i++) {
        free(data[i]);
        free(buffers[i]);
    }
}

static void many_connections_complete_into_one(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        begin(seed, ALL);
        transfer_all();
        end();
    }
}

/* Nobody frees a request, and there are more than a connection can have at once. */
static void posted_and_forgotten(void **state)
{
    (void)state;
    struct lh_completion entries[8];
    begin(1, 8);
    for (uint64_t sent = 0; sent < LH_REQUESTS_MAX + 100; sent += 8) {
        for (uint64_t i = sent; i < sent + 8; i++) {
            must(lh_post_recv(ends[0][1], NULL, 0, NULL, queues[1], i, NULL), "lh_post_recv");
            must(lh_post_send(ends[0][0], NULL, 0, NULL, queues[0], i, NULL), "lh_post_send");
        }
        poll_until(0, entries, 8);
        for (uint64_t i = 0; i < 8; i++)
            assert_in_range(entries[i].user, sent, sent + 7);
        while (lh_poll(queues[1], entries, 8) > 0)
            continue;
    }
    end();
}

static void keeps_its_request(void **state)
{
    (void)state;
    struct lh_request *send, *recv;
    struct lh_completion entry;
    struct lh_result result;
    uint8_t byte = 0;
    begin(1, 2);
    must(lh_post_recv(ends[1][1], &byte, 1, NULL, queues[1], 5, &recv), "lh_post_recv");
    must(lh_post_send(ends[1][0], "x", 1, NULL, queues[0], 6, &send), "lh_post_send");
    assert_int_equal(lh_test(send, NULL), 0);
    poll_until(0, &entry, 1);
    assert_ptr_equal(entry.request, send);
    assert_ptr_equal(entry.connection, ends[1][0]);
    assert_int_equal(entry.user, 6);
    assert_int_equal(entry.operation, LH_OPERATION_SEND);
    assert_int_equal(lh_test(send, &result), 1);
    assert_memory_equal(&result, &entry.result, sizeof result);
    assert_int_equal(lh_test(recv, NULL), 1);
    assert_int_equal(byte, 'x');
    lh_request_free(send);
    lh_request_free(recv);
    end();
}

/* ---- what ends early --------------------------------------------------------------------------------- */

static void canceled_and_freed(void **state)
{
    (void)state;
    struct lh_request *one, *other;
    struct lh_completion entries[3];
    begin(1, 3);
    must(lh_post_recv(ends[0][0], some, 10, NULL, queues[0], 1, &one), "lh_post_recv");
    must(lh_post_recv(ends[0][0], some, 10, NULL, queues[0], 2, &other), "lh_post_recv");
    lh_cancel(one);
    assert_int_equal(lh_test(one, NULL), 1);
    lh_request_free(other); /* cancels it, too */
    assert_int_equal(lh_poll(queues[0], entries, 3), 2);
    for (uint64_t i = 0; i < 2; i++) {
        assert_int_equal(entries[i].user, i + 1);
        assert_int_equal(entries[i].result.error, -LH_ECANCELED);
    }
    assert_ptr_equal(entries[0].request, one);
    lh_request_free(one);
    end();
}

static void closed_with_entries_in_the_queue(void **state)
{
    (void)state;
    struct lh_completion entries[4];
    begin(1, 4);
    struct lh_connection *connection = ends[0][0];
    for (uint64_t i = 0; i < 3; i++)
        must(lh_post_recv(connection, some, 10, NULL, queues[0], i, NULL), "lh_post_recv");
    expect_refused(lh_completion_queue_destroy(queues[0]), -LH_ESTATE, "pending requests: 3");
    lh_close(connection);
    ends[0][0] = NULL;
    assert_int_equal(lh_poll(queues[0], entries, 2), 2);
    assert_int_equal(lh_poll(queues[0], entries + 2, 2), 1);
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(entries[i].user, i);
        assert_ptr_equal(entries[i].connection, connection);
        assert_int_equal(entries[i].result.error, -LH_ECLOSED);
    }
    end();
}

static void peer_closes(void **state)
{
    (void)state;
    struct lh_completion entry;
    uint8_t byte;
    begin(1, 4);
    must(lh_post_recv(ends[0][1], &byte, 1, NULL, queues[1], 0, NULL), "lh_post_recv");
    must(lh_post_send(ends[0][0], "y", 1, NULL, queues[0], 1, NULL), "lh_post_send");
    poll_until(0, &entry, 1); /* so that they know each other */
    while (lh_poll(queues[1], &entry, 1) > 0)
        continue;
    must(lh_post_recv(ends[0][1], some, 10, NULL, queues[1], 77, NULL), "lh_post_recv");
    lh_close(ends[0][0]);
    ends[0][0] = NULL;
    poll_until(1, &entry, 1);
    assert_int_equal(entry.user, 77);
    assert_int_equal(entry.result.error, -LH_ECLOSED);
    expect_refused(lh_post_recv(ends[0][1], some, 10, NULL, queues[1], 78, NULL), -LH_ECLOSED, "has ended");
    end(); /* that one holds no place in the queue */
}

/* ---- whatever happens, each request has one entry ----------------------------------------------------- */

#define ACTIONS    400u
#define PLACES     20u /* of each queue */
#define LENGTH_MAX 20000u

static uint64_t posts;
static struct lh_request *kept[ACTIONS]; /* by the user value; NULL: detached, or freed */
static uint32_t entries_of[ACTIONS];
static uint8_t *sinks[ACTIONS];

static void post_random(struct lh_prng *prng)
{
    uint32_t peer = (uint32_t)lh_prng_below(prng, PEERS);
    int host = (int)lh_prng_below(prng, 2);
    size_t bytes = lh_prng_below(prng, LENGTH_MAX);
    struct lh_request **request = lh_prng_chance(prng, 0.5) ? &kept[posts] : NULL;
    if (!ends[peer][host])
        return;
    sinks[posts] = calloc(1, bytes + 1);
    int error =
        lh_prng_chance(prng, 0.5)
            ? lh_post_send(ends[peer][host], sinks[posts], bytes, NULL, queues[host], posts, request)
            : lh_post_recv(ends[peer][host], sinks[posts], bytes, NULL, queues[host], posts, request);
    if (error == 0)
        posts++;
    else
        free(sinks[posts]);
    assert_true(error == 0 || error == -LH_EAGAIN || error == -LH_ECLOSED);
}

static void take_all(int host)
{
    struct lh_completion entry;
    while (lh_poll(queues[host], &entry, 1) > 0) {
        assert_true(entry.user < posts);
        assert_true(!kept[entry.user] || kept[entry.user] == entry.request);
        assert_true(!kept[entry.user] || lh_test(kept[entry.user], NULL));
        entries_of[entry.user]++;
    }
}

static void act_at_random(struct lh_prng *prng)
{
    uint64_t some_post = posts > 0 ? lh_prng_below(prng, posts) : 0;
    uint32_t peer = (uint32_t)lh_prng_below(prng, PEERS);
    int host = (int)lh_prng_below(prng, 2);
    switch (lh_prng_below(prng, 40)) {
    case 0:
        lh_close(ends[peer][host]);
        ends[peer][host] = NULL;
        break;
    case 1:
    case 2:
        if (kept[some_post])
            lh_cancel(kept[some_post]);
        break;
    case 3:
    case 4:
        lh_request_free(kept[some_post]);
        kept[some_post] = NULL;
        break;
    default:
        post_random(prng);
    }
    if (lh_prng_chance(prng, 0.3))
        take_all(host);
    step();
}

static void one_entry_for_each_request(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct lh_prng prng;
        lh_prng_seed(&prng, seed);
        posts = 0;
        memset(kept, 0, sizeof kept);
        memset(entries_of, 0, sizeof entries_of);
        begin(seed, PLACES);
        for (uint32_t i = 0; i < ACTIONS - 1; i++)
            act_at_random(&prng);
        for (uint32_t i = 0; i < 2 * PEERS; i++) {
            lh_close(ends[i / 2][i % 2]);
            ends[i / 2][i % 2] = NULL;
        }
        take_all(0);
        take_all(1);
        for (uint64_t i = 0; i < posts; i++) {
            if (entries_of[i] != 1)
                fail_msg("seed %llu: request %llu has %u entries", (unsigned long long)seed,
                         (unsigned long long)i, entries_of[i]);
            lh_request_free(kept[i]);
            free(sinks[i]);
        }
        end();
    }
}

/* ---- bounds, and what is refused --------------------------------------------------------------------- */

static void nobody_polls(void **state)
{
    (void)state;
    struct lh_completion entries[2];
    begin(1, 2);
    must(lh_post_recv(ends[0][0], some, 10, NULL, queues[0], 1, NULL), "lh_post_recv");
    must(lh_post_recv(ends[1][0], some, 10, NULL, queues[0], 2, NULL), "lh_post_recv");
    expect_refused(lh_post_recv(ends[2][0], some, 10, NULL, queues[0], 3, NULL), -LH_EAGAIN,
                   "(entries: 2, pending requests: 2, entries not polled: 0");
    expect_refused(lh_post_send(ends[2][0], some, 10, NULL, queues[0], 3, NULL), -LH_EAGAIN, "entries: 2,");
    lh_close(ends[0][0]);
    ends[0][0] = NULL;
    expect_refused(lh_post_recv(ends[2][0], some, 10, NULL, queues[0], 3, NULL), -LH_EAGAIN,
                   "pending requests: 1, entries not polled: 1");
    assert_int_equal(lh_poll(queues[0], entries, 2), 1);
    must(lh_post_recv(ends[2][0], some, 10, NULL, queues[0], 3, NULL), "lh_post_recv");
    end();
}

static void bad_arguments(void **state)
{
    (void)state;
    struct lh_completion_queue *queue = NULL;
    struct lh_completion entry;
    struct lh_attr attr;
    struct lh_connection *lone;
    begin(1, 1);
    expect_refused(lh_completion_queue_create(NULL, 1, &queue), -LH_EINVAL, "without an engine");
    expect_refused(lh_completion_queue_create(engines[0], 0, &queue), -LH_EINVAL, "of 0 entries");
    expect_refused(lh_completion_queue_create(engines[0], LH_QUEUE_CAPACITY_MAX + 1, &queue), -LH_EINVAL,
                   "out of range (1 to 1048576)");
    assert_null(queue);
    expect_refused(lh_post_send(ends[0][0], some, 1, NULL, NULL, 0, NULL), -LH_EINVAL,
                   "no completion queue");
    expect_refused(lh_post_send(ends[0][0], some, 1, NULL, queues[1], 0, NULL), -LH_EINVAL,
                   "another engine");
    expect_refused(lh_post_recv(ends[0][0], some, 1, NULL, queues[1], 0, NULL), -LH_EINVAL,
                   "another engine");
    expect_refused(lh_send(ends[0][0], some, 1, NULL, NULL), -LH_EINVAL,
                   "request is NULL without a completion queue");
    connection_pair_attr(&attr);
    attr.device = "sim:queues/0";
    attr.workers = LH_NO_WORKERS;
    must(lh_open(&attr, &lone), "lh_open");
    expect_refused(lh_post_recv(lone, some, 1, NULL, queues[0], 0, NULL), -LH_EINVAL, "another engine");
    lh_close(lone);
    assert_int_equal(lh_poll(queues[0], &entry, 0), 0);
    must(lh_completion_queue_destroy(NULL), "lh_completion_queue_destroy");
    end();
}

static void without_workers_nobody_sleeps(void **state)
{
    (void)state;
    struct lh_completion entry;
    begin(1, 1);
    expect_refused(lh_queue_wait(queues[0], &entry, 1, LH_TIME_NEVER), -LH_ESTATE, "no workers");
    expect_refused(lh_queue_fd(queues[0]), -LH_ESTATE, "no workers");
    expect_refused(lh_queue_arm(queues[0]), -LH_ESTATE, "lh_queue_fd() first");
    end();
}

static void engine_outlives_its_queues(void **state)
{
    (void)state;
    struct lh_completion_queue *queue;
    world = sim_world_create("queues", 1, &(struct lh_link_spec){0});
    assert_non_null(world);
    engines[0] = create_engine(0);
    must(lh_completion_queue_create(engines[0], 1, &queue), "lh_completion_queue_create");
    expect_refused(lh_engine_destroy(engines[0]), -LH_ESTATE, "completion queues: 1");
    must(lh_completion_queue_destroy(queue), "lh_completion_queue_destroy");
    must(lh_engine_destroy(engines[0]), "lh_engine_destroy");
    sim_world_destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_connections_complete_into_one),
        cmocka_unit_test(posted_and_forgotten),
        cmocka_unit_test(keeps_its_request),
        cmocka_unit_test(canceled_and_freed),
        cmocka_unit_test(closed_with_entries_in_the_queue),
        cmocka_unit_test(peer_closes),
        cmocka_unit_test(one_entry_for_each_request),
        cmocka_unit_test(nobody_polls),
        cmocka_unit_test(bad_arguments),
        cmocka_unit_test(without_workers_nobody_sleeps),
        cmocka_unit_test(engine_outlives_its_queues),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
