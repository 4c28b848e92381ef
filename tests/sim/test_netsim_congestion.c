/*
 * Congestion controllers in the network simulator: each of them, with each transport, over links with all
 * faults; the pace and the window that they decide on; queues.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/netsim_world.h"

static void use_controller(struct netsim_config *config, const char *text)
{
    config->transport.congestion.kind = NETSIM_CONGESTION_CONTROLLER;
    snprintf(config->transport.congestion.controller, sizeof config->transport.congestion.controller, "%s",
             text);
}

/* ---- all of them ------------------------------------------------------------------------------------- */

static struct netsim_config faulty_config(const char *controller, enum netsim_transport_kind kind)
{
    struct netsim_config config = netsim_world_config(NETSIM_FAT_TREE);
    config.topology.faults = (struct lh_link_spec){
        .loss = 0.002, .duplicate = 0.01, .corrupt = 0.002, .reorder = 0.01, .jitter_ns = 100};
    config.switches.spray = true;
    config.switches.queue_bytes = 60000;
    config.switches.ecn_min_bytes = 5000;
    config.switches.ecn_max_bytes = 50000;
    config.switches.ecn_probability = 0.5;
    config.transport.kind = kind;
    config.workload.bytes = 300000;
    config.workload.rounds = 2;
    config.workload.jitter_ps = 3 * NETSIM_PS_PER_US;
    use_controller(&config, controller);
    return config;
}

static uint64_t run_hash(const struct netsim_config *config, netsim_time step_ps)
{
    static struct netsim_world world;
    netsim_world_open(&world, config, NULL, 0, 7);
    netsim_world_watch(&world);
    if (step_ps != 0)
        netsim_world_finish_in_steps(&world, step_ps);
    else
        netsim_world_finish(&world);
    netsim_world_check_end(&world);
    netsim_world_check_done(&world);
    assert_int_equal(world.net.network.totals.flows_done, world.net.transport.flows_count);
    uint64_t hash = world.seen.hash ^ world.net.network.now_ps;
    netsim_world_close(&world);
    return hash;
}

static void each_ends_with_each_transport_and_repeats_itself(void **state)
{
    (void)state;
    static const enum netsim_transport_kind kinds[] = {NETSIM_SR, NETSIM_IRN, NETSIM_GBN};
    for (const struct lh_congestion *const *all = lh_congestions(); *all != NULL; all++)
        for (unsigned i = 0; i < 3; i++) {
            struct netsim_config config = faulty_config((*all)->name, kinds[i]);
            assert_true(run_hash(&config, 0) == run_hash(&config, 77777));
        }
}

/* ---- the pace ---------------------------------------------------------------------------------------- */

/* 30 Gbit/s on the wire are 29.44 of payload: 20 MB take 5.435 ms, and a round trip. */
static void a_rate_that_is_told_is_kept(void **state)
{
    (void)state;
    static struct netsim_world world;
    static const struct netsim_flow_request flow = {20000000, 0, 0, 4};
    struct netsim_config config = netsim_world_config(NETSIM_DUMBBELL);
    config.transport.rate_bps = 30000000000;
    use_controller(&config, "fixed");
    netsim_world_open(&world, &config, &flow, 1, 1);
    netsim_world_finish(&world);
    netsim_world_check_done(&world);
    assert_in_range(world.net.transport.flows[0].done_ps, 5435 * NETSIM_PS_PER_US, 5445 * NETSIM_PS_PER_US);
    netsim_world_close(&world);
}

/* ---- the window -------------------------------------------------------------------------------------- */

struct watched {
    struct netsim_world *world;
    uint64_t window_bytes[4]; /* as it was when the packet before left */
    uint64_t held;            /* packets that left with the window nearly full */
};

/* What is in flight never exceeds the window, unless that has just become smaller: then nothing leaves. */
static void on_packet(void *context, const struct lh_netsim_packet *packet)
{
    struct watched *watched = context;
    const struct netsim_network *net = &watched->world->net.network;
    const struct netsim_transport *transport = &watched->world->net.transport;
    if (packet->kind != LH_NETSIM_DATA || net->ports[packet->link].owner >= net->hosts_count)
        return;
    const struct netsim_controlled *controlled = &transport->controllers.flows[packet->flow];
    uint64_t in_flight = flight_in_flight_bytes(&controlled->flight);
    uint64_t window = controlled->decision.window_bytes;
    assert_true(in_flight <= window || in_flight <= 4096 || window < watched->window_bytes[packet->flow]);
    assert_true(controlled->flight.sent_bytes <= controlled->decision.total_bytes);
    watched->window_bytes[packet->flow] = window;
    watched->held += transport->flows[packet->flow].sender.held;
}

/* Hosts 1 to 4 to host 0. */
static void run_incast(struct netsim_world *world, const struct netsim_config *config,
                       struct watched *watched)
{
    static const struct netsim_flow_request flows[] = {
        {20000000, 0, 1, 0}, {20000000, 0, 2, 0}, {20000000, 0, 3, 0}, {20000000, 0, 4, 0}};
    netsim_world_open(world, config, flows, 4, 5);
    *watched = (struct watched){.world = world};
    if (config->transport.congestion.kind == NETSIM_CONGESTION_CONTROLLER) {
        netsim_world_watch(world);
        world->net.network.watcher = on_packet;
        world->net.network.watcher_context = watched;
    }
    netsim_world_finish(world);
    netsim_world_check_end(world);
    netsim_world_check_done(world);
}

static uint64_t longest_queue(const struct netsim_world *world)
{
    return world->net.network.ports[netsim_world_link(world, world->graph.hosts, 0)].queued_max_bytes;
}

/* Without control the queue is what all windows hold, 16 MB, or what the switch does not drop. The bounds are
 * those of docs/CONTRIBUTING.md, "Add a congestion controller": of each that takes feedback. */
static void queues_are_shorter_and_the_cable_stays_busy(void **state)
{
    (void)state;
    static struct netsim_world world;
    static struct watched watched;
    struct netsim_config config = netsim_world_config(NETSIM_DUMBBELL);
    config.switches.ecn_min_bytes = 100000;
    config.switches.ecn_max_bytes = 400000;
    config.switches.ecn_probability = 0.2;
    config.transport.window_bytes = 4000000;
    config.transport.rto_min_ps = 2 * NETSIM_PS_PER_MS;
    run_incast(&world, &config, &watched);
    uint64_t without = longest_queue(&world);
    netsim_time alone_ps = world.net.network.now_ps;
    netsim_world_close(&world);
    for (const struct lh_congestion *const *all = lh_congestions(); *all != NULL; all++) {
        if (strcmp((*all)->name, "fixed") == 0)
            continue;
        use_controller(&config, (*all)->name);
        run_incast(&world, &config, &watched);
        print_message("%s: queue %llu of %llu, %llu of %llu us, %llu held\n", (*all)->name,
                      (unsigned long long)longest_queue(&world), (unsigned long long)without,
                      (unsigned long long)(world.net.network.now_ps / NETSIM_PS_PER_US),
                      (unsigned long long)(alone_ps / NETSIM_PS_PER_US), (unsigned long long)watched.held);
        if (longest_queue(&world) >= without / 2 || world.net.network.now_ps >= alone_ps + alone_ps / 2)
            fail_msg("%s: not what docs/CONTRIBUTING.md requires of a controller", (*all)->name);
        netsim_world_close(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_ends_with_each_transport_and_repeats_itself),
        cmocka_unit_test(a_rate_that_is_told_is_kept),
        cmocka_unit_test(queues_are_shorter_and_the_cable_stays_busy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
