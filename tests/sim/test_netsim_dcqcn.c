/*
 * Congestion control: senders keep to the rate that DCQCN allows, and queues are shorter for it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/netsim_world.h"

static struct netsim_config dcqcn_config(void)
{
    struct netsim_config config = netsim_world_config(NETSIM_DUMBBELL);
    config.transport.congestion.kind = NETSIM_CONGESTION_DCQCN;
    config.switches.ecn_min_bytes = 100000;
    config.switches.ecn_max_bytes = 400000;
    config.switches.ecn_probability = 0.2;
    config.transport.dcqcn.increase_ps = 55 * NETSIM_PS_PER_US;
    config.transport.dcqcn.additive_bps = 400000000;
    config.transport.dcqcn.hyper_bps = 1000000000;
    return config;
}

/* Where nothing is marked, every packet goes as it would without. */
static void without_marks_nothing_changes(void **state)
{
    (void)state;
    static struct netsim_world world;
    uint64_t hashes[2];
    for (unsigned on = 0; on < 2; on++) {
        struct netsim_config config = dcqcn_config();
        config.transport.congestion.kind = (enum netsim_congestion)on;
        config.switches.ecn_max_bytes = config.switches.ecn_min_bytes = 0;
        config.workload.rounds = 3;
        netsim_world_open(&world, &config, NULL, 0, 4);
        netsim_world_watch(&world);
        netsim_world_finish(&world);
        netsim_world_check_end(&world);
        netsim_world_check_done(&world);
        hashes[on] = world.seen.hash;
        netsim_world_close(&world);
    }
    assert_true(hashes[0] == hashes[1]);
}

/* ---- four flows through one cable -------------------------------------------------------------------- */

struct incast {
    struct netsim_world *world;
    netsim_time before_ps[4]; /* when the flow's last packet left */
    netsim_time gap_ps[4];    /* and how much later the next one may */
    uint64_t slowed;          /* packets that left below the line's rate */
    uint64_t marked_acks;
};

static void on_packet(void *context, const struct lh_netsim_packet *packet)
{
    struct incast *incast = context;
    const struct netsim_network *net = &incast->world->net.network;
    const struct netsim_transport *transport = &incast->world->net.transport;
    if (packet->kind == LH_NETSIM_ACK &&
        net->ports[packet->link].far == transport->flows[packet->flow].sender.source)
        incast->marked_acks += packet->marked;
    if (packet->kind != LH_NETSIM_DATA || net->ports[packet->link].owner >= net->hosts_count)
        return;
    uint32_t flow = packet->flow;
    assert_true(packet->at_ps >= incast->before_ps[flow] + incast->gap_ps[flow]);
    incast->before_ps[flow] = packet->at_ps;
    incast->gap_ps[flow] =
        8 * (uint64_t)packet->wire_bytes * NETSIM_PS_PER_S / transport->rates[flow].rate_bps;
    incast->slowed += transport->rates[flow].rate_bps < transport->rates[flow].line_bps;
}

/* Hosts 1 to 4 to host 0. Returns the longest queue. */
static uint64_t incast_run(struct netsim_world *world, const struct netsim_config *config,
                           struct incast *incast)
{
    static const struct netsim_flow_request flows[] = {
        {20000000, 0, 1, 0}, {20000000, 0, 2, 0}, {20000000, 0, 3, 0}, {20000000, 0, 4, 0}};
    netsim_world_open(world, config, flows, 4, 5);
    *incast = (struct incast){.world = world};
    if (config->transport.congestion.kind == NETSIM_CONGESTION_DCQCN) {
        netsim_world_watch(world);
        world->net.network.watcher = on_packet;
        world->net.network.watcher_context = incast;
    }
    netsim_world_finish(world);
    netsim_world_check_end(world);
    netsim_world_check_done(world);
    return world->net.network.ports[netsim_world_link(world, world->graph.hosts, 0)].queued_max_bytes;
}

static void queues_are_shorter_and_the_cable_stays_busy(void **state)
{
    (void)state;
    static struct netsim_world world;
    static struct incast incast;
    struct netsim_config config = dcqcn_config();
    uint64_t with = incast_run(&world, &config, &incast);
    netsim_time took_ps = world.net.network.now_ps;
    assert_true(incast.slowed > 5000 && incast.marked_acks > 50);
    assert_int_equal(world.net.network.totals.dropped_packets, 0);
    netsim_world_close(&world);
    config.transport.congestion.kind = NETSIM_CONGESTION_NONE;
    config.transport.window_bytes = 4000000;
    uint64_t without = incast_run(&world, &config, &incast);
    netsim_time alone_ps = world.net.network.now_ps;
    netsim_world_close(&world);
    assert_true(with < 2000000 && without > 2 * with);
    /* A cut by half costs what the recovery takes, no more. */
    assert_true(took_ps < alone_ps + alone_ps / 2);
}

static void notifications_come_at_max_so_often(void **state)
{
    (void)state;
    static struct netsim_world world;
    static struct incast incast;
    struct netsim_config config = dcqcn_config();
    incast_run(&world, &config, &incast);
    uint64_t each = incast.marked_acks;
    assert_true(each == world.net.network.totals.marked_packets);
    netsim_world_close(&world);
    config.transport.cnp_ps = 50 * NETSIM_PS_PER_US;
    incast_run(&world, &config, &incast);
    uint64_t maximum = 4 * (world.net.network.now_ps / config.transport.cnp_ps + 1);
    assert_true(incast.marked_acks > 4 && incast.marked_acks <= maximum);
    assert_true(incast.marked_acks < world.net.network.totals.marked_packets);
    netsim_world_close(&world);
}

/* A pace and DCQCN: the pace is what a flow begins with, and is never exceeded. */
static void a_pace_is_the_line(void **state)
{
    (void)state;
    static struct netsim_world world;
    static struct incast incast;
    struct netsim_config config = dcqcn_config();
    config.transport.rate_bps = 30000000000;
    incast_run(&world, &config, &incast);
    assert_true(world.net.transport.rates[0].line_bps == 30000000000 && incast.slowed > 1000);
    /* 20 MB in packets of 4,096 and 78 bytes. */
    assert_true(world.net.transport.flows[0].done_ps > 20380000ull * 8 * 1000 / 30);
    netsim_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_marks_nothing_changes),
        cmocka_unit_test(queues_are_shorter_and_the_cable_stays_busy),
        cmocka_unit_test(notifications_come_at_max_so_often),
        cmocka_unit_test(a_pace_is_the_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
