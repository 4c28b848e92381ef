/*
 * test_idle.c - what connections cost that do nothing: one keepalive for each pair of engines, however many
 * lie between and wait, and nothing else; and that who waits learns of its peer's end nevertheless.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>
#include <longhaul/engine.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "netsim/fabric/sim_packets.h"
#include "support/connection_pair.h"

#define MANY       100u
#define SETTLE_NS  (10 * LH_NS_PER_S) /* virtual, as all times here */
#define IDLE_S     60u
#define TIMEOUT_NS (10 * LH_NS_PER_S) /* of a peer, by default */
#define SHORT_NS   (LH_NS_PER_S / 2)

struct net {
    struct sim_world *world;
    struct lh_engine *engines[2];
    uint32_t count;
    struct lh_connection *ends[MANY][2];
    uint64_t moments; /* at which anything was due */
};

static void must(int code, const char *what)
{
    if (code != 0)
        fail_msg("%s: %d, %s", what, code, lh_last_error());
}

static void attach(struct lh_connection *const ends[2])
{
    for (int end = 0; end < 2; end++) {
        uint8_t blob[LH_BLOB_MAX];
        size_t bytes = sizeof blob;
        must(lh_blob(ends[1 - end], blob, &bytes), "lh_blob");
        must(lh_attach(ends[end], blob, bytes), "lh_attach");
    }
}

/* short_timeouts: of the peer's silence, of so many connections; the others have that by default. */
static void begin_with(struct net *net, uint32_t count, const char *congestion, uint32_t short_timeouts)
{
    static const char *const devices[] = {"sim:idle/0", "sim:idle/1"};
    struct lh_link_spec spec;
    must(lh_link_parse("rtt=20ms,rate=1Gbit", &spec), "lh_link_parse");
    *net = (struct net){.world = sim_world_create("idle", 1, &spec), .count = count};
    assert_non_null(net->world);
    for (uint32_t i = 0; i < 2; i++) {
        struct lh_engine_attr attr;
        lh_engine_attr_init(&attr);
        attr.device = devices[i];
        attr.channels = 1;
        attr.workers = LH_NO_WORKERS;
        must(lh_engine_create(&attr, &net->engines[i]), "lh_engine_create");
    }
    for (uint32_t c = 0; c < count; c++) {
        for (int end = 0; end < 2; end++) {
            struct lh_attr attr;
            connection_pair_attr(&attr);
            attr.engine = net->engines[end];
            attr.congestion = congestion;
            if (c < short_timeouts)
                attr.peer_timeout_ns = SHORT_NS;
            must(lh_open(&attr, &net->ends[c][end]), "lh_open");
        }
        attach(net->ends[c]);
    }
}

static void begin(struct net *net, uint32_t count, const char *congestion)
{
    begin_with(net, count, congestion, 0);
}

static void end(struct net *net)
{
    for (uint32_t c = 0; c < net->count; c++)
        for (int i = 0; i < 2; i++)
            lh_close(net->ends[c][i]);
    for (uint32_t i = 0; i < 2; i++)
        must(lh_engine_destroy(net->engines[i]), "lh_engine_destroy");
    sim_world_destroy(net->world);
}

static void turn(struct net *net, lh_time limit)
{
    lh_time now = sim_world_now(net->world), next = 0;
    net->moments++;
    while (next <= now) {
        next = sim_world_next_event(net->world);
        for (uint32_t i = 0; i < 2; i++) {
            lh_time due;
            must(lh_engine_progress(net->engines[i], &due), "lh_engine_progress");
            next = due < next ? due : next;
        }
    }
    lh_time event = sim_world_next_event(net->world);
    next = event < next ? event : next;
    sim_world_advance(net->world, next < limit ? next : limit);
}

static void run_for(struct net *net, lh_time span)
{
    lh_time until = sim_world_now(net->world) + span;
    while (sim_world_now(net->world) < until)
        turn(net, until);
}

static void transfer(struct net *net, uint32_t c, int to)
{
    struct lh_request *request[2];
    struct lh_result result;
    uint8_t out = (uint8_t)(c + 1), in = 0;
    must(lh_recv(net->ends[c][to], &in, 1, NULL, &request[0]), "lh_recv");
    must(lh_send(net->ends[c][1 - to], &out, 1, NULL, &request[1]), "lh_send");
    for (int i = 0; i < 2; i++) {
        while (!lh_test(request[i], &result))
            turn(net, LH_TIME_NEVER);
        assert_int_equal(result.error, 0);
        lh_request_free(request[i]);
    }
    assert_int_equal(in, out);
}

static void transfer_all(struct net *net)
{
    for (uint32_t c = 0; c < net->count; c++)
        for (int to = 0; to < 2; to++)
            transfer(net, c, to);
}

static uint64_t control_sent(const struct net *net)
{
    uint64_t sent = 0;
    for (uint32_t c = 0; c < net->count; c++)
        for (int i = 0; i < 2; i++) {
            struct lh_stats stats = {0};
            if (net->ends[c][i])
                must(lh_connection_stats(net->ends[c][i], &stats), "lh_connection_stats");
            sent += stats.tx_control;
        }
    return sent;
}

struct cost {
    uint64_t moments;
    uint64_t packets;
};

static struct cost cost_of_idling(struct net *net)
{
    run_for(net, SETTLE_NS);
    struct cost before = {net->moments, control_sent(net)};
    run_for(net, IDLE_S * LH_NS_PER_S);
    return (struct cost){net->moments - before.moments, control_sent(net) - before.packets};
}

/* A ping a second each way and its answer, whatever the number of connections. */
static void expect_one_keepalive(const struct cost *cost)
{
    assert_in_range(cost->packets, 4 * IDLE_S - 4, 4 * IDLE_S + 4);
    assert_in_range(cost->moments, IDLE_S, 8 * IDLE_S);
}

static void test_many_cost_as_much_as_one(void **state)
{
    (void)state;
    static const char *const controllers[] = {NULL, "bbr", "swift", "eqds"};
    static const uint32_t counts[] = {1, MANY};
    for (uint32_t i = 0; i < 2 * sizeof controllers / sizeof *controllers; i++) {
        struct net net;
        begin(&net, counts[i % 2], controllers[i / 2]);
        transfer_all(&net);
        struct cost cost = cost_of_idling(&net);
        expect_one_keepalive(&cost);
        transfer_all(&net); /* they still work */
        end(&net);
    }
}

/* Nor do those cost more that were never used. */
static void test_unused(void **state)
{
    (void)state;
    struct net net;
    begin(&net, MANY, "bbr");
    struct cost cost = cost_of_idling(&net);
    expect_one_keepalive(&cost);
    end(&net);
}

/* Whichever is closed, one of the others keeps the way open. */
static void test_the_representative_is_replaced(void **state)
{
    (void)state;
    struct net net;
    begin(&net, 4, NULL);
    for (uint32_t closed = 0; closed < 3; closed++) {
        struct cost cost = cost_of_idling(&net);
        expect_one_keepalive(&cost);
        for (int i = 0; i < 2; i++)
            lh_close(net.ends[closed][i]);
        net.ends[closed][0] = net.ends[closed][1] = NULL;
    }
    struct cost cost = cost_of_idling(&net);
    expect_one_keepalive(&cost);
    end(&net);
}

/* One end ends it and the program holds the other: that one is no representative any more. */
static void test_a_representative_that_ended_is_replaced(void **state)
{
    (void)state;
    struct net net;
    begin(&net, 3, NULL);
    run_for(&net, SETTLE_NS);
    lh_close(net.ends[0][1]);
    net.ends[0][1] = NULL;
    struct cost cost = cost_of_idling(&net);
    assert_int_equal(lh_connection_error(net.ends[0][0]), -LH_ECLOSED);
    expect_one_keepalive(&cost);
    end(&net);
}

/* A receive is pending on each end of each. */
struct waiting {
    struct lh_request *requests[MANY][2];
    uint8_t in[MANY][2];
};

static void wait_on_all(const struct net *net, struct waiting *waiting)
{
    for (uint32_t c = 0; c < net->count; c++)
        for (int i = 0; i < 2; i++)
            must(lh_recv(net->ends[c][i], &waiting->in[c][i], 1, NULL, &waiting->requests[c][i]),
                 "lh_recv");
}

static void deliver_all(struct net *net, struct waiting *waiting)
{
    for (uint32_t c = 0; c < net->count; c++)
        for (int i = 0; i < 2; i++) {
            struct lh_request *request;
            struct lh_result result;
            uint8_t out = (uint8_t)(c + 1);
            must(lh_send(net->ends[c][1 - i], &out, 1, NULL, &request), "lh_send");
            while (!lh_test(waiting->requests[c][i], &result))
                turn(net, LH_TIME_NEVER);
            assert_int_equal(result.error, 0);
            assert_int_equal(waiting->in[c][i], out);
            lh_request_free(request);
        }
}

static void stop_waiting(const struct net *net, struct waiting *waiting)
{
    for (uint32_t c = 0; c < net->count; c++)
        for (int i = 0; i < 2; i++)
            lh_request_free(waiting->requests[c][i]);
}

static void cut(const struct net *net, bool is_cut)
{
    sim_world_cut(net->world, 0, 1, is_cut);
    sim_world_cut(net->world, 1, 0, is_cut);
}

static void expect_errors(const struct net *net, uint32_t from, int error)
{
    for (uint32_t c = from; c < net->count; c++)
        for (int i = 0; i < 2; i++)
            if (net->ends[c][i])
                assert_int_equal(lh_connection_error(net->ends[c][i]), error);
}

/* Beside the ping of one, one question each way for all others, and its answer. */
static void test_waiting_costs_one_keepalive(void **state)
{
    (void)state;
    struct net net;
    struct waiting waiting;
    begin(&net, MANY, NULL);
    wait_on_all(&net, &waiting);
    struct cost cost = cost_of_idling(&net);
    assert_in_range(cost.packets, 8 * IDLE_S - 8, 8 * IDLE_S + 8);
    expect_errors(&net, 0, 0);
    deliver_all(&net, &waiting);
    stop_waiting(&net, &waiting);
    end(&net);
}

/* At the time at which each would know it by its own pings. */
static void test_silence_shows_to_all_that_wait(void **state)
{
    (void)state;
    struct net net;
    struct waiting waiting;
    begin(&net, 4, NULL);
    run_for(&net, SETTLE_NS);
    wait_on_all(&net, &waiting);
    run_for(&net, 60 * LH_NS_PER_S);
    expect_errors(&net, 0, 0);
    cut(&net, true);
    run_for(&net, TIMEOUT_NS - 2 * LH_NS_PER_S);
    expect_errors(&net, 0, 0);
    run_for(&net, 2 * LH_NS_PER_S + TIMEOUT_NS / 16);
    expect_errors(&net, 0, -LH_EPEER);
    stop_waiting(&net, &waiting);
    end(&net);
}

/* Its FIN is lost: the others' answers do not speak for it. */
static void test_one_that_ended_among_many(void **state)
{
    (void)state;
    struct net net;
    struct waiting waiting;
    for (uint32_t closed = 0; closed < 2; closed++) { /* the representative, and another */
        begin(&net, 4, NULL);
        wait_on_all(&net, &waiting);
        run_for(&net, SETTLE_NS);
        cut(&net, true);
        lh_request_free(waiting.requests[closed][1]);
        waiting.requests[closed][1] = NULL;
        lh_close(net.ends[closed][1]);
        net.ends[closed][1] = NULL;
        run_for(&net, LH_NS_PER_S);
        cut(&net, false);
        run_for(&net, TIMEOUT_NS);
        for (uint32_t c = 0; c < net.count; c++)
            assert_int_equal(lh_connection_error(net.ends[c][0]), c == closed ? -LH_EPEER : 0);
        run_for(&net, 10 * TIMEOUT_NS);
        for (uint32_t c = 0; c < net.count; c++)
            if (c != closed)
                assert_int_equal(lh_connection_error(net.ends[c][1]), 0);
        stop_waiting(&net, &waiting);
        end(&net);
    }
}

/* Whichever keeps the way open: those that may be silent for long must not keep it for others too seldom. */
static void test_different_timeouts(void **state)
{
    (void)state;
    struct net net;
    struct waiting waiting;
    for (uint32_t closed = 0; closed < 3; closed++) {
        begin_with(&net, 6, NULL, 2);
        wait_on_all(&net, &waiting);
        run_for(&net, SETTLE_NS);
        expect_errors(&net, 0, 0);
        for (uint32_t c = 0; c < closed; c++)
            for (int i = 0; i < 2; i++) {
                lh_close(net.ends[c][i]);
                net.ends[c][i] = NULL;
            }
        run_for(&net, SETTLE_NS);
        expect_errors(&net, 0, 0);
        cut(&net, true);
        run_for(&net, SHORT_NS + SHORT_NS / 16);
        for (uint32_t c = closed; c < net.count; c++)
            for (int i = 0; i < 2; i++)
                assert_int_equal(lh_connection_error(net.ends[c][i]), c < 2 ? -LH_EPEER : 0);
        cut(&net, false);
        run_for(&net, 3 * TIMEOUT_NS);
        expect_errors(&net, 2, 0);
        stop_waiting(&net, &waiting);
        end(&net);
    }
}

/* Time in which nobody made progress is no silence of the peer. */
static void test_a_process_that_was_stopped(void **state)
{
    (void)state;
    struct net net;
    struct waiting waiting;
    begin(&net, 4, NULL);
    wait_on_all(&net, &waiting);
    run_for(&net, SETTLE_NS);
    for (uint32_t i = 1; i <= 12; i++) {
        sim_world_advance(net.world, sim_world_now(net.world) + i * TIMEOUT_NS / 6);
        run_for(&net, LH_NS_PER_S * i / 4);
        expect_errors(&net, 0, 0);
    }
    stop_waiting(&net, &waiting);
    end(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_cost_as_much_as_one),
        cmocka_unit_test(test_unused),
        cmocka_unit_test(test_the_representative_is_replaced),
        cmocka_unit_test(test_a_representative_that_ended_is_replaced),
        cmocka_unit_test(test_waiting_costs_one_keepalive),
        cmocka_unit_test(test_silence_shows_to_all_that_wait),
        cmocka_unit_test(test_one_that_ended_among_many),
        cmocka_unit_test(test_different_timeouts),
        cmocka_unit_test(test_a_process_that_was_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
