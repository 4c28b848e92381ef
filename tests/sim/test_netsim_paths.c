/*
 * Which way packets go, and in which order: a flow keeps its path, sprayed packets spread evenly, higher
 * priorities go first, packets of one priority stay in order; raw packets.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "support/netsim_world.h"

#define FLOWS 200u
#define LINKS 512u

/* ---- paths ---- */

struct paths {
    uint32_t packets[FLOWS][LINKS]; /* of data, by flow and link */
};

static void on_path(void *context, const struct lh_netsim_packet *packet)
{
    struct paths *paths = context;
    assert_true(packet->flow < FLOWS && packet->link < LINKS);
    if (packet->kind == LH_NETSIM_DATA)
        paths->packets[packet->flow][packet->link]++;
}

static void watch_paths(struct netsim_world *world, struct paths *paths)
{
    memset(paths, 0, sizeof *paths);
    netsim_world_watch(world);
    world->net.network.watcher = on_path;
    world->net.network.watcher_context = paths;
}

static void a_flow_keeps_its_path(void **state)
{
    (void)state;
    static struct netsim_world world;
    static struct paths paths;
    struct netsim_config config = netsim_world_config(NETSIM_FAT_TREE);
    config.workload.rounds = FLOWS / 16;
    config.workload.bytes = 20 * 4096;
    netsim_world_open(&world, &config, NULL, 0, 11);
    watch_paths(&world, &paths);
    netsim_world_finish(&world);
    for (uint32_t f = 0; f < world.net.transport.flows_count; f++) {
        uint32_t source = world.list.flows[f].source;
        uint32_t destination = world.list.flows[f].destination;
        uint32_t expected = source / 2 == destination / 2 ? 2 : source / 4 == destination / 4 ? 4 : 6;
        uint32_t links = 0;
        for (uint32_t p = 0; p < world.net.network.ports_count; p++) {
            assert_true(paths.packets[f][p] == 0 || paths.packets[f][p] == 20);
            links += paths.packets[f][p] > 0;
        }
        assert_int_equal(links, expected);
    }
    netsim_world_close(&world);
}

static void sprayed_packets_spread_evenly(void **state)
{
    (void)state;
    static struct netsim_world world;
    static struct paths paths;
    struct netsim_config config = netsim_world_config(NETSIM_LEAF_SPINE);
    const struct netsim_flow_request flow = {8000 * 4096, 0, 0, 5};
    config.switches.spray = true;
    config.transport.reorder_packets = 1000000;
    netsim_world_open(&world, &config, &flow, 1, 11);
    watch_paths(&world, &paths);
    netsim_world_finish(&world);
    netsim_world_check_end(&world);
    netsim_world_check_done(&world);
    assert_int_equal(world.net.network.totals.repeated_packets, 0);
    double sum = 0;
    for (uint32_t spine = 0; spine < 4; spine++) {
        uint32_t up = netsim_world_link(&world, world.graph.hosts, world.graph.hosts + 4 + spine);
        double off = paths.packets[0][up] - 2000.0;
        sum += off * off / 2000.0;
    }
    assert_true(sum < 16.3); /* chi-square, 3 degrees of freedom: 1 in 1,000 */
    netsim_world_close(&world);
}

/* ---- raw packets ---- */

static struct netsim_config raw_config(enum netsim_topology_kind kind)
{
    struct netsim_config config = netsim_world_config(kind);
    config.packets_max = 1024;
    return config;
}

static void send_raw(struct netsim_world *world, uint32_t source, uint32_t destination, uint32_t bytes,
                     uint8_t priority, uint64_t cookie)
{
    struct netsim_raw raw = {
        .cookie = cookie, .source = source, .destination = destination, .wire_bytes = bytes};
    assert_true(netsim_raw_send(&world->net, &raw, (uint32_t)cookie, priority));
}

/* The first packet leaves at once; the rest in the order of their priority, then of their coming. */
static void higher_priorities_go_first(void **state)
{
    (void)state;
    static struct netsim_world world;
    struct netsim_config config = raw_config(NETSIM_TWO_HOSTS);
    netsim_world_open(&world, &config, (struct netsim_flow_request[]){{0}}, 0, 1);
    for (uint32_t i = 0; i < 80; i++)
        send_raw(&world, 0, 1, 1000, (uint8_t)(i * 5 % 8), i);
    netsim_world_finish(&world);
    struct netsim_raw raw;
    uint64_t last = 0;
    for (uint32_t i = 0; i < 80; i++) {
        assert_true(netsim_raw_take(&world.net, &raw));
        assert_true(raw.arrive_ps == (i + 1) * 80000 + NETSIM_PS_PER_US);
        assert_true(raw.source == 0 && raw.destination == 1 && raw.wire_bytes == 1000);
        uint64_t rank = i == 0 ? 0 : (8 - raw.cookie * 5 % 8) * 1000 + raw.cookie;
        assert_true(i == 0 ? raw.cookie == 0 : rank > last);
        last = rank;
    }
    assert_false(netsim_raw_take(&world.net, &raw));
    netsim_world_check_end(&world);
    netsim_world_close(&world);
}

/* The same at a switch: low priority from host 1, then high priority from host 2, to host 0. */
static void a_switch_lets_higher_priorities_pass(void **state)
{
    (void)state;
    static struct netsim_world world;
    struct netsim_config config = raw_config(NETSIM_DUMBBELL);
    netsim_world_open(&world, &config, (struct netsim_flow_request[]){{0}}, 0, 1);
    for (uint32_t i = 0; i < 50; i++) {
        send_raw(&world, 1, 0, 1000, 2, i);
        send_raw(&world, 3, 0, 1000, 2, 100 + i);
        send_raw(&world, 2, 0, 1000, 7, 200 + i);
    }
    netsim_world_finish(&world);
    struct netsim_raw raw;
    uint32_t high = 0;
    for (uint32_t i = 0; i < 150; i++) {
        assert_true(netsim_raw_take(&world.net, &raw));
        if (raw.cookie >= 200) {
            assert_true(raw.cookie == 200 + high);
            high++;
            assert_true(i <= 2 * high); /* as fast as they come: behind one of the others at most */
        }
    }
    assert_int_equal(high, 50);
    netsim_world_check_end(&world);
    netsim_world_close(&world);
}

/* Flows send behind what waits at their priority or above, and before the rest. */
static void flows_and_raw_packets_share_a_port(void **state)
{
    (void)state;
    static struct netsim_world world;
    struct netsim_config config = raw_config(NETSIM_TWO_HOSTS);
    const struct netsim_flow_request flow = {100 * 4096, 0, 0, 1};
    netsim_world_open(&world, &config, &flow, 1, 1);
    for (uint64_t i = 0; i < 10; i++)
        send_raw(&world, 0, 1, 1000, i % 2 == 0 ? 3 : 2, i);
    netsim_world_finish(&world);
    struct netsim_raw raw;
    for (uint64_t i = 0; i < 10; i++) {
        bool before = i < 5; /* packets 0, 2, 4 … */
        netsim_time flow_ps = 100 * 4174 * 80;
        assert_true(netsim_raw_take(&world.net, &raw));
        assert_true(raw.cookie == (before ? 2 * i : 2 * (i - 5) + 1));
        assert_true(raw.arrive_ps == NETSIM_PS_PER_US + (i + 1) * 80000 + (before ? 0 : flow_ps));
    }
    netsim_world_check_end(&world);
    netsim_world_close(&world);
}

static void a_dropped_one_comes_back(void **state)
{
    (void)state;
    static struct netsim_world world;
    struct netsim_config config = raw_config(NETSIM_DUMBBELL);
    config.switches.queue_bytes = 3000;
    netsim_world_open(&world, &config, (struct netsim_flow_request[]){{0}}, 0, 1);
    for (uint32_t i = 0; i < 20; i++) {
        send_raw(&world, 1, 0, 1000, 3, i);
        send_raw(&world, 2, 0, 1000, 3, 100 + i);
        send_raw(&world, 3, 0, 1000, 3, 200 + i);
    }
    world.net.network.switches[1].route.up_width = 0; /* nothing leads from the right to the left */
    send_raw(&world, 5, 1, 1000, 3, 300);
    netsim_world_finish(&world);
    struct netsim_raw raw;
    netsim_time last_ps = 0;
    uint32_t ends[301] = {0};
    uint32_t dropped = 0;
    while (netsim_raw_take(&world.net, &raw)) {
        assert_true(raw.cookie <= 300 && raw.arrive_ps >= last_ps);
        last_ps = raw.arrive_ps;
        ends[raw.cookie]++;
        assert_true(raw.destination == 0 || raw.destination == NETSIM_DROPPED);
        dropped += raw.destination == NETSIM_DROPPED;
    }
    for (uint32_t i = 0; i < 301; i++)
        assert_int_equal(ends[i], i == 300 || (i < 300 && i % 100 < 20));
    assert_true(dropped > 20 && dropped == world.net.network.totals.dropped_packets + 1);
    assert_int_equal(world.net.network.totals.unroutable_packets, 1);
    netsim_world_check_end(&world);
    netsim_world_close(&world);
}

/* Every raw packet ends exactly once, whatever the link does; a corrupted one arrives, and says so. */
static void faults_end_each_exactly_once(void **state)
{
    (void)state;
    static struct netsim_world world;
    struct netsim_config config = raw_config(NETSIM_TWO_HOSTS);
    config.topology.faults = (struct lh_link_spec){
        .loss = 0.1, .duplicate = 0.2, .corrupt = 0.1, .reorder = 0.1, .jitter_ns = 900};
    netsim_world_open(&world, &config, (struct netsim_flow_request[]){{0}}, 0, 1);
    for (uint32_t i = 0; i < 1000; i++)
        send_raw(&world, 0, 1, 200, 3, i);
    netsim_world_finish(&world);
    struct netsim_raw raw;
    netsim_time last_ps = 0;
    uint32_t ends[1000] = {0};
    uint32_t lost = 0;
    uint32_t corrupted = 0;
    uint32_t later_arrived = 0;
    uint64_t highest = 0;
    while (netsim_raw_take(&world.net, &raw)) {
        assert_true(raw.arrive_ps >= last_ps);
        last_ps = raw.arrive_ps;
        ends[raw.cookie]++;
        lost += raw.destination == NETSIM_DROPPED;
        corrupted += raw.corrupted;
        later_arrived += raw.cookie < highest && raw.destination != NETSIM_DROPPED;
        highest = raw.cookie > highest && raw.destination != NETSIM_DROPPED ? raw.cookie : highest;
    }
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(ends[i], 1);
    assert_true(lost == world.net.network.totals.lost_packets && lost > 60 && lost < 140);
    assert_true(corrupted == world.net.network.totals.corrupted_packets && corrupted > 55 &&
                corrupted < 130);
    assert_true(later_arrived > 100 && world.net.network.totals.duplicated_packets == 0);
    netsim_world_check_end(&world);
    netsim_world_close(&world);
}

static void the_pool_and_the_clock(void **state)
{
    (void)state;
    static struct netsim_world world;
    struct netsim_config config = raw_config(NETSIM_TWO_HOSTS);
    struct netsim_raw raw = {.source = 1, .wire_bytes = 1000};
    config.packets_max = 16;
    netsim_world_open(&world, &config, (struct netsim_flow_request[]){{0}}, 0, 1);
    world.net.runs_on = true;
    for (uint32_t i = 0; i < 16; i++)
        assert_true(netsim_raw_send(&world.net, &raw, 0, 0));
    assert_false(netsim_raw_send(&world.net, &raw, 0, 0));
    assert_int_equal(netsim_run(&world.net, 1080000, UINT64_MAX), 0);
    assert_true(netsim_raw_take(&world.net, &raw) && raw.arrive_ps == 1080000);
    assert_false(netsim_raw_take(&world.net, &raw));
    raw = (struct netsim_raw){.source = 1, .wire_bytes = 1000, .cookie = 77};
    assert_true(netsim_raw_send(&world.net, &raw, 0, 0));
    assert_int_equal(netsim_run(&world.net, 50000000, UINT64_MAX), 1);
    assert_true(world.net.network.now_ps == 50000000);
    for (uint32_t i = 0; i < 16; i++)
        assert_true(netsim_raw_take(&world.net, &raw));
    assert_true(raw.cookie == 77);
    netsim_settle(&world.net, 70000000);
    raw = (struct netsim_raw){.source = 1, .wire_bytes = 1000};
    assert_true(netsim_raw_send(&world.net, &raw, 0, 0));
    netsim_world_finish(&world);
    assert_true(netsim_raw_take(&world.net, &raw) && raw.arrive_ps == 71080000);
    netsim_world_check_end(&world);
    netsim_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flow_keeps_its_path),
        cmocka_unit_test(sprayed_packets_spread_evenly),
        cmocka_unit_test(higher_priorities_go_first),
        cmocka_unit_test(a_switch_lets_higher_priorities_pass),
        cmocka_unit_test(flows_and_raw_packets_share_a_port),
        cmocka_unit_test(a_dropped_one_comes_back),
        cmocka_unit_test(faults_end_each_exactly_once),
        cmocka_unit_test(the_pool_and_the_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
