/*
 * A long link whose delay drifts: when packets arrive, and what flow control makes of it that counts with
 * the shortest delay, or with the longest.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "netsim/flowcontrol/link_rules.h"
#include "support/netsim_world.h"

#define FRAME 4174u
#define HOSTS 4u /* on either side; the second half receives */
#define US    NETSIM_PS_PER_US

static const char topology[] = "host a0\nhost a1\nhost a2\nhost a3\n"
                               "host b0 site=1\nhost b1 site=1\nhost b2 site=1\nhost b3 site=1\n"
                               "switch left tier=dci\nswitch right tier=dci site=1\n"
                               "link a0 left\nlink a1 left\nlink a2 left\nlink a3 left\n"
                               "link b0 right\nlink b1 right\nlink b2 right\nlink b3 right\n"
                               "link left right rate=400Gbit delay=100us\n";
#define LEFT    (2 * HOSTS)
#define RIGHT   (2 * HOSTS + 1)
#define BDP     10000000u /* 400 Gbit/s, 100 us one way */
#define PS_BYTE 20u       /* of the long link */

static struct netsim_world world;

static struct netsim_config drifting(netsim_time drift_ps, netsim_time period_ps)
{
    struct netsim_config config = netsim_world_config(NETSIM_TOPOLOGY_FILE);
    config.topology.file = (struct netsim_text){.data = topology, .bytes = sizeof topology - 1};
    config.longs.drift_ps = drift_ps;
    config.longs.drift_period_ps = period_ps;
    config.transport.rto = 1e6;
    return config;
}

static const struct netsim_port *long_link(void)
{
    return &world.net.network.ports[netsim_world_link(&world, LEFT, RIGHT)];
}

/* ---- the wire ---------------------------------------------------------------------------------------- */

/* What the delay is longer than 100 us at that time: up by an eighth of the time for 800 us, and down. */
static netsim_time longer_ps(netsim_time at_ps)
{
    netsim_time phase_ps = at_ps % (1600 * US);
    return (phase_ps <= 800 * US ? phase_ps : 1600 * US - phase_ps) / 8;
}

/* One packet at a time, there and back by turns: two cables of 100 Gbit/s and 1 us, and the long one. */
static void a_packet_arrives_when_it_should(void **state)
{
    (void)state;
    struct netsim_config config = drifting(100 * US, 1600 * US);
    struct netsim_flow_request none = {FRAME, NETSIM_TIME_MAX / 2, 0, HOSTS};
    netsim_world_open(&world, &config, &none, 1, 1);
    world.net.runs_on = true;
    for (unsigned i = 0; i < 20; i++) {
        struct netsim_raw raw = {
            .source = i % 2 == 0 ? 0 : HOSTS, .destination = i % 2 == 0 ? HOSTS : 0, .wire_bytes = 1000};
        netsim_time from_ps = world.net.network.now_ps;
        assert_true(netsim_raw_send(&world.net, &raw, i, 3));
        assert_int_equal(netsim_run(&world.net, (i + 1) * 333 * US, UINT64_MAX), 0);
        assert_true(netsim_raw_take(&world.net, &raw));
        netsim_time out_ps = from_ps + 1000 * 80 + US + 1000 * PS_BYTE;
        assert_int_equal(raw.arrive_ps, out_ps + 100 * US + longer_ps(out_ps) + 1000 * 80 + US);
    }
    netsim_world_close(&world);
}

/* Where the delay falls by a quarter of the time, packets come closer than they left, and in order: go-back-N
 * would ask for what was reordered. */
static void packets_stay_in_order(void **state)
{
    (void)state;
    struct netsim_config config = drifting(100 * US, 800 * US);
    struct netsim_flow_request flows[HOSTS];
    config.transport.kind = NETSIM_GBN;
    for (uint32_t i = 0; i < HOSTS; i++)
        flows[i] = (struct netsim_flow_request){30000000, i * 1000, i, HOSTS + i};
    netsim_world_open(&world, &config, flows, HOSTS, 1);
    netsim_world_watch(&world);
    netsim_world_finish_in_steps(&world, 50 * US);
    netsim_world_check_end(&world);
    netsim_world_check_done(&world);
    assert_int_equal(world.net.network.totals.repeated_packets, 0);
    netsim_world_close(&world);
}

/* ---- Bifrost ----------------------------------------------------------------------------------------- */

#define DRIFT  (20 * US)
#define PERIOD (4 * NETSIM_PS_PER_MS)
#define TOP    (2 * NETSIM_PS_PER_MS)            /* when the delay is longest */
#define LONGER ((uint32_t)(2 * DRIFT / PS_BYTE)) /* bytes more in a round trip then */

static struct netsim_config bifrost(uint64_t delta_bytes, bool by_arrivals)
{
    struct netsim_config config = drifting(DRIFT, PERIOD);
    config.longs.control = NETSIM_LONG_BIFROST;
    config.longs.slot_ps = 10 * US;
    config.longs.leak_slots = 1;
    config.longs.delta_bytes = delta_bytes;
    config.longs.by_arrivals = by_arrivals;
    config.switches.pfc = true;
    return config;
}

static void open_flows(const struct netsim_config *config)
{
    struct netsim_flow_request flows[HOSTS];
    for (uint32_t i = 0; i < HOSTS; i++)
        flows[i] = (struct netsim_flow_request){100000000, 0, i, HOSTS + i};
    netsim_world_open(&world, config, flows, HOSTS, 1);
    assert_int_equal(netsim_control_check(config, &world.graph), 0);
}

/* Everything flows; as the delay is longest the receivers stop until all that is under way has come. */
static uint64_t bytes_lost(const struct netsim_config *config)
{
    open_flows(config);
    assert_int_equal(netsim_run(&world.net, TOP - 150 * US, UINT64_MAX), 0);
    for (uint32_t i = 0; i < HOSTS; i++)
        netsim_world_pause(&world, netsim_world_link(&world, RIGHT, HOSTS + i),
                           config->transport.data_priority, true);
    assert_int_equal(netsim_run(&world.net, TOP + 550 * US, UINT64_MAX), 0);
    netsim_world_check(&world);
    uint64_t lost = world.net.network.totals.dropped_packets * FRAME;
    netsim_world_close(&world);
    return lost;
}

/* What the longer round trip holds nobody counts: it comes on top of L + F, which is a slot below H on a link
 * that is full, and the buffer has some packets more. F is never more than delta and a slot, so one that
 * loses what arrives forgets it as well. */
static void the_shortest_delta_loses_what_the_drift_adds(void **state)
{
    (void)state;
    uint32_t slot = 10 * US / PS_BYTE;
    /* Packets, and what pauses let through that come further apart: the slope times a round trip. */
    uint32_t spare = (BDP / slot + 5) * FRAME + 120000;
    uint32_t expected = LONGER - slot - spare;
    for (unsigned by_arrivals = 0; by_arrivals < 2; by_arrivals++) {
        struct netsim_config config = bifrost(BDP + FRAME + 64, by_arrivals == 1);
        assert_in_range(bytes_lost(&config), expected * 17 / 20, expected);
    }
}

/* While the delay grows each pause is late by more than the one before, and nothing can be deducted when the
 * way out stands still. */
static void a_stop_on_a_steep_slope_loses_nothing(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 28; i++) {
        struct netsim_config config = bifrost(0, false);
        config.longs.drift_period_ps = (100u << i / 4) * US;
        config.longs.guard_slots = i % 4;
        open_flows(&config);
        assert_int_equal(netsim_run(&world.net, 3 * NETSIM_PS_PER_MS, UINT64_MAX), 0);
        for (uint32_t h = 0; h < HOSTS; h++)
            netsim_world_pause(&world, netsim_world_link(&world, RIGHT, HOSTS + h),
                               config.transport.data_priority, true);
        assert_int_equal(netsim_run(&world.net, 13 * NETSIM_PS_PER_MS, UINT64_MAX), 0);
        netsim_world_check(&world);
        assert_int_equal(world.net.network.totals.dropped_packets, 0);
        netsim_world_close(&world);
    }
}

static void the_longest_delta_loses_nothing(void **state)
{
    (void)state;
    struct netsim_config config = bifrost(BDP + LONGER + FRAME + 64, false);
    assert_int_equal(bytes_lost(&config), 0);
    config = bifrost(0, false); /* auto */
    assert_int_equal(bytes_lost(&config), 0);
}

/* Bytes that the long link carries around the time of its longest delay, of 400 us' worth. */
static uint64_t bytes_carried(const struct netsim_config *config)
{
    open_flows(config);
    assert_int_equal(netsim_run(&world.net, TOP - 200 * US, UINT64_MAX), 0);
    uint64_t before = long_link()->sent_bytes;
    assert_int_equal(netsim_run(&world.net, TOP + 200 * US, UINT64_MAX), 0);
    uint64_t carried = long_link()->sent_bytes - before;
    assert_int_equal(world.net.network.totals.dropped_packets, 0);
    netsim_world_close(&world);
    return carried;
}

static void a_longer_way_is_used_in_full(void **state)
{
    (void)state;
    for (unsigned by_arrivals = 0; by_arrivals < 2; by_arrivals++) {
        uint64_t full = 400 * US / PS_BYTE;
        struct netsim_config config = bifrost(BDP + FRAME + 64, by_arrivals == 1);
        assert_in_range(bytes_carried(&config), full * 98 / 100, full + FRAME);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_packet_arrives_when_it_should),
        cmocka_unit_test(packets_stay_in_order),
        cmocka_unit_test(the_shortest_delta_loses_what_the_drift_adds),
        cmocka_unit_test(a_stop_on_a_steep_slope_loses_nothing),
        cmocka_unit_test(the_longest_delta_loses_nothing),
        cmocka_unit_test(a_longer_way_is_used_in_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
