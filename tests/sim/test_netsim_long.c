/*
 * A long link between two switches, under each way of flow control: nothing is lost, the receiver's link is
 * never idle while the senders have something, and what is held stays within what the way needs. With less,
 * each of these fails.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/netsim_world.h"

#define FRAME    4174u
#define PAYLOAD  4096u
#define DELAY_US 100u
#define BDP      10000000u /* 400 Gbit/s, 100 us one way */
#define HOSTS    4u        /* on either side; the second half receives */

static const char plain[] = "host a0\nhost a1\nhost a2\nhost a3\n"
                            "host b0 site=1\nhost b1 site=1\nhost b2 site=1\nhost b3 site=1\n"
                            "switch left tier=dci\nswitch right tier=dci site=1\n"
                            "link a0 left\nlink a1 left\nlink a2 left\nlink a3 left\n"
                            "link b0 right\nlink b1 right\nlink b2 right\nlink b3 right\n";
static const char direct[] = "link left right rate=400Gbit delay=100us\n";
static const char relayed[] = "switch ra tier=relay\nswitch rb tier=relay site=1\n"
                              "link left ra rate=400Gbit delay=0\nlink rb right rate=400Gbit delay=0\n"
                              "link ra rb rate=400Gbit delay=100us\n";

struct way {
    const char *name;
    enum netsim_long_control control;
    bool by_arrivals;
    bool relay_threshold;
    uint64_t needs_bytes;
    uint32_t guard_slots;
};

/* A packet that crosses, one that waits, the pause frame. */
#define FEW (4 * FRAME + 64)

static const struct way ways[] = {
    {"pfc", NETSIM_LONG_PFC, false, false, 2 * BDP + FEW, 0},
    {"bifrost", NETSIM_LONG_BIFROST, false, false, BDP + 2 * 500000 + FEW, 0},
    {"bifrost, guarded", NETSIM_LONG_BIFROST, false, false, BDP + 2 * 500000 + FEW, 1},
    {"bifrost, as printed", NETSIM_LONG_BIFROST, true, false, BDP + 2 * 500000 + 24 * FRAME, 0},
    {"cbfc", NETSIM_LONG_CBFC, false, false, BDP + BDP / 50 + FEW, 0},
    {"swing", NETSIM_LONG_SWING, false, false, BDP + 20 * FRAME, 0},
    {"swing by threshold", NETSIM_LONG_SWING, false, true, 2 * BDP + 20 * FRAME, 0},
};
#define WAYS (sizeof ways / sizeof ways[0])
enum { PFC, BIFROST, GUARDED, PRINTED, CREDITS, SWING };

static struct netsim_world world;
static char topology[2048];

static struct netsim_config way_config(const struct way *way)
{
    struct netsim_config config = netsim_world_config(NETSIM_TOPOLOGY_FILE);
    bool relays = way->control == NETSIM_LONG_SWING;
    memcpy(topology, plain, sizeof plain);
    strcat(topology, relays ? relayed : direct);
    config.topology.file = (struct netsim_text){.data = topology, .bytes = strlen(topology)};
    config.switches.pfc = true;
    config.longs = (struct netsim_long_config){
        .control = way->control,
        .slot_ps = 10 * NETSIM_PS_PER_US,
        .leak_slots = 1,
        .guard_slots = way->guard_slots,
        .by_arrivals = way->by_arrivals,
        .relay_threshold = way->relay_threshold,
    };
    config.transport.rto = 1e6;
    if (way->relay_threshold) { /* which then is PFC, and needs as much */
        config.longs.xoff_bytes = BDP + FEW;
        config.longs.buffer_bytes = way->needs_bytes;
    }
    return config;
}

/* Each sender's flow of so many bytes, to so many receivers. */
static void open_flows(const struct netsim_config *config, uint64_t bytes, uint32_t receivers)
{
    struct netsim_flow_request flows[HOSTS];
    for (uint32_t i = 0; i < HOSTS; i++)
        flows[i] = (struct netsim_flow_request){bytes, 0, i, HOSTS + i % receivers};
    netsim_world_open(&world, config, flows, HOSTS, 1);
    assert_int_equal(netsim_control_check(config, &world.graph), 0);
}

static uint32_t node_named(const char *name)
{
    for (uint32_t n = 0; n < world.graph.nodes_count; n++)
        if (strcmp(world.graph.nodes[n].name, name) == 0)
            return n;
    fail_msg("no %s", name);
    return 0;
}

/* The link by which the long way comes to where the deep buffer is. */
static const struct netsim_port *long_link(void)
{
    bool relays = world.config.longs.control == NETSIM_LONG_SWING;
    uint32_t from = node_named(relays ? "ra" : "left");
    return &world.net.ports[netsim_world_link(&world, from, node_named(relays ? "rb" : "right"))];
}

static uint32_t link_to_receiver(uint32_t receiver)
{
    return netsim_world_link(&world, node_named("right"), HOSTS + receiver);
}

static void stop_receivers(uint32_t receivers, bool stop)
{
    for (uint32_t i = 0; i < receivers; i++) {
        if (stop)
            netsim_stop(&world.net, link_to_receiver(i), world.config.transport.data_priority);
        else
            netsim_go(&world.net, link_to_receiver(i), world.config.transport.data_priority);
    }
}

static void check_whole(const struct way *way)
{
    netsim_world_check(&world);
    if (world.net.totals.dropped_packets != 0 || world.net.totals.repeated_packets != 0)
        fail_msg("%s: %llu packets dropped", way->name,
                 (unsigned long long)world.net.totals.dropped_packets);
    if (long_link()->held_max_bytes > way->needs_bytes)
        fail_msg("%s: %llu bytes held", way->name, (unsigned long long)long_link()->held_max_bytes);
}

/* How long the receivers' links take for all, from the first byte there to the last acknowledgement. */
static netsim_time busy_ps(uint64_t bytes, uint32_t receivers)
{
    uint64_t packets = HOSTS / receivers * ((bytes + PAYLOAD - 1) / PAYLOAD);
    return packets * FRAME * 80 + 2 * DELAY_US * NETSIM_PS_PER_US + 10 * NETSIM_PS_PER_US;
}

/* A guarded link has frames until it is at rest: all that was granted has come, and the last frame. */
static netsim_time rest_ps(const struct way *way)
{
    return way->guard_slots != 0 ? (3 * DELAY_US + 30) * NETSIM_PS_PER_US : 0;
}

static void a_free_way_is_used_in_full(void **state)
{
    (void)state;
    for (size_t w = 0; w < WAYS; w++) {
        struct netsim_config config = way_config(&ways[w]);
        open_flows(&config, 8000000, HOSTS);
        netsim_world_watch(&world);
        netsim_world_finish_in_steps(&world, 50 * NETSIM_PS_PER_US);
        netsim_world_check_end(&world);
        netsim_world_check_done(&world);
        check_whole(&ways[w]);
        assert_true(world.net.now_ps < busy_ps(8000000, HOSTS) + rest_ps(&ways[w]));
        netsim_world_close(&world);
    }
}

/* Four to one: the long link must come down to a quarter, and the receiver's is never idle. */
static void a_narrow_way_out_is_never_idle(void **state)
{
    (void)state;
    for (size_t w = 0; w < WAYS; w++) {
        struct netsim_config config = way_config(&ways[w]);
        open_flows(&config, 8000000, 1);
        netsim_world_finish(&world);
        netsim_world_check_done(&world);
        check_whole(&ways[w]);
        assert_true(long_link()->held_max_bytes > BDP / 4);
        if (world.net.now_ps > busy_ps(8000000, 1) + rest_ps(&ways[w]))
            fail_msg("%s: %llu ps", ways[w].name, (unsigned long long)world.net.now_ps);
        netsim_world_close(&world);
    }
}

/* The worst case of figure 5: all at the full rate, then nothing leaves for a while, then all does again. */
static void stop_and_go(const struct netsim_config *config, uint64_t bytes)
{
    open_flows(config, bytes, HOSTS);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(netsim_run(&world.net, (1 + 4 * i) * 333 * NETSIM_PS_PER_US, UINT64_MAX), 0);
        stop_receivers(HOSTS, true);
        assert_int_equal(netsim_run(&world.net, (3 + 4 * i) * 333 * NETSIM_PS_PER_US, UINT64_MAX), 0);
        stop_receivers(HOSTS, false);
    }
    assert_int_equal(netsim_run(&world.net, NETSIM_PS_PER_S, UINT64_MAX), 1);
}

static void a_stop_overflows_nothing_and_costs_only_itself(void **state)
{
    (void)state;
    for (size_t w = 0; w < WAYS; w++) {
        struct netsim_config config = way_config(&ways[w]);
        stop_and_go(&config, 20000000);
        netsim_world_check_done(&world);
        check_whole(&ways[w]);
        assert_true(long_link()->held_max_bytes > BDP * 9 / 10);
        netsim_time stopped_ps = 4 * 333 * NETSIM_PS_PER_US + rest_ps(&ways[w]);
        if (world.net.now_ps > busy_ps(20000000, HOSTS) + stopped_ps + 20 * NETSIM_PS_PER_US)
            fail_msg("%s: %llu ps", ways[w].name, (unsigned long long)world.net.now_ps);
        netsim_world_close(&world);
    }
}

/* ---- and with less it fails -------------------------------------------------------------------------- */

static uint64_t dropped(const struct netsim_config *config)
{
    struct netsim_config patient = *config;
    patient.transport.rto = 3;
    stop_and_go(&patient, 20000000);
    uint64_t count = world.net.totals.dropped_packets;
    netsim_world_close(&world);
    return count;
}

static void too_small_a_buffer_drops(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[PFC]);
    config.longs.xoff_bytes = BDP;
    config.longs.buffer_bytes = 2 * BDP - BDP / 10;
    assert_true(dropped(&config) > 0);
    config.longs.buffer_bytes = 2 * BDP + FEW;
    assert_int_equal(dropped(&config), 0);

    config = way_config(&ways[BIFROST]); /* a delta that is not that of the link */
    config.longs.delta_bytes = BDP * 8 / 10;
    assert_true(dropped(&config) > 0);
    config.longs.delta_bytes = BDP + FRAME + 64;
    assert_int_equal(dropped(&config), 0);

    config = way_config(&ways[SWING]);
    config.longs.buffer_bytes = BDP * 9 / 10;
    assert_true(dropped(&config) > 0);
}

/* PFC that pauses at a tenth of what it should: it loses nothing, and its receiver runs dry. */
static void too_low_a_threshold_runs_dry(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[PFC]);
    config.longs.xoff_bytes = BDP / 10;
    config.longs.buffer_bytes = BDP / 10 + BDP + FEW;
    stop_and_go(&config, 20000000);
    assert_int_equal(world.net.totals.dropped_packets, 0);
    netsim_time stopped_ps = 4 * 333 * NETSIM_PS_PER_US;
    assert_true(world.net.now_ps > busy_ps(20000000, HOSTS) + stopped_ps + 100 * NETSIM_PS_PER_US);
    netsim_world_close(&world);
}

/* Nearly each pause lets a part of a packet through. F of the proof knows, F as it is printed does not. */
static void long_leaking(const struct way *way, uint64_t *drops)
{
    struct netsim_config config = way_config(way);
    config.transport.rto = 3;
    open_flows(&config, 200000000, 2);
    assert_int_equal(netsim_run(&world.net, 25 * NETSIM_PS_PER_MS, UINT64_MAX), 0);
    stop_receivers(2, true);
    assert_int_equal(netsim_run(&world.net, 27 * NETSIM_PS_PER_MS, UINT64_MAX), 0);
    *drops = world.net.totals.dropped_packets;
    netsim_world_check(&world);
    netsim_world_close(&world);
}

static void leaks_add_up_only_as_printed(void **state)
{
    (void)state;
    uint64_t drops = 0;
    long_leaking(&ways[BIFROST], &drops);
    assert_int_equal(drops, 0);
    long_leaking(&ways[PRINTED], &drops);
    assert_true(drops > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_free_way_is_used_in_full),
        cmocka_unit_test(a_narrow_way_out_is_never_idle),
        cmocka_unit_test(a_stop_overflows_nothing_and_costs_only_itself),
        cmocka_unit_test(too_small_a_buffer_drops),
        cmocka_unit_test(too_low_a_threshold_runs_dry),
        cmocka_unit_test(leaks_add_up_only_as_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
