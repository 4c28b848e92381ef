/*
 * Priority flow control: nothing is dropped where there is headroom, what is held stays within the bound of
 * 802.1Qbb, pauses reach the hosts, and nobody stays paused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/netsim_world.h"

#define FRAME 4174u /* a full packet on the wire */

static struct netsim_config pfc_config(enum netsim_topology_kind kind)
{
    struct netsim_config config = netsim_world_config(kind);
    config.switches.pfc = true;
    config.transport.rto = 1e6; /* a packet that waits behind a pause is not lost */
    return config;
}

/* Event by event; the most that was held of one link's data. */
static uint64_t held_max_run(struct netsim_world *world)
{
    uint64_t maximum = 0;
    unsigned priority = world->config.transport.data_priority;
    while (netsim_run(&world->net, NETSIM_NEVER, 1) == 0) {
        for (uint32_t p = 0; p < world->net.network.ports_count; p++) {
            if (world->net.network.ports[p].held_bytes[priority] > maximum)
                maximum = world->net.network.ports[p].held_bytes[priority];
        }
    }
    return maximum;
}

/* After xoff: the packet that crosses it; what comes while the pause waits behind a packet, is sent, travels;
 * what is on the wire then, and the packet that is being sent. */
static uint64_t held_bound(const struct netsim_config *config)
{
    double wire = (double)config->topology.rate_bps / 8 * (double)config->topology.delay_ps * 1e-12;
    return config->switches.pfc_xoff_bytes + FRAME + 2 * (uint64_t)(wire + 1) + 2 * FRAME +
           LH_PFC_FRAME_BYTES;
}

static void check_lossless(const struct netsim_world *world)
{
    const struct lh_netsim_totals *totals = &world->net.network.totals;
    netsim_world_check_end(world);
    netsim_world_check_done(world);
    assert_true(totals->dropped_packets == 0 && totals->repeated_packets == 0);
    assert_true(totals->pauses > 0 && totals->pauses == totals->resumes);
}

static void what_is_held_stays_within_the_bound(void **state)
{
    (void)state;
    static const netsim_time delays[] = {0, 100000, 1000000, 5000000};
    static const uint64_t rates[] = {25000000000, 100000000000, 400000000000};
    static struct netsim_world world;
    for (size_t i = 0; i < 12; i++) {
        struct netsim_config config = pfc_config(NETSIM_DUMBBELL);
        config.topology.delay_ps = delays[i % 4];
        config.topology.rate_bps = rates[i / 4];
        config.switches.pfc_xoff_bytes = 60000;
        config.switches.pfc_xon_bytes = 50000;
        const struct netsim_flow_request flows[] = {
            {1200000, 0, 0, 4}, {1200000, 0, 1, 4}, {1200000, 0, 2, 5}, {1200000, 0, 4, 1}};
        netsim_world_open(&world, &config, flows, 4, 3);
        uint64_t maximum = held_max_run(&world);
        check_lossless(&world);
        assert_true(maximum > config.switches.pfc_xoff_bytes);
        if (maximum > held_bound(&config))
            fail_msg("case %zu: %llu bytes held, at most %llu", i, (unsigned long long)maximum,
                     (unsigned long long)held_bound(&config));
        netsim_world_close(&world);
    }
}

static void a_pause_spreads_up_to_the_hosts(void **state)
{
    (void)state;
    static struct netsim_world world;
    struct netsim_config config = pfc_config(NETSIM_FAT_TREE);
    config.workload.kind = NETSIM_INCAST;
    config.workload.receiver = 0;
    config.workload.bytes = 500000;
    netsim_world_open(&world, &config, NULL, 0, 3);
    netsim_world_watch(&world);
    netsim_world_finish_in_steps(&world, NETSIM_PS_PER_US);
    check_lossless(&world);
    uint32_t paused_hosts = 0;
    for (uint32_t host = 0; host < world.graph.hosts; host++) {
        const struct netsim_port_more *more = &world.net.network.more[netsim_host_port(host)];
        assert_int_equal(more->pauses > 0, more->paused_ps > 0);
        assert_true(more->paused_ps < world.net.network.now_ps);
        paused_hosts += more->pauses > 0;
    }
    assert_true(paused_hosts > 10);
    /* The receiver's link was never idle in between: 15 flows end as one long flow would. */
    netsim_time busy_ps = (netsim_time)80 * 15 * (500000 + 123 * 78);
    assert_true(world.net.network.now_ps < busy_ps + 20 * NETSIM_PS_PER_US);
    netsim_world_close(&world);
}

/* Only the data's priority is stopped: acknowledgements pass a paused host's port. */
static void other_priorities_go_on(void **state)
{
    (void)state;
    static struct netsim_world world;
    struct netsim_config config = pfc_config(NETSIM_DUMBBELL);
    const struct netsim_flow_request flow = {4096, 0, 0, 1};
    netsim_world_open(&world, &config, &flow, 1, 3);
    netsim_world_pause(&world, netsim_host_port(1), 3, true);
    netsim_world_finish(&world);
    assert_true(world.net.transport.flows[0].done_ps == world.net.transport.flows[0].ideal_ps);
    netsim_world_close(&world);

    netsim_world_open(&world, &config, &flow, 1, 3);
    world.net.runs_on = true;
    netsim_world_pause(&world, netsim_host_port(0), 3, true);
    assert_int_equal(netsim_run(&world.net, NETSIM_PS_PER_MS, UINT64_MAX), 1); /* until it is resumed */
    assert_int_equal(world.net.network.totals.data_packets, 0);
    netsim_world_pause(&world, netsim_host_port(0), 3, false);
    netsim_world_finish(&world);
    assert_true(world.net.transport.flows[0].done_ps ==
                world.net.transport.flows[0].ideal_ps + NETSIM_PS_PER_MS);
    assert_true(world.net.network.more[netsim_host_port(0)].paused_ps == NETSIM_PS_PER_MS);
    netsim_world_close(&world);
}

static void too_little_buffer_drops(void **state)
{
    (void)state;
    static struct netsim_world world;
    struct netsim_config config = pfc_config(NETSIM_FAT_TREE);
    config.transport.rto = 3;
    config.workload.kind = NETSIM_INCAST;
    config.workload.bytes = 500000;
    config.switches.buffer_bytes = 140000;
    netsim_world_open(&world, &config, NULL, 0, 3);
    netsim_world_watch(&world);
    netsim_world_finish_in_steps(&world, NETSIM_PS_PER_US);
    netsim_world_check_end(&world);
    netsim_world_check_done(&world);
    assert_true(world.net.network.totals.dropped_packets > 0);
    netsim_world_close(&world);
}

/* A pause that is lost would only cost a drop, but a resume that is lost, or reordered by the pause before
 * it, would stop its link for ever. */
static void faults_spare_pauses(void **state)
{
    (void)state;
    static struct netsim_world world;
    static const struct lh_link_spec faults[] = {
        {.loss = 0.05}, {.corrupt = 0.05}, {.jitter_ns = 3000}, {.duplicate = 0.05}};
    for (uint64_t i = 0; i < 12; i++) {
        struct netsim_config config = pfc_config(NETSIM_FAT_TREE);
        config.transport.rto = 3;
        config.topology.faults = faults[i % 4];
        config.switches.pfc_xoff_bytes = 20000;
        config.switches.pfc_xon_bytes = 15000;
        config.workload.kind = NETSIM_INCAST;
        config.workload.bytes = 200000;
        netsim_world_open(&world, &config, NULL, 0, i);
        netsim_world_watch(&world);
        int result = netsim_run(&world.net, NETSIM_PS_PER_S, UINT64_MAX);
        if (result != 1)
            fail_msg("case %llu: %llu of %llu flows are done", (unsigned long long)i,
                     (unsigned long long)world.net.network.totals.flows_done,
                     (unsigned long long)world.net.network.totals.flows);
        netsim_world_check_end(&world);
        netsim_world_check_done(&world);
        assert_true(world.net.network.totals.pauses > 0);
        netsim_world_close(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_held_stays_within_the_bound),
        cmocka_unit_test(a_pause_spreads_up_to_the_hosts),
        cmocka_unit_test(other_priorities_go_on),
        cmocka_unit_test(too_little_buffer_drops),
        cmocka_unit_test(faults_spare_pauses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
