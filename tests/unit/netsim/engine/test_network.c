/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/engine/network.h"

#include "support/small_network.h"

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

int main(void)
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
