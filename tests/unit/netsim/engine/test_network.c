/*
 * test_network.c -
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "netsim/engine/network.h"
#include "support/small_network.h"

/* ---- test graph ------------------------------------------------------------------------------------ */

/* host 0 and switches 1, 2 in site 0; switch 3 in site 1. */
static struct netsim_node graph_nodes[4];
static struct netsim_cable cables[] = {{.ends = {0, 1}}, {.ends = {1, 2}}, {.ends = {2, 3}}};
static struct netsim_graph graph_graph = {
    .hosts = 1, .nodes_count = 4, .cables_count = 3, .sites = 2, .nodes = graph_nodes, .cables = cables};

static int start(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++)
        graph_nodes[i] =
            (struct netsim_node){.tier = i == 0 ? NETSIM_TIER_HOST : NETSIM_TIER_TOR, .site = i == 3};
    return 0;
}

static void a_long_cable_joins_switches_of_different_sites(void **state)
{
    (void)state;
    assert_false(netsim_cable_is_long(&graph_graph, &cables[0]));
    assert_false(netsim_cable_is_long(&graph_graph, &cables[1]));
    assert_true(netsim_cable_is_long(&graph_graph, &cables[2]));
    const struct netsim_cable to_host = {.ends = {3, 0}};
    assert_false(netsim_cable_is_long(&graph_graph, &to_host));
}

static void its_switches_are_borders(void **state)
{
    (void)state;
    netsim_mark_borders(&graph_graph);
    assert_true(!graph_nodes[0].border && !graph_nodes[1].border && graph_nodes[2].border &&
                graph_nodes[3].border);
}

static void so_are_a_relay_and_its_neighbours_that_switch(void **state)
{
    (void)state;
    graph_nodes[1].tier = NETSIM_TIER_RELAY;
    graph_nodes[3].site = 0;
    netsim_mark_borders(&graph_graph);
    assert_true(!graph_nodes[0].border && graph_nodes[1].border && graph_nodes[2].border &&
                !graph_nodes[3].border);
}

static int run_graph(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_long_cable_joins_switches_of_different_sites, start),
        cmocka_unit_test_setup(its_switches_are_borders, start),
        cmocka_unit_test_setup(so_are_a_relay_and_its_neighbours_that_switch, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test network ---------------------------------------------------------------------------------- */

static void links_are_numbered_node_by_node(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    struct netsim_network *network = open_network(&config);
    assert_true(network->ports_count == 10 && network->hosts_count == 4);
    uint32_t owner = 0;
    for (uint32_t p = 0; p < network->ports_count; p++) {
        const struct netsim_port *port = &network->ports[p];
        assert_true(port->owner >= owner);
        owner = port->owner;
        assert_int_equal(network->ports[port->reverse].reverse, p);
        assert_true(network->ports[port->reverse].owner == port->far);
        assert_int_equal((port->flags & NETSIM_PORT_OF_HOST) != 0, port->owner < 4);
        assert_int_equal((port->flags & NETSIM_PORT_TO_HOST) != 0, port->far < 4);
    }
    for (uint32_t host = 0; host < 4; host++)
        assert_int_equal(network->ports[netsim_host_port(host)].owner, host);
    netsim_world_close(&world);
}

static void ecn_thresholds_are_in_proportion_to_the_rate(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    config.topology.core_rate_bps = 400000000000;
    config.switches.ecn_min_bytes = 100000;
    config.switches.ecn_max_bytes = 200000;
    config.switches.ecn_rate_bps = 100000000000;
    struct netsim_network *network = open_network(&config);
    uint32_t core = netsim_world_link(&world, LEFT, RIGHT);
    assert_int_equal(network->more[0].ecn_min_bytes, 100000);
    assert_int_equal(network->more[core].ecn_min_bytes, 400000);
    assert_int_equal(network->more[core].ecn_max_bytes, 800000);
    netsim_world_close(&world);
}

static void only_the_bottleneck_has_faults(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    config.topology.faults.loss = 0.1;
    struct netsim_network *network = open_network(&config);
    uint32_t core = netsim_world_link(&world, LEFT, RIGHT);
    for (uint32_t p = 0; p < network->ports_count; p++) {
        bool faulty = p == core || p == network->ports[core].reverse;
        assert_int_equal((network->ports[p].flags & NETSIM_PORT_FAULTY) != 0, faulty);
        assert_int_equal(network->more[p].faults != NULL, faulty);
    }
    netsim_world_close(&world);
}

static void only_long_links_drift_and_lose_signals(void **state)
{
    (void)state;
    struct netsim_config config = netsim_world_config(NETSIM_TWO_DATACENTERS);
    config.topology.hosts = 2;
    config.longs.drift_ps = 1000;
    config.longs.drift_period_ps = NETSIM_PS_PER_MS;
    config.longs.signal_loss = 0.5;
    struct netsim_network *network = open_network(&config);
    uint32_t drifting = 0;
    for (uint32_t p = 0; p < network->ports_count; p++) {
        const struct netsim_port *port = &network->ports[p];
        bool is_long = world.graph.nodes[port->owner].site != world.graph.nodes[port->far].site;
        assert_int_equal((port->flags & NETSIM_PORT_DRIFTS) != 0, is_long);
        assert_int_equal(network->more[p].signals != NULL, is_long);
        drifting += is_long;
    }
    assert_int_equal(drifting, 2);
    netsim_world_close(&world);
}

static void buckets_are_about_as_wide_as_events_are_apart(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    struct netsim_network *network = open_network(&config);
    assert_int_equal(netsim_network_bucket_ps(network, 4174), 4174 * 80 / 11 + 1);
    netsim_world_close(&world);
}

static int run_network(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_are_numbered_node_by_node),
        cmocka_unit_test(ecn_thresholds_are_in_proportion_to_the_rate),
        cmocka_unit_test(only_the_bottleneck_has_faults),
        cmocka_unit_test(only_long_links_drift_and_lose_signals),
        cmocka_unit_test(buckets_are_about_as_wide_as_events_are_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test port queue ------------------------------------------------------------------------------- */

static void each_priority_is_a_queue_in_order(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    struct netsim_network *network = open_network(&config);
    struct netsim_port *port = &network->ports[0];
    uint32_t packets[4];
    for (unsigned i = 0; i < 4; i++) {
        packets[i] = new_packet(network, i % 2 == 0 ? 2 : 5);
        netsim_queue_append(network, 0, packets[i]);
    }
    assert_int_equal(netsim_queue_ready(port), 1u << 2 | 1u << 5);
    assert_int_equal(netsim_queue_highest(netsim_queue_ready(port)), 5);
    assert_true(port->queued_bytes == 4 * FULL && port->queue_bytes[5] == 2 * FULL);
    assert_int_equal(netsim_queue_take(network, port, 5), packets[1]);
    assert_int_equal(netsim_queue_take(network, port, 5), packets[3]);
    assert_int_equal(netsim_queue_ready(port), 1u << 2);
    assert_int_equal(netsim_queue_take(network, port, 2), packets[0]);
    assert_int_equal(netsim_queue_take(network, port, 2), packets[2]);
    assert_true(netsim_queue_ready(port) == 0 && port->queued_bytes == 0);
    assert_int_equal(port->queued_max_bytes, 4 * FULL);
    netsim_world_close(&world);
}

static void signals_have_a_queue_of_their_own(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    struct netsim_network *network = open_network(&config);
    uint32_t first = new_packet(network, 3);
    uint32_t second = new_packet(network, 3);
    netsim_queue_append_urgent(network, 0, first);
    netsim_queue_append_urgent(network, 0, second);
    assert_int_equal(network->ports[0].queued_bytes, 0);
    assert_int_equal(netsim_queue_take_urgent(network, 0), first);
    assert_int_equal(netsim_queue_take_urgent(network, 0), second);
    assert_int_equal(network->ports[0].urgent_first, NETSIM_NO_PACKET);
    assert_int_equal(network->urgent_packets, 2);
    netsim_world_close(&world);
}

/* Time counts while any priority is paused. */
static void a_paused_priority_is_not_ready(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    struct netsim_network *network = open_network(&config);
    netsim_queue_append(network, 0, new_packet(network, 3));
    network->now_ps = 100;
    netsim_queue_pause(network, 0, 3);
    assert_int_equal(netsim_queue_ready(&network->ports[0]), 0);
    network->now_ps = 150;
    netsim_queue_pause(network, 0, 3);
    netsim_queue_pause(network, 0, 4);
    network->now_ps = 200;
    netsim_queue_resume(network, 0, 3);
    assert_int_equal(netsim_queue_ready(&network->ports[0]), 1u << 3);
    assert_int_equal(network->more[0].paused_ps, 0);
    network->now_ps = 300;
    netsim_queue_resume(network, 0, 4);
    netsim_queue_resume(network, 0, 4);
    assert_int_equal(network->more[0].paused_ps, 200);
    netsim_world_close(&world);
}

static int run_port_queue(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_priority_is_a_queue_in_order),
        cmocka_unit_test(signals_have_a_queue_of_their_own),
        cmocka_unit_test(a_paused_priority_is_not_ready),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test raw -------------------------------------------------------------------------------------- */

static const struct netsim_raw request = {.cookie = 99, .source = 0, .destination = 3, .wire_bytes = 1500};

static void ended_packets_come_in_order(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    struct netsim_network *network = open_network(&config);
    struct netsim_raw raw;
    assert_false(netsim_raw_next(network, &raw));
    uint32_t arrived = netsim_raw_new(network, &request, 5, 3);
    uint32_t dropped = netsim_raw_new(network, &request, 5, 3);
    network->now_ps = 777;
    netsim_packet_drop(network, dropped);
    netsim_raw_end(network, arrived, true);
    assert_true(netsim_raw_next(network, &raw));
    assert_true(raw.destination == NETSIM_DROPPED && raw.cookie == 99 && raw.arrive_ps == 777);
    assert_true(netsim_raw_next(network, &raw));
    assert_true(raw.destination == 3 && raw.source == 0 && raw.wire_bytes == 1500 && !raw.corrupted);
    assert_false(netsim_raw_next(network, &raw));
    assert_int_equal(network->pool.alive, 0);
    netsim_world_close(&world);
}

static void a_corrupted_packet_names_its_bit(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    struct netsim_network *network = open_network(&config);
    struct netsim_raw raw;
    uint32_t packet = netsim_raw_new(network, &request, 5, 3);
    network->pool.packets[packet].flags |= NETSIM_CORRUPTED;
    network->pool.packets[packet].echo = 1234;
    netsim_raw_end(network, packet, true);
    assert_true(netsim_raw_next(network, &raw));
    assert_true(raw.corrupted && raw.corrupt_bit == 1234);
    netsim_world_close(&world);
}

static void packets_for_signals_are_left_alone(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    config.packets_max = 64;
    config.switches.pfc = true;
    struct netsim_network *network = open_network(&config);
    uint32_t count = 0;
    while (netsim_raw_new(network, &request, 5, 3) != NETSIM_NO_PACKET)
        count++;
    assert_int_equal(count, 64 - network->reserved_packets);
    assert_int_equal(network->reserved_packets, 32); /* half of them, where four a link are more */
    assert_true(netsim_packet_new(network) != NETSIM_NO_PACKET && !network->out_of_packets);
    netsim_world_close(&world);
}

static void others_than_raw_packets_are_just_dropped(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    struct netsim_network *network = open_network(&config);
    struct netsim_raw raw;
    netsim_packet_drop(network, new_packet(network, 3));
    assert_int_equal(network->pool.alive, 0);
    assert_false(netsim_raw_next(network, &raw));
    netsim_world_close(&world);
}

static int run_raw(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ended_packets_come_in_order),
        cmocka_unit_test(a_corrupted_packet_names_its_bit),
        cmocka_unit_test(packets_for_signals_are_left_alone),
        cmocka_unit_test(others_than_raw_packets_are_just_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test route ------------------------------------------------------------------------------------ */

/* The closed form and the table. */

/* Hosts 10 … 21 are below, four behind each pair of ports from 5 on; everything else through 11, 12, 13. */
static void test_closed_form(void **state)
{
    (void)state;
    const struct netsim_route route = {.below_first = 10,
                                       .below_count = 12,
                                       .hosts_per_group = 4,
                                       .below_port = 5,
                                       .below_width = 2,
                                       .up_port = 11,
                                       .up_width = 3};
    for (uint32_t host = 0; host < 40; host++) {
        bool below = host >= 10 && host < 22;
        assert_int_equal(netsim_route_port_count(&route, host), below ? 2 : 3);
        for (uint32_t i = 0; i < (below ? 2u : 3u); i++)
            assert_int_equal(netsim_route_port_at(&route, host, i),
                             below ? 5 + (host - 10) / 4 * 2 + i : 11 + i);
    }
}

/* In the middle of a line: those before through port 4, those after through port 5. */
static void test_both_ways(void **state)
{
    (void)state;
    const struct netsim_route route = {.below_first = 10,
                                       .below_count = 10,
                                       .hosts_per_group = 10,
                                       .below_width = 4,
                                       .up_port = 4,
                                       .up_width = 1,
                                       .after_shift = 1};
    for (uint32_t host = 0; host < 40; host++) {
        bool below = host >= 10 && host < 20;
        assert_int_equal(netsim_route_port_count(&route, host), below ? 4 : 1);
        assert_int_equal(netsim_route_port_at(&route, host, 0), below ? 0 : host < 10 ? 4 : 5);
    }
}

static void test_nothing_above(void **state)
{
    (void)state;
    const struct netsim_route route = {.below_count = 4, .hosts_per_group = 1, .below_width = 1};
    assert_int_equal(netsim_route_port_count(&route, 3), 1);
    assert_int_equal(netsim_route_port_at(&route, 3, 0), 3);
    assert_int_equal(netsim_route_port_count(&route, 4), 0);
}

static void test_table(void **state)
{
    (void)state;
    static const uint32_t first[] = {0, 1, 1, 4};
    static const uint16_t choices[] = {9, 3, 2, 7};
    const struct netsim_route route = {.table_first = first, .table_choices = choices};
    assert_int_equal(netsim_route_port_count(&route, 0), 1);
    assert_int_equal(netsim_route_port_count(&route, 1), 0);
    assert_int_equal(netsim_route_port_count(&route, 2), 3);
    assert_int_equal(netsim_route_port_at(&route, 0, 0), 9);
    assert_int_equal(netsim_route_port_at(&route, 2, 2), 7);
}

static int run_route(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_form),
        cmocka_unit_test(test_both_ways),
        cmocka_unit_test(test_nothing_above),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_graph() + run_network() + run_port_queue() + run_raw() + run_route();
}
