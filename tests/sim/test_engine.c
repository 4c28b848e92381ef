/*
 * test_engine.c - engines over a simulated network: several connections of one engine, whose progress the
 * caller makes.
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
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/connection_pair.h"
#include "support/sim_engines.h"

#define PEERS        4u
#define MESSAGE      50000u
#define LONG_MESSAGE 1000000u           /* 8 ms of the link */
#define HANG_NS      (60 * LH_NS_PER_S) /* virtual */
#define LINK         "rtt=2ms,rate=1Gbit,loss=1e-2"
#define MS           LH_NS_PER_MS

struct net {
    struct sim_engines sim;
    struct lh_connection *ends[PEERS][2];
};

static void expect_refused(int code, int expected, const char *words)
{
    assert_int_equal(code, expected);
    if (!strstr(lh_last_error(), words))
        fail_msg("'%s' does not say '%s'", lh_last_error(), words);
}

/* Attributes of a small connection. */
static struct lh_attr attr_on(struct lh_engine *engine)
{
    struct lh_attr attr;
    connection_pair_attr(&attr);
    attr.engine = engine;
    return attr;
}

/* PEERS connections of engine 0: with itself (count 1), or one with engine 2 and the others with engine 1. */
static void begin(struct net *net, uint64_t seed, uint32_t count)
{
    sim_engines_open(&net->sim, "engines", seed, LINK, count, NULL);
    for (uint32_t peer = 0; peer < PEERS; peer++) {
        struct lh_attr attr = attr_on(net->sim.engines[0]);
        attr.reliability = peer % 2 ? "sr-nack" : "ec:mds";
        attr.peer_timeout_ns = LH_NS_PER_S;
        struct lh_attr other = attr;
        other.engine = net->sim.engines[count == 1 ? 0 : peer == 0 ? 2 : 1];
        sim_engines_join(net->ends[peer], &attr, &other);
    }
}

static void end(struct net *net)
{
    for (uint32_t peer = 0; peer < PEERS; peer++)
        for (int i = 0; i < 2; i++)
            lh_close(net->ends[peer][i]);
    sim_engines_close(&net->sim);
}

/* A message of every connection in `peers`, all at once, to end 1 (or 0). */
static void transfer_all(struct net *net, uint32_t first, uint32_t last, int to)
{
    struct lh_request *send[PEERS], *recv[PEERS];
    uint8_t *data[PEERS], *buffer[PEERS];
    for (uint32_t peer = first; peer < last; peer++) {
        data[peer] = connection_pair_bytes(MESSAGE, peer + 1);
        buffer[peer] = connection_pair_bytes(MESSAGE, 99);
        sim_engines_must(lh_recv(net->ends[peer][to], buffer[peer], MESSAGE, NULL, &recv[peer]), "lh_recv");
        sim_engines_must(lh_send(net->ends[peer][1 - to], data[peer], MESSAGE, NULL, &send[peer]),
                         "lh_send");
    }
    for (uint32_t peer = first; peer < last; peer++) {
        assert_int_equal(sim_engines_finish(&net->sim, send[peer]).error, 0);
        assert_int_equal(sim_engines_finish(&net->sim, recv[peer]).error, 0);
        assert_memory_equal(buffer[peer], data[peer], MESSAGE);
        free(data[peer]);
        free(buffer[peer]);
    }
}

static void test_connections_share_an_engine(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct net net;
        begin(&net, seed, seed % 2 ? 1 : 3);
        transfer_all(&net, 0, PEERS, 1);
        transfer_all(&net, 0, PEERS, 0);
        end(&net);
    }
}

static void test_progress_of_one_is_progress_of_all(void **state)
{
    (void)state;
    struct net net;
    struct lh_request *send, *recv;
    uint8_t out = 7, in = 0;
    begin(&net, 1, 1);
    sim_engines_must(lh_recv(net.ends[1][1], &in, 1, NULL, &recv), "lh_recv");
    sim_engines_must(lh_send(net.ends[1][0], &out, 1, NULL, &send), "lh_send");
    lh_time until = sim_world_now(net.sim.world) + HANG_NS;
    while (!lh_test(recv, NULL) || !lh_test(send, NULL)) {
        lh_time next = 0, now = sim_world_now(net.sim.world);
        assert_true(now < until);
        while (next <= now)
            sim_engines_must(lh_progress(net.ends[0][0], &next), "lh_progress");
        lh_time event = sim_world_next_event(net.sim.world);
        sim_world_advance(net.sim.world, event < next ? event : next);
    }
    assert_int_equal(in, out);
    lh_request_free(send);
    lh_request_free(recv);
    end(&net);
}

static void test_is_not_destroyed_under_connections(void **state)
{
    (void)state;
    struct net net;
    begin(&net, 1, 1);
    expect_refused(lh_engine_destroy(net.sim.engines[0]), -LH_ESTATE, "open connections: 8, listeners: 0");
    lh_close(net.ends[0][0]);
    net.ends[0][0] = NULL;
    expect_refused(lh_engine_destroy(net.sim.engines[0]), -LH_ESTATE, "open connections: 7");
    transfer_all(&net, 1, PEERS, 1);
    end(&net);
    sim_engines_must(lh_engine_destroy(NULL), "lh_engine_destroy");
}

enum way {
    PEER_CLOSES,
    PEER_FALLS_SILENT,
    THIS_END_CLOSES,
    WAYS,
};

/* A peer that has not answered yet learns nothing of a close by packets. */
static void await_path(struct net *net, struct lh_connection *connection)
{
    struct lh_path_view path = {0};
    lh_time until = sim_world_now(net->sim.world) + HANG_NS;
    while (path.rtt_ns == 0) {
        assert_true(sim_world_now(net->sim.world) < until);
        sim_engines_turn(&net->sim, until);
        sim_engines_must(lh_connection_path(connection, &path), "lh_connection_path");
    }
}

/* The first connection ends in the middle of a message; the others of its engine go on. */
static void one_ends(uint64_t seed, enum way way)
{
    struct net net;
    struct lh_request *send, *recv;
    uint8_t *data = connection_pair_bytes(LONG_MESSAGE, 1),
            *buffer = connection_pair_bytes(LONG_MESSAGE, 2);
    begin(&net, seed, 3);
    sim_engines_must(lh_recv(net.ends[0][1], buffer, LONG_MESSAGE, NULL, &recv), "lh_recv");
    sim_engines_must(lh_send(net.ends[0][0], data, LONG_MESSAGE, NULL, &send), "lh_send");
    await_path(&net, net.ends[0][0]);
    sim_engines_run(&net.sim, MS / 2);
    assert_false(lh_test(send, NULL));
    if (way == PEER_FALLS_SILENT) {
        sim_world_cut(net.sim.world, 0, 2, true);
        sim_world_cut(net.sim.world, 2, 0, true);
    } else {
        int closed = way == PEER_CLOSES;
        lh_close(net.ends[0][closed]);
        net.ends[0][closed] = NULL;
    }
    transfer_all(&net, 1, PEERS, 1);
    assert_int_equal(sim_engines_finish(&net.sim, send).error,
                     way == PEER_FALLS_SILENT ? -LH_EPEER : -LH_ECLOSED);
    assert_int_equal(sim_engines_finish(&net.sim, recv).error,
                     way == PEER_FALLS_SILENT ? -LH_EPEER : -LH_ECLOSED);
    transfer_all(&net, 1, PEERS, 0);
    free(data);
    free(buffer);
    end(&net);
}

static void test_one_that_ends_takes_nothing_with_it(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++)
        for (enum way way = 0; way < WAYS; way++)
            one_ends(seed, way);
}

static void test_memory_is_registered_once(void **state)
{
    (void)state;
    struct net net;
    struct lh_memory *memory;
    struct lh_request *request[2];
    uint8_t *data = connection_pair_bytes(MESSAGE, 5), *buffer = connection_pair_bytes(MESSAGE, 6);
    begin(&net, 3, 3);
    sim_engines_must(lh_register(net.ends[0][0], data, MESSAGE, &memory), "lh_register");
    lh_close(net.ends[0][0]);
    net.ends[0][0] = NULL;
    for (uint32_t peer = 1; peer < PEERS; peer++) {
        sim_engines_must(lh_recv(net.ends[peer][1], buffer, MESSAGE, NULL, &request[0]), "lh_recv");
        sim_engines_must(lh_send(net.ends[peer][0], data, MESSAGE, memory, &request[1]), "lh_send");
        assert_int_equal(sim_engines_finish(&net.sim, request[0]).error, 0);
        assert_int_equal(sim_engines_finish(&net.sim, request[1]).error, 0);
        assert_memory_equal(buffer, data, MESSAGE);
    }
    expect_refused(lh_send(net.ends[1][1], data, MESSAGE, memory, &request[0]), -LH_EINVAL,
                   "registered with another engine");
    sim_engines_must(lh_deregister(memory), "lh_deregister");
    sim_engines_must(lh_register(net.ends[1][0], data, MESSAGE, &memory),
                     "lh_register"); /* left to the engine */
    end(&net);
    free(data);
    free(buffer);
}

/* Of two connections of an engine one crosses a slow emulated link, the other does not. */
static void test_a_link_is_of_one_connection(void **state)
{
    (void)state;
    struct net net;
    lh_time took[2];
    begin(&net, 4, 3);
    for (uint32_t peer = 1; peer < 3; peer++) {
        for (int i = 0; i < 2; i++)
            lh_close(net.ends[peer][i]);
        struct lh_attr attr = attr_on(net.sim.engines[0]), other = attr_on(net.sim.engines[1]);
        if (peer == 1)
            sim_engines_must(lh_link_parse("rtt=200ms", &attr.link), "lh_link_parse");
        sim_engines_join(net.ends[peer], &attr, &other);
        lh_time began = sim_world_now(net.sim.world);
        transfer_all(&net, peer, peer + 1, 1);
        took[peer - 1] = sim_world_now(net.sim.world) - began;
    }
    assert_true(took[0] >= 100 * MS);
    assert_true(took[1] < 100 * MS);
    end(&net);
}

static void expect_contradiction(struct lh_attr attr, const char *words)
{
    struct lh_connection *connection;
    struct lh_listener *listener;
    expect_refused(lh_open(&attr, &connection), -LH_EINVAL, words);
    expect_refused(lh_listen("127.0.0.1:0", &attr, &listener), -LH_EINVAL, words);
    expect_refused(lh_connect("127.0.0.1:1", &attr, 0, &connection), -LH_EINVAL, words);
}

static void test_contradictions_are_named(void **state)
{
    (void)state;
    static const int cpus[] = {0};
    struct net net;
    begin(&net, 1, 1);
    struct lh_attr attr = attr_on(net.sim.engines[0]), wrong = attr;
    wrong.device = "sim:engines/1";
    expect_contradiction(wrong, "device sim:engines/1: the engine has sim:engines/0");
    wrong = attr;
    wrong.channels = 2;
    expect_contradiction(wrong, "channels 2: the engine has 1");
    wrong = attr;
    wrong.workers = 3;
    expect_contradiction(wrong, "workers 3: the engine has none");
    wrong = attr;
    wrong.coders = 2;
    expect_contradiction(wrong, "coders 2: the engine has none");
    wrong = attr;
    wrong.receive_buffer_bytes = 4096;
    expect_contradiction(wrong, "receive_buffer_bytes 4096: the engine has 33554432");
    wrong = attr;
    wrong.spin_ns = LH_NO_SPIN;
    expect_contradiction(wrong, "spin_ns none: the engine has 0");
    wrong = attr;
    wrong.worker_cpus = cpus;
    expect_contradiction(wrong, "worker_cpus");
    /* What is the same is no contradiction. */
    struct lh_connection *same;
    attr.device = "sim:engines/0";
    attr.channels = 1;
    attr.workers = LH_NO_WORKERS;
    attr.coders = LH_NO_CODERS;
    attr.receive_buffer_bytes = 32 << 20;
    sim_engines_must(lh_open(&attr, &same), "lh_open");
    sim_engines_must(lh_connection_attr(same, &wrong), "lh_connection_attr");
    assert_ptr_equal(wrong.engine, net.sim.engines[0]);
    lh_close(same);
    end(&net);
}

/* Channels are the connection's, up to the engine's. */
static void test_fewer_channels_than_the_engine(void **state)
{
    (void)state;
    struct net net;
    begin(&net, 5, 3);
    struct lh_engine_attr engine_attr;
    lh_engine_attr_init(&engine_attr);
    engine_attr.channels = 4;
    struct lh_engine *wide = sim_engine_create("sim:engines/1", &engine_attr);
    for (uint32_t channels = 1; channels <= 4; channels++) {
        struct lh_attr attr = attr_on(wide);
        attr.channels = channels;
        struct lh_connection *ends[2];
        sim_engines_join(ends, &attr, &attr);
        lh_close(net.ends[1][0]);
        lh_close(net.ends[1][1]);
        memcpy(net.ends[1], ends, sizeof ends);
        struct lh_engine *before = net.sim.engines[1];
        net.sim.engines[1] = wide; /* whose turn it is */
        transfer_all(&net, 1, 2, 1);
        net.sim.engines[1] = before;
    }
    lh_close(net.ends[1][0]);
    lh_close(net.ends[1][1]);
    net.ends[1][0] = net.ends[1][1] = NULL;
    sim_engines_must(lh_engine_destroy(wide), "lh_engine_destroy");
    end(&net);
}

static void test_bad_attributes_of_an_engine(void **state)
{
    (void)state;
    struct lh_engine_attr attr = {0};
    struct lh_engine *engine;
    expect_refused(lh_engine_create(&attr, &engine), -LH_EINVAL, "lh_engine_attr_init");
    lh_engine_attr_init(&attr);
    expect_refused(lh_engine_create(&attr, &engine), -LH_EDEVICE, "no device");
    attr.device = "sim:nowhere/0";
    expect_refused(lh_engine_create(&attr, &engine), -LH_EADDR, "nowhere");
    attr.device = "udp:127.0.0.1";
    attr.workers = 65;
    expect_refused(lh_engine_create(&attr, &engine), -LH_EINVAL, "workers 65");
    attr.workers = 2;
    expect_refused(lh_engine_create(&attr, &engine), -LH_EINVAL, "workers 2: exceed the channels, 1");
    attr.workers = 1;
    attr.worker_cpus = (int[]){-2};
    expect_refused(lh_engine_create(&attr, &engine), -LH_EINVAL, "worker CPU -2");
    attr.worker_cpus = NULL;
    attr.rate_bps = UINT64_MAX;
    expect_refused(lh_engine_create(&attr, &engine), -LH_EINVAL, "rate_bps 18446744073709551615");
    attr.rate_bps = 0;
    sim_engines_must(lh_engine_create(&attr, &engine), "lh_engine_create");
    expect_refused(lh_engine_progress(engine, NULL), -LH_ESTATE, "1 workers");
    sim_engines_must(lh_engine_destroy(engine), "lh_engine_destroy");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_connections_share_an_engine),
        cmocka_unit_test(test_progress_of_one_is_progress_of_all),
        cmocka_unit_test(test_is_not_destroyed_under_connections),
        cmocka_unit_test(test_one_that_ends_takes_nothing_with_it),
        cmocka_unit_test(test_memory_is_registered_once),
        cmocka_unit_test(test_a_link_is_of_one_connection),
        cmocka_unit_test(test_contradictions_are_named),
        cmocka_unit_test(test_fewer_channels_than_the_engine),
        cmocka_unit_test(test_bad_attributes_of_an_engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
