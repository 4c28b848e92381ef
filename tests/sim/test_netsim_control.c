/*
 * Flow control at its work in small things: credits inside a datacenter, pauses that end by themselves,
 * marking in proportion to the rate.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "netsim/flowcontrol/flow_links.h"
#include "support/netsim_world.h"

#define FRAME 4174u

static struct netsim_world world;

/* All to one, each link with so much buffer at its end. Returns the time. */
static netsim_time incast(uint64_t credit_bytes)
{
    struct netsim_config config = netsim_world_config(NETSIM_FAT_TREE);
    config.switches.credit_bytes = credit_bytes;
    config.transport.rto = 1e6;
    config.workload.kind = NETSIM_INCAST;
    config.workload.receiver = 0;
    config.workload.bytes = 500000;
    netsim_world_open(&world, &config, NULL, 0, 3);
    netsim_world_watch(&world);
    netsim_world_finish_in_steps(&world, NETSIM_PS_PER_US);
    netsim_world_check_end(&world);
    netsim_world_check_done(&world);
    assert_true(world.net.network.totals.dropped_packets == 0 &&
                world.net.network.totals.repeated_packets == 0);
    assert_true(world.net.network.totals.credits > 0 && world.net.network.totals.pauses == 0);
    for (uint32_t p = 0; p < world.net.network.ports_count; p++)
        if (world.net.network.ports[p].far >= world.graph.hosts)
            assert_true(world.net.network.ports[p].held_max_bytes <= credit_bytes);
    netsim_time took_ps = world.net.network.now_ps;
    netsim_world_close(&world);
    return took_ps;
}

/* The receiver's link is busy from the first packet to the last, as one flow would keep it. With less
 * than a round trip of credit (25 KB and three packets) it is not. */
static void credits_lose_nothing_and_waste_nothing(void **state)
{
    (void)state;
    netsim_time busy_ps = (netsim_time)80 * 15 * (500000 + 123 * 78);
    assert_true(incast(25000 + 4 * FRAME + 1000) < busy_ps + 20 * NETSIM_PS_PER_US);
    assert_true(incast(1000000) < busy_ps + 20 * NETSIM_PS_PER_US);
    assert_true(incast(2 * FRAME) > busy_ps + 100 * NETSIM_PS_PER_US);
}

/* Two to one. Returns the most that was held of one of the senders' links. */
static uint64_t held_by_alpha(double alpha)
{
    struct netsim_config config = netsim_world_config(NETSIM_LEAF_SPINE);
    config.topology.leaves = 2;
    config.topology.spines = 1;
    config.switches.pfc = true;
    config.switches.buffer_bytes = 1000000;
    config.switches.pfc_xoff_bytes = config.switches.pfc_xon_bytes = 50000;
    config.switches.pfc_alpha = alpha;
    config.transport.rto = 1e6;
    const struct netsim_flow_request flows[] = {{2000000, 0, 0, 2}, {2000000, 0, 1, 2}};
    uint64_t maximum = 0;
    netsim_world_open(&world, &config, flows, 2, 1);
    netsim_world_watch(&world);
    netsim_world_finish_in_steps(&world, NETSIM_PS_PER_US);
    netsim_world_check_end(&world);
    netsim_world_check_done(&world);
    assert_true(world.net.network.totals.dropped_packets == 0 && world.net.network.totals.pauses > 0);
    for (uint32_t host = 0; host < 2; host++)
        maximum = world.net.network.ports[host].held_max_bytes > maximum
                      ? world.net.network.ports[host].held_max_bytes
                      : maximum;
    netsim_world_close(&world);
    return maximum;
}

/* After the threshold come the packet that crosses it and a round trip of the link, 25 kB, and its ends. */
static void a_dynamic_threshold_gives_what_is_free(void **state)
{
    (void)state;
    const uint64_t after = 25000 + 4 * FRAME + 64;
    uint64_t fixed = held_by_alpha(0);
    assert_true(fixed > 50000 && fixed <= 50000 + after);
    /* Both hold q, and q is half of what is free: q = (1,000,000 - 2 q) / 2. */
    uint64_t half = held_by_alpha(0.5);
    assert_true(half > 230000 && half <= 250000 + after);
    assert_int_equal(held_by_alpha(0.01), fixed); /* xoff is more */
}

/* One flow over a link of which a pause of so many quanta takes a part; a resume or another pause is not
 * needed. */
static netsim_time paused_flow(uint32_t quanta, uint32_t again_quanta)
{
    struct netsim_config config = netsim_world_config(NETSIM_TWO_DATACENTERS);
    config.topology.long_delay_ps = 100 * NETSIM_PS_PER_US;
    config.longs = (struct netsim_long_config){
        .control = NETSIM_LONG_BIFROST, .slot_ps = 10 * NETSIM_PS_PER_US, .leak_slots = 1};
    config.topology.hosts = 2;
    const struct netsim_flow_request flow = {1000000, 0, 0, 16};
    netsim_world_open(&world, &config, &flow, 1, 1);
    assert_int_equal(netsim_run(&world.net, 20 * NETSIM_PS_PER_US, UINT64_MAX), 0);
    uint32_t dci = 32 + 20; /* after the hosts and the other switches of the first site */
    assert_string_equal(world.graph.nodes[dci].name, "a.dci");
    uint32_t port = netsim_world_link(&world, dci, dci + 21);
    for (unsigned i = 0; i < 2; i++) {
        const struct netsim_packet frame = {
            .cookie = i == 0 ? quanta : again_quanta,
            .wire_bytes = 64,
            .kind = LH_NETSIM_PAUSE,
            .priority = config.transport.data_priority,
        };
        netsim_signalling_on_signal(&world.net.control, world.net.network.ports[port].reverse, &frame);
        netsim_world_set_timers(&world);
    }
    netsim_world_finish(&world);
    assert_int_equal(world.net.transport.flows[0].sender.repeated_packets, 0);
    netsim_time took_ps = world.net.transport.flows[0].done_ps;
    assert_true(world.net.network.more[port].pauses >= 2);
    netsim_world_close(&world);
    return took_ps;
}

/* A quantum is 512 bits: 1.28 ns at 400 Gbit/s. */
static void a_pause_ends_by_itself_and_the_next_takes_its_place(void **state)
{
    (void)state;
    netsim_time free_ps = paused_flow(0, 0);
    netsim_time long_ps = paused_flow(1000, 60000);
    assert_true(long_ps > free_ps + 60000 * 1280 - NETSIM_PS_PER_US);
    assert_true(long_ps <= free_ps + 60000 * 1280);
    assert_int_equal(paused_flow(60000, 60000), long_ps);
    assert_int_equal(paused_flow(60000, 0), free_ps);
}

/* Two hosts send to one over links of another rate: the queue at the slower port marks sooner. */
static void marking_is_in_proportion_to_the_rate(void **state)
{
    (void)state;
    struct netsim_config config = netsim_world_config(NETSIM_DUMBBELL);
    config.topology.core_rate_bps = 50000000000;
    config.switches.ecn_min_bytes = 400000;
    config.switches.ecn_max_bytes = 400001;
    config.switches.ecn_probability = 1;
    const struct netsim_flow_request flows[] = {{300000, 0, 0, 4}, {300000, 0, 1, 5}};
    uint64_t marked[2];
    for (unsigned i = 0; i < 2; i++) {
        config.switches.ecn_rate_bps = i == 0 ? 0 : 100000000000;
        netsim_world_open(&world, &config, flows, 2, 1);
        netsim_world_finish(&world);
        marked[i] = world.net.network.totals.marked_packets;
        netsim_world_close(&world);
    }
    /* 600 kB come at 200 Gbit/s and leave at 50: at most 450 kB wait. Half of 400 kB is met more often. */
    assert_true(marked[0] > 0 && marked[1] > 3 * marked[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(credits_lose_nothing_and_waste_nothing),
        cmocka_unit_test(a_dynamic_threshold_gives_what_is_free),
        cmocka_unit_test(a_pause_ends_by_itself_and_the_next_takes_its_place),
        cmocka_unit_test(marking_is_in_proportion_to_the_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
