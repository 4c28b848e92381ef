/*
 * test_netsim_protocol.c - the real protocol as the transport of the simulator's hosts (transport.kind =
 * longhaul): every flow is a message that arrives, byte by byte (the simulator compares them).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/congestion.h>
#include <longhaul/netsim.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "netsim/fabric/sim_world.h"

#define FLOW_BYTES 262144u
#define PACKETS    64u /* of a flow, of 4096 bytes each */

typedef const char *const setting[2];

static struct lh_netsim_config *configure(setting *settings, size_t count)
{
    static setting base[] = {
        {"topology.kind", "fat-tree"},  {"topology.k", "4"},          {"topology.delay", "20us"},
        {"transport.kind", "longhaul"}, {"transport.rate", "10Gbit"}, {"workload.kind", "permutation"},
        {"workload.bytes", "256KiB"},   {"workload.rounds", "2"},     {"workload.gap", "5ms"},
    };
    struct lh_netsim_config *config;
    assert_int_equal(lh_netsim_config_create(&config), 0);
    for (size_t i = 0; i < sizeof base / sizeof base[0]; i++)
        assert_int_equal(lh_netsim_config_set(config, base[i][0], base[i][1]), 0);
    for (size_t i = 0; i < count; i++)
        if (lh_netsim_config_set(config, settings[i][0], settings[i][1]) != 0)
            fail_msg("%s", lh_last_error());
    return config;
}

static struct lh_netsim *create(setting *settings, size_t count, uint64_t seed)
{
    struct lh_netsim_config *config = configure(settings, count);
    struct lh_netsim *simulation = NULL;
    if (lh_netsim_create(config, seed, &simulation) != 0)
        fail_msg("%s", lh_last_error());
    lh_netsim_config_destroy(config);
    return simulation;
}

static struct lh_netsim_totals run(struct lh_netsim *simulation)
{
    struct lh_netsim_totals totals;
    if (lh_netsim_run(simulation, UINT64_MAX, UINT64_MAX) != 1)
        fail_msg("%s", lh_last_error());
    lh_netsim_totals(simulation, &totals);
    return totals;
}

/* Two schemes in one network that loses packets: all flows end; the code pays with parity, the other with
 * packets that are sent again. */
static void test_two_schemes_side_by_side(void **state)
{
    (void)state;
    static setting settings[] = {{"transport.schemes", "sr-nack ec:mds,k=32,m=8"},
                                 {"topology.link", "loss=1%"}};
    struct lh_netsim *simulation = create(settings, 2, 3);
    struct lh_netsim_totals totals = run(simulation);
    uint64_t repeated[2] = {0}, packets[2] = {0}, flows[2] = {0};
    assert_int_equal(totals.flows, 32);
    assert_int_equal(totals.flows_done, 32);
    assert_int_equal(totals.flows_failed, 0);
    assert_int_equal(totals.delivered_bytes, 32 * FLOW_BYTES);
    assert_true(totals.lost_packets > 0 && totals.ack_packets > 0);
    for (uint32_t i = 0; i < 32; i++) {
        struct lh_netsim_flow flow;
        assert_int_equal(lh_netsim_flow(simulation, i, &flow), 0);
        assert_true(flow.received_ps > flow.start_ps && flow.done_ps > flow.received_ps);
        assert_true(flow.ideal_ps > 0 && flow.done_ps - flow.start_ps > flow.ideal_ps);
        assert_true(flow.packets >= PACKETS);
        flows[flow.destination % 2]++;
        packets[flow.destination % 2] += flow.packets;
        repeated[flow.destination % 2] += flow.repeated_packets;
    }
    assert_int_equal(packets[0] + packets[1], totals.data_packets);
    assert_int_equal(repeated[0] + repeated[1], totals.repeated_packets);
    /* By sr-nack each packet beyond the message was sent again; by the code there are 16 of parity, less
     * those that an early end spared. */
    assert_int_equal(packets[0] - repeated[0], flows[0] * PACKETS);
    assert_true(repeated[0] > 0);
    assert_true(packets[1] - repeated[1] > flows[1] * (PACKETS + 8));
    lh_netsim_destroy(simulation);
}

/* With a deadline flows are done without what was lost; the rest is as it was sent, or the run fails. Each
 * packet is sent once. */
static void test_bounded(void **state)
{
    (void)state;
    static setting settings[] = {{"transport.schemes", "bounded:deadline=5ms"},
                                 {"topology.link", "loss=1%"}};
    struct lh_netsim *simulation = create(settings, 2, 3);
    struct lh_netsim_totals totals = run(simulation);
    uint64_t delivered_bytes = 0;
    assert_int_equal(totals.flows_done, 32);
    assert_true(totals.lost_packets > 0);
    assert_int_equal(totals.repeated_packets, 0);
    for (uint32_t i = 0; i < 32; i++) {
        struct lh_netsim_flow flow;
        assert_int_equal(lh_netsim_flow(simulation, i, &flow), 0);
        assert_true(flow.received_ps - flow.start_ps <= UINT64_C(5001) * 1000000);
        assert_true(flow.delivered_bytes <= flow.bytes);
        delivered_bytes += flow.delivered_bytes;
    }
    assert_true(delivered_bytes < 32 * FLOW_BYTES && delivered_bytes > 32 * FLOW_BYTES / 10 * 9);
    assert_int_equal(totals.delivered_bytes, delivered_bytes);
    lh_netsim_destroy(simulation);
}

/* In steps, by time and by events, nothing changes; another seed is another run. */
static void test_repeatable(void **state)
{
    (void)state;
    static setting settings[] = {{"transport.schemes", "auto sr-rto"}, {"topology.link", "loss=1%"}};
    struct lh_netsim *whole = create(settings, 2, 5);
    struct lh_netsim *steps = create(settings, 2, 5);
    struct lh_netsim *other = create(settings, 2, 6);
    struct lh_netsim_totals expected = run(whole), totals;
    uint64_t until_ps = 0;
    int result;
    do {
        until_ps += 1234567; /* no whole nanoseconds */
        result = lh_netsim_run(steps, until_ps, 100);
        assert_true(result >= 0);
        lh_netsim_totals(steps, &totals);
        until_ps = until_ps > totals.now_ps ? totals.now_ps : until_ps;
    } while (result == 0);
    assert_int_equal(totals.data_packets, expected.data_packets);
    assert_int_equal(totals.lost_packets, expected.lost_packets);
    bool differs = run(other).lost_packets != expected.lost_packets;
    for (uint32_t i = 0; i < 32; i++) {
        struct lh_netsim_flow one, two, three;
        assert_int_equal(lh_netsim_flow(whole, i, &one), 0);
        assert_int_equal(lh_netsim_flow(steps, i, &two), 0);
        assert_int_equal(lh_netsim_flow(other, i, &three), 0);
        assert_int_equal(one.done_ps, two.done_ps);
        assert_int_equal(one.received_ps, two.received_ps);
        differs |= one.done_ps != three.done_ps;
    }
    assert_true(differs);
    lh_netsim_destroy(whole);
    lh_netsim_destroy(steps);
    lh_netsim_destroy(other);
}

/* Without loss a flow takes the clear-to-send's way and little more than its own packets do. */
static void test_lone_flow(void **state)
{
    (void)state;
    static setting settings[] = {{"topology.kind", "two-hosts"}, {"workload.kind", "incast"},
                                 {"workload.senders", "1"},      {"workload.rounds", "1"},
                                 {"workload.bytes", "2MiB"},     {"transport.payload", "1024"}};
    const uint32_t bytes = 2097152;
    struct lh_netsim *simulation = create(settings, 6, 1);
    struct lh_netsim_totals totals = run(simulation);
    struct lh_netsim_flow flow;
    assert_int_equal(totals.flows_done, 1);
    assert_int_equal(totals.repeated_packets, 0);
    assert_int_equal(totals.data_packets, bytes / 1024);
    assert_int_equal(lh_netsim_flow(simulation, 0, &flow), 0);
    double min_ps = bytes * 8.0 / 10e9 * 1e12 + 3 * 20e6; /* pace, CTS, last packet, acknowledgement */
    assert_true((double)(flow.done_ps - flow.start_ps) >= min_ps * 0.85); /* a burst leaves at once */
    assert_true((double)(flow.done_ps - flow.start_ps) < min_ps * 1.05);
    lh_netsim_destroy(simulation);
}

/* Returns the packets that the queue dropped. */
static uint64_t run_bottleneck(const char *congestion)
{
    const setting settings[] = {
        {"topology.kind", "dumbbell"},        {"topology.hosts", "2"},     {"topology.rate", "10Gbit"},
        {"topology.core_rate", "1Gbit"},      {"topology.delay", "400us"}, {"switch.queue", "300kB"},
        {"switch.ecn_min", "30kB"},           {"switch.ecn_max", "150kB"}, {"transport.rate", "line"},
        {"workload.matrix", "across"},        {"workload.bytes", "4MB"},   {"workload.rounds", "1"},
        {"transport.congestion", congestion},
    };
    struct lh_netsim *simulation = create(settings, sizeof settings / sizeof settings[0], 1);
    struct lh_netsim_totals totals = run(simulation);
    assert_true(totals.flows == 2 && totals.flows_done == 2);
    assert_true((totals.marked_packets > 0) == (strcmp(congestion, "none") != 0));
    print_message("%s: %llu dropped, %llu marked, %llu us\n", congestion,
                  (unsigned long long)totals.dropped_packets, (unsigned long long)totals.marked_packets,
                  (unsigned long long)(totals.now_ps / 1000000));
    lh_netsim_destroy(simulation);
    return totals.dropped_packets;
}

/* Two hosts of 10 Gbit/s each through a cable of one: each controller finds its rate, with few losses and
 * with marks; without one, the rate of the hosts' cables is sent. */
static void test_congestion_controllers(void **state)
{
    (void)state;
    uint64_t dropped = run_bottleneck("none");
    assert_true(dropped > 1000);
    for (const struct lh_congestion *const *all = lh_congestions(); *all != NULL; all++)
        if (strcmp((*all)->name, "fixed") != 0 && run_bottleneck((*all)->name) > dropped / 3)
            fail_msg("%s: more than a third of %llu packets dropped (docs/CONTRIBUTING.md)", (*all)->name,
                     (unsigned long long)dropped);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        setting what;
        int error;
        const char *says;
    } cases[] = {
        {{"transport.payload", "1000"}, -LH_EINVAL, "MTU"},
        {{"transport.schemes", "gbn"}, -LH_EINVAL, "gbn"},
        {{"transport.schemes", " "}, -LH_EINVAL, "no scheme"},
        {{"transport.schemes", "auto auto auto auto auto auto auto auto auto"}, -LH_EINVAL, "more than 8"},
        {{"topology.k", "10"}, -LH_ERANGE, "250 hosts"},
        {{"workload.bytes", "1GiB"}, -LH_ERANGE, "flow 0"},
        {{"workload.rounds", "4097"}, -LH_ERANGE, "65552 flows"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lh_netsim_config *config = configure(&cases[i].what, 1);
        struct lh_netsim *simulation;
        assert_int_equal(lh_netsim_create(config, 1, &simulation), cases[i].error);
        if (strstr(lh_last_error(), cases[i].says) == NULL)
            fail_msg("%s", lh_last_error());
        lh_netsim_config_destroy(config);
    }
    static setting many[] = {{"topology.kind", "two-hosts"}, {"workload.rounds", "4097"}};
    struct lh_netsim_config *config = configure(many, 2);
    struct lh_netsim *simulation;
    assert_int_equal(lh_netsim_create(config, 1, &simulation), -LH_ERANGE);
    assert_non_null(strstr(lh_last_error(), "from host"));
    char text[300];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(lh_netsim_config_set(config, "transport.schemes", text), -LH_ERANGE);
    assert_string_equal(lh_netsim_config_unread(config, "transport.rto"), "transport.kind");
    assert_null(lh_netsim_config_unread(config, "transport.schemes"));
    lh_netsim_config_destroy(config);
}

static void on_packet(void *context, const struct lh_netsim_packet *packet)
{
    (void)context;
    (void)packet;
}

static void test_nobody_watches(void **state)
{
    (void)state;
    struct lh_netsim *simulation = create(NULL, 0, 1);
    assert_int_equal(lh_netsim_watch(simulation, 0, on_packet, NULL), -LH_EUNSUPPORTED);
    assert_int_equal(lh_netsim_watch(simulation, 0, NULL, NULL), 0);
    lh_netsim_destroy(simulation);
}

/* A network that carries nothing any more: connections give up, and the flows count as failed. */
static void test_dead_network(void **state)
{
    (void)state;
    static setting settings[] = {{"topology.link", "loss=100%"}, {"workload.rounds", "1"}};
    struct lh_netsim *simulation = create(settings, 2, 1);
    struct lh_netsim_totals totals = run(simulation);
    assert_int_equal(totals.flows_done + totals.flows_failed, 16);
    assert_true(totals.flows_failed > 0);
    lh_netsim_destroy(simulation);
}

/* The flows of a later round find connections that have ended: they fail, as those of the first. */
static void test_later_flows_fail(void **state)
{
    (void)state;
    static setting settings[] = {
        {"topology.kind", "two-hosts"}, {"topology.link", "loss=100%"}, {"workload.gap", "60s"}};
    struct lh_netsim *simulation = create(settings, 3, 1);
    struct lh_netsim_totals totals = run(simulation);
    assert_int_equal(totals.flows_started, totals.flows);
    assert_int_equal(totals.flows_failed, totals.flows);
    for (uint32_t i = 0; i < totals.flows; i++) {
        struct lh_netsim_flow flow;
        assert_int_equal(lh_netsim_flow(simulation, i, &flow), 0);
        assert_true(flow.failed && flow.done_ps == UINT64_MAX);
    }
    lh_netsim_destroy(simulation);
}

/* Time given in picoseconds is time up to the end of that nanosecond; between runs it may stand still, and a
 * connection's timer may be ahead of the network. */
static void test_time_between_runs(void **state)
{
    (void)state;
    struct lh_netsim *simulation = create(NULL, 0, 1);
    struct lh_netsim_totals totals;
    assert_int_equal(lh_netsim_run(simulation, 1500, UINT64_MAX), 0);
    assert_int_equal(lh_netsim_run(simulation, 1600, UINT64_MAX), 0);
    assert_int_equal(lh_netsim_run(simulation, 1000, UINT64_MAX), -LH_EINVAL);
    int result = 0;
    while (result == 0) {
        lh_netsim_totals(simulation, &totals);
        assert_true(lh_netsim_run(simulation, totals.now_ps, UINT64_MAX) >= 0);
        result = lh_netsim_run(simulation, UINT64_MAX, 1);
    }
    assert_int_equal(result, 1);
    lh_netsim_totals(simulation, &totals);
    assert_int_equal(totals.flows_done, 32);
    lh_netsim_destroy(simulation);
}

/* A pool that is too small ends the run, at once and for good: a packet that vanished would be a loss. */
static void test_packets_used_up(void **state)
{
    (void)state;
    static setting settings[] = {{"run.packets", "16"}};
    struct lh_netsim *simulation = create(settings, 1, 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(lh_netsim_run(simulation, UINT64_MAX, UINT64_MAX), -LH_ENOMEM);
        assert_string_equal(lh_last_error(), "pool of 16 packets is used up (raise run.packets)");
    }
    lh_netsim_destroy(simulation);
}

/* Who is refused since all packets are about goes on when some come back: a root that sends to seven at once
 * holds many more at a time. */
static void test_few_packets(void **state)
{
    (void)state;
    static setting settings[] = {{"workload.kind", "collective"}, {"workload.collective", "broadcast"},
                                 {"workload.members", "8"},       {"workload.schedule", "sequential"},
                                 {"workload.gap", "0"},           {"transport.window", "1MiB"},
                                 {"transport.payload", "1024"},   {"workload.rounds", "1"}};
    struct lh_netsim *simulation = create(settings, sizeof settings / sizeof *settings, 1);
    struct sim_world *world = NULL;
    for (unsigned number = 0; world == NULL; number++) {
        char name[SIM_WORLD_NAME_MAX];
        int bytes = snprintf(name, sizeof name, "netsim-%u", number);
        world = sim_world_enter(name, (size_t)bytes);
    }
    sim_world_few_packets(world);
    sim_world_leave(world);
    struct lh_netsim_totals totals = run(simulation);
    assert_int_equal(totals.flows_done, 7);
    assert_int_equal(totals.lost_packets, 0);
    lh_netsim_destroy(simulation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_schemes_side_by_side),
        cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_repeatable),
        cmocka_unit_test(test_lone_flow),
        cmocka_unit_test(test_congestion_controllers),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_nobody_watches),
        cmocka_unit_test(test_dead_network),
        cmocka_unit_test(test_later_flows_fail),
        cmocka_unit_test(test_time_between_runs),
        cmocka_unit_test(test_packets_used_up),
        cmocka_unit_test(test_few_packets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
