/*
 * test_connection_limits.c - what limited a sender, where its cause is made: a load beside it, a receiver
 * that reads or posts late, a host that is slow. (The causes that options make: tests/e2e/cli_limits.sh.)
 *
 * Each cause exceeds all else by far, and time is virtual.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/connection_pair.h"
#include "support/netsim_world.h"

#define MIB ((size_t)1 << 20)
#define MS  LH_NS_PER_MS

static void open_pair(struct connection_pair *pair, const char *link, const char *congestion,
                      uint64_t receive_buffer_bytes)
{
    struct lh_attr attr;
    connection_pair_attr(&attr);
    attr.slot_bytes = MIB;
    attr.slots = 64;
    attr.congestion = congestion;
    attr.receive_buffer_bytes = receive_buffer_bytes;
    connection_pair_open(pair, "limits", 5, link, &attr, NULL);
}

static struct lh_bottleneck_report bottleneck_of(struct connection_pair *pair)
{
    struct lh_bottleneck_report report;
    assert_int_equal(lh_connection_bottleneck(pair->ends[0], &report), 0);
    return report;
}

static void expect(struct connection_pair *pair, enum lh_bottleneck bottleneck, const char *words)
{
    char text[LH_BOTTLENECK_WORDS_MAX];
    struct lh_bottleneck_report report = bottleneck_of(pair);
    assert_string_equal(lh_bottleneck_name(report.bottleneck), lh_bottleneck_name(bottleneck));
    lh_bottleneck_words(&report, text, sizeof text);
    if (!strstr(text, words))
        fail_msg("\"%s\" is not in \"%s\"", words, text);
}

/* ---- a load beside it -------------------------------------------------------------------------------- */

#define LOAD_MS 600u /* when it starts */

/* Cables of 1 Gbit/s and 5 ms; from LOAD_MS on datagrams of another host, which heed nothing, take 95 % of
 * the one to the receiver. */
static void open_network(struct netsim_world *network)
{
    struct netsim_config config = netsim_world_config(NETSIM_DUMBBELL);
    config.topology.hosts = 2; /* 0 and 1 on one side, 2 and 3 on the other */
    config.topology.rate_bps = 1000000000;
    config.topology.delay_ps = 5 * NETSIM_PS_PER_MS;
    config.switches.queue_bytes = 2500000; /* what the path holds */
    config.transport.ack_bytes = 0;
    config.transport.rate_bps = 950000000;
    const struct netsim_flow_request load = {
        .bytes = 1000 * MIB, .start_ps = LOAD_MS * NETSIM_PS_PER_MS, .source = 2, .destination = 1};
    netsim_world_open(network, &config, &load, 1, 7);
}

static void a_competing_load(void **state)
{
    (void)state;
    static struct netsim_world network;
    struct connection_pair pair;
    open_network(&network);
    open_pair(&pair, "none", "bbr", 0);
    sim_world_set_network(pair.world, &network.net);
    for (int i = 0; i < 3; i++)
        connection_pair_transfer(&pair, 0, 16 * MIB, 16 * MIB);
    assert_true(connection_pair_now(&pair) < LOAD_MS * MS);
    expect(&pair, LH_BOTTLENECK_PATH, "the path's queue (9");
    connection_pair_run(&pair, LOAD_MS * MS - connection_pair_now(&pair));
    for (int i = 0; i < 3; i++)
        connection_pair_transfer(&pair, 0, 16 * MIB, 16 * MIB);
    expect(&pair, LH_BOTTLENECK_COMPETITION, "a competing load, or a path that became slower (");
    assert_true(bottleneck_of(&pair).rate_bps < bottleneck_of(&pair).rate_best_bps / 2);
    connection_pair_close(&pair);
    netsim_world_close(&network);
}

/* What a path loses, delays or reorders at random is no load of others', whatever it does to the rate. */
static void no_competing_load(void **state)
{
    (void)state;
    const char *const paths[] = {"rtt=25ms,rate=200Mbit,loss=0.3,drop=tail,queue=600kB",
                                 "rtt=25ms,rate=200Mbit,loss=0.2,drop=tail,queue=600kB",
                                 "rtt=25ms,rate=200Mbit,reorder=0.1,jitter=10ms,drop=tail,queue=600kB"};
    for (unsigned i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct connection_pair pair;
        open_pair(&pair, paths[i], "bbr", 0);
        for (int n = 0; n < 3; n++) {
            connection_pair_transfer(&pair, 0, 8 * MIB, 8 * MIB);
            expect(&pair, LH_BOTTLENECK_LOSS, "loss or reordering (");
        }
        connection_pair_close(&pair);
    }
}

/* A message that is over before the controller has found a rate, and one that it paces by the limit. */
static void a_limit_that_was_given(void **state)
{
    (void)state;
    struct connection_pair pair;
    struct lh_attr attr;
    connection_pair_attr(&attr);
    attr.congestion = "bbr";
    attr.rate_max_bps = 30000000;
    connection_pair_open(&pair, "limits", 5, "rtt=10ms,rate=1Gbit,drop=tail", &attr, NULL);
    connection_pair_transfer(&pair, 0, 100000, 100000);
    expect(&pair, LH_BOTTLENECK_RATE, "the given rate (30Mbit/s)");
    connection_pair_transfer(&pair, 0, 4 * MIB, 4 * MIB);
    expect(&pair, LH_BOTTLENECK_RATE, "the given rate (30Mbit/s)");
    connection_pair_close(&pair);
}

/* ---- slow hosts -------------------------------------------------------------------------------------- */

/* One message, whose sender or receiver runs only once in that time, and then one round: 64 packets. */
static void transfer_with_slow_end(struct connection_pair *pair, int slow, lh_time every_ns, size_t bytes)
{
    uint8_t *data = connection_pair_bytes(bytes, 1), *buffer = malloc(bytes);
    struct lh_request *recv = connection_pair_recv(pair, 1, buffer, bytes);
    struct lh_request *send = connection_pair_send(pair, 0, data, bytes);
    lh_time until = connection_pair_now(pair) + 100 * LH_NS_PER_S, next = 0;
    struct lh_connection *slow_end = pair->ends[slow];
    while (!lh_test(send, NULL)) {
        lh_time now = connection_pair_now(pair);
        assert_true(now < until);
        if (now >= next) {
            assert_int_equal(lh_progress(slow_end, &pair->next[slow]), 0);
            next = now + every_ns;
        }
        pair->ends[slow] = NULL; /* connection_pair_turn() leaves it alone */
        connection_pair_turn(pair, next);
        pair->ends[slow] = slow_end;
    }
    lh_request_free(send);
    lh_request_free(recv);
    free(data);
    free(buffer);
}

static void this_hosts_cpu(void **state)
{
    (void)state;
    const char *const links[] = {"rtt=10ms", "rtt=1ms"};
    for (unsigned i = 0; i < 2; i++) {
        struct connection_pair pair;
        open_pair(&pair, links[i], "bbr", 0);
        transfer_with_slow_end(&pair, 0, MS, 8 * MIB);
        expect(&pair, LH_BOTTLENECK_HOST, "this host's CPU (use --channels and --workers)");
        connection_pair_close(&pair);
    }
}

static void this_hosts_device(void **state)
{
    (void)state;
    struct connection_pair pair;
    open_pair(&pair, "rtt=1ms,rate=1Gbit", NULL, 0);
    connection_pair_transfer(&pair, 0, 8 * MIB, 8 * MIB);
    expect(&pair, LH_BOTTLENECK_HOST, "this host's network device (its queue is full)");
    connection_pair_close(&pair);
}

/* Its sockets drop only in the beginning; later the sender follows what it reads, and still says why. */
static void the_receivers_cpu(void **state)
{
    (void)state;
    const char *const links[] = {"rtt=2ms,rate=10Gbit", "rtt=40ms,rate=10Gbit"};
    for (unsigned i = 0; i < 2; i++) {
        struct connection_pair pair;
        open_pair(&pair, links[i], "bbr", MIB / 4);
        connection_pair_transfer(&pair, 0, 1000, 1000);
        transfer_with_slow_end(&pair, 1, 5 * MS, 64 * MIB);
        assert_true(bottleneck_of(&pair).retransmitted < 0.1);
        expect(&pair, LH_BOTTLENECK_RECEIVER, "the receiver's CPU (its sockets dropped ");
        connection_pair_close(&pair);
    }
}

/* A quarter of the time it does not run, and then it reads all that waits. Nothing of that is the path's. */
static void a_receiver_that_pauses(void **state)
{
    (void)state;
    struct connection_pair pair;
    struct lh_congestion_report report;
    const size_t bytes = 128 * MIB;
    open_pair(&pair, "delay=12.5ms,rate=1Gbit,drop=tail,queue=6MB", "bbr", 64 * MIB);
    uint8_t *data = connection_pair_bytes(bytes, 1), *buffer = malloc(bytes);
    struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, bytes);
    struct lh_request *send = connection_pair_send(&pair, 0, data, bytes);
    struct lh_connection *receiver = pair.ends[1];
    while (!lh_test(send, NULL)) {
        lh_time phase = connection_pair_now(&pair) % (100 * MS);
        bool pauses = phase >= 75 * MS;
        pair.ends[1] = pauses ? NULL : receiver; /* connection_pair_turn() leaves it alone */
        connection_pair_turn(&pair, connection_pair_now(&pair) - phase + (pauses ? 100 : 75) * MS);
    }
    pair.ends[1] = receiver;
    assert_int_equal(lh_connection_congestion(pair.ends[0], &report), 0);
    assert_true(report.bandwidth_bps > 850000000 && report.bandwidth_bps < 1050000000);
    assert_true(report.queueing_delay_p99_ns < 10 * MS);
    assert_string_not_equal(report.state, "share");
    lh_request_free(send);
    lh_request_free(recv);
    free(data);
    free(buffer);
    connection_pair_close(&pair);
}

static void a_receiver_that_posts_late(void **state)
{
    (void)state;
    struct connection_pair pair;
    open_pair(&pair, "rtt=2ms,rate=1Gbit", "bbr", 0);
    uint8_t *data = connection_pair_bytes(MIB, 1), *buffer = malloc(MIB);
    struct lh_request *send = connection_pair_send(&pair, 0, data, MIB);
    connection_pair_run(&pair, 500 * MS);
    struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, MIB);
    assert_int_equal(connection_pair_finish(&pair, send).error, 0);
    assert_int_equal(connection_pair_finish(&pair, recv).error, 0);
    expect(&pair, LH_BOTTLENECK_RECEIVER, "the receiver (it reads, or posts receives, too late");
    free(data);
    free(buffer);
    connection_pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_competing_load),       cmocka_unit_test(no_competing_load),
        cmocka_unit_test(a_limit_that_was_given), cmocka_unit_test(this_hosts_cpu),
        cmocka_unit_test(this_hosts_device),      cmocka_unit_test(the_receivers_cpu),
        cmocka_unit_test(a_receiver_that_pauses), cmocka_unit_test(a_receiver_that_posts_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
