/*
 * Runs: the same seed gives the same packets, in one go or in slices; another seed gives others; a run that
 * is out of packets says so.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "support/netsim_world.h"

/* A bit of everything that draws: hashes, spraying, marks, faults, workload. */
static struct netsim_config varied_config(bool spray)
{
    struct netsim_config config = netsim_world_config(NETSIM_FAT_TREE);
    config.topology.faults = (struct lh_link_spec){
        .loss = 0.002, .duplicate = 0.01, .corrupt = 0.002, .reorder = 0.01, .jitter_ns = 100};
    config.switches.spray = spray;
    config.switches.queue_bytes = 60000;
    config.switches.ecn_min_bytes = 5000;
    config.switches.ecn_max_bytes = 50000;
    config.switches.ecn_probability = 0.5;
    config.transport.window_bytes = 200000;
    config.workload.bytes = 100000;
    config.workload.rounds = 2;
    config.workload.gap_ps = 5 * NETSIM_PS_PER_US;
    config.workload.jitter_ps = 3 * NETSIM_PS_PER_US;
    return config;
}

/* Each transport, with and without congestion control. */
static void vary_transport(struct netsim_config *config, uint64_t number)
{
    config->transport.kind = (enum netsim_transport_kind)(number % 3);
    config->transport.congestion.kind = (enum netsim_congestion)(number / 3 % 2);
}

enum how { IN_ONE_GO, BY_TIME, BY_EVENT, BY_BOTH };

static uint64_t run_hash(const struct netsim_config *config, uint64_t seed, enum how how)
{
    static struct netsim_world world;
    netsim_world_open(&world, config, NULL, 0, seed);
    netsim_world_watch(&world);
    int result = 0;
    for (uint64_t step = 1; result == 0; step++) {
        netsim_time span_ps = step * 7919 % 100000;
        netsim_time until_ps =
            how == BY_TIME || how == BY_BOTH ? world.net.network.now_ps + span_ps : NETSIM_NEVER;
        uint64_t events = how == BY_EVENT ? 1 : how == BY_BOTH ? step % 17 : UINT64_MAX;
        netsim_time before_ps = world.net.network.now_ps;
        uint64_t handled = world.net.network.totals.events;
        result = netsim_run(&world.net, until_ps, events);
        handled = world.net.network.totals.events - handled;
        assert_true(world.net.network.now_ps >= before_ps && handled <= events);
        assert_true(world.net.network.now_ps <= until_ps);
        if (result == 0 && handled < events)
            assert_true(world.net.network.now_ps == until_ps);
    }
    assert_int_equal(result, 1);
    assert_int_equal(netsim_run(&world.net, NETSIM_NEVER, UINT64_MAX), 1); /* asked again */
    netsim_world_check_end(&world);
    netsim_world_check_done(&world);
    assert_true(world.net.network.totals.marked_packets > 0 && world.net.network.totals.lost_packets > 0);
    uint64_t hash = world.seen.hash ^ world.net.network.now_ps ^ world.net.network.totals.events << 32;
    netsim_world_close(&world);
    return hash;
}

static void the_same_seed_gives_the_same_run(void **state)
{
    (void)state;
    for (unsigned spray = 0; spray < 2; spray++) {
        struct netsim_config config = varied_config(spray);
        vary_transport(&config, 4 * spray);
        uint64_t first = run_hash(&config, 1, IN_ONE_GO);
        assert_true(run_hash(&config, 1, IN_ONE_GO) == first);
        assert_true(run_hash(&config, 2, IN_ONE_GO) != first);
    }
}

static void slices_change_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct netsim_config config = varied_config(seed == 2);
        vary_transport(&config, seed - 1);
        uint64_t first = run_hash(&config, seed, IN_ONE_GO);
        assert_true(run_hash(&config, seed, BY_TIME) == first);
        assert_true(run_hash(&config, seed, BY_EVENT) == first);
        assert_true(run_hash(&config, seed, BY_BOTH) == first);
    }
}

static void out_of_packets(void **state)
{
    (void)state;
    static struct netsim_world world;
    for (unsigned variant = 0; variant < 4; variant++) {
        for (uint32_t packets = 1; packets <= 200; packets += 13) {
            struct netsim_config config = varied_config(false);
            config.packets_max = packets;
            config.switches.pfc = (variant & 1) != 0;
            config.switches.pfc_xoff_bytes = 5000;
            config.switches.pfc_xon_bytes = 5000;
            config.switches.queue_bytes = 0;
            config.topology.faults.duplicate = (variant & 2) != 0 ? 0.5 : 0;
            netsim_world_open(&world, &config, NULL, 0, packets);
            assert_int_equal(netsim_run(&world.net, NETSIM_NEVER, UINT64_MAX), -LH_ENOMEM);
            assert_true(world.net.network.pool.alive_max == packets);
            uint64_t events = world.net.network.totals.events;
            assert_int_equal(netsim_run(&world.net, NETSIM_NEVER, UINT64_MAX), -LH_ENOMEM);
            assert_true(world.net.network.totals.events == events);
            netsim_world_close(&world);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_gives_the_same_run),
        cmocka_unit_test(slices_change_nothing),
        cmocka_unit_test(out_of_packets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
