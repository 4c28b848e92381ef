/*
 * test_topology.c - the shapes of the built-in topologies, and that every route leads to its host.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/topology/topology.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "netsim/engine/network.h"
#include "support/netsim_build.h"
#include "support/netsim_walk.h"

#define GBIT UINT64_C(1000000000)

/* Links between two hosts, by their numbers. */
typedef unsigned expected_length(const struct netsim_topology_config *config, uint32_t a, uint32_t b);

static struct netsim_graph build(const struct netsim_topology_config *config, void **memory)
{
    struct netsim_graph graph;
    assert_int_equal(build_topology(config, &graph, memory), 0);
    return graph;
}

/* All pairs of hosts, all alternatives. */
static void check_paths(const struct netsim_topology_config *config, const struct netsim_graph *graph,
                        expected_length *expected)
{
    struct walk walk;
    walk_init(&walk, graph);
    for (uint32_t to = 0; to < graph->hosts; to++) {
        walk_to(&walk, to);
        assert_int_equal(graph->nodes[to].ports, 1);
        for (uint32_t from = 0; from < graph->hosts; from++) {
            if (from != to)
                assert_int_equal(walk_length(&walk, from), expected(config, from, to));
        }
    }
    walk_free(&walk);
}

static void check_counts(const struct netsim_graph *graph, uint32_t hosts, uint32_t switches,
                         uint32_t cables)
{
    assert_int_equal(graph->hosts, hosts);
    assert_int_equal(graph->nodes_count - graph->hosts, switches);
    assert_int_equal(graph->cables_count, cables);
}

/* How many ports of that node lead to the host. */
static uint32_t alternatives(const struct netsim_graph *graph, const char *name, uint32_t host)
{
    for (uint32_t i = graph->hosts; i < graph->nodes_count; i++) {
        if (strcmp(graph->nodes[i].name, name) == 0)
            return netsim_route_port_count(&graph->routes[i - graph->hosts], host);
    }
    fail_msg("no switch %s", name);
    return 0;
}

static const struct netsim_cable *cable_between(const struct netsim_graph *graph, const char *a,
                                                const char *b)
{
    for (uint32_t i = 0; i < graph->cables_count; i++) {
        const struct netsim_cable *cable = &graph->cables[i];
        if (strcmp(graph->nodes[cable->ends[0]].name, a) == 0 &&
            strcmp(graph->nodes[cable->ends[1]].name, b) == 0)
            return cable;
    }
    fail_msg("no cable from %s to %s", a, b);
    return NULL;
}

static unsigned one_link(const struct netsim_topology_config *config, uint32_t a, uint32_t b)
{
    (void)config;
    return a != b ? 1 : 0;
}

static void test_two_hosts(void **state)
{
    (void)state;
    void *memory;
    struct netsim_topology_config config = topology_config(NETSIM_TWO_HOSTS);
    struct netsim_graph graph = build(&config, &memory);
    check_counts(&graph, 2, 0, 1);
    check_paths(&config, &graph, one_link);
    const struct netsim_cable *cable = cable_between(&graph, "host0", "host1");
    assert_true(cable->rate_bps == 100 * GBIT && cable->delay_ps == NETSIM_PS_PER_US);
    assert_true(cable->faults == NETSIM_NO_FAULTS && graph.faults_count == 0 && graph.sites == 1);
    free(memory);
}

static unsigned dumbbell_length(const struct netsim_topology_config *config, uint32_t a, uint32_t b)
{
    return a / config->hosts == b / config->hosts ? 2 : 3;
}

static void test_dumbbell(void **state)
{
    (void)state;
    void *memory;
    struct netsim_topology_config config = topology_config(NETSIM_DUMBBELL);
    config.hosts = 5;
    config.core_rate_bps = 40 * GBIT;
    config.core_delay_ps = 25 * NETSIM_PS_PER_MS;
    struct netsim_graph graph = build(&config, &memory);
    check_counts(&graph, 10, 2, 11);
    check_paths(&config, &graph, dumbbell_length);
    const struct netsim_cable *middle = cable_between(&graph, "left", "right");
    assert_true(middle->rate_bps == 40 * GBIT && middle->delay_ps == 25 * NETSIM_PS_PER_MS);
    assert_true(cable_between(&graph, "host9", "right")->rate_bps == 100 * GBIT);
    free(memory);
}

static void test_core_rate_and_delay_default_to_the_others(void **state)
{
    (void)state;
    void *memory;
    struct netsim_topology_config config = topology_config(NETSIM_DUMBBELL);
    config.hosts = 1;
    struct netsim_graph graph = build(&config, &memory);
    const struct netsim_cable *middle = cable_between(&graph, "left", "right");
    assert_true(middle->rate_bps == 100 * GBIT && middle->delay_ps == NETSIM_PS_PER_US);
    free(memory);
    config.core_delay_ps = 0;
    graph = build(&config, &memory);
    assert_true(cable_between(&graph, "left", "right")->delay_ps == 0);
    free(memory);
}

static unsigned leaf_spine_length(const struct netsim_topology_config *config, uint32_t a, uint32_t b)
{
    return a / config->hosts == b / config->hosts ? 2 : 4;
}

static void test_leaf_spine(void **state)
{
    (void)state;
    void *memory;
    struct netsim_topology_config config = topology_config(NETSIM_LEAF_SPINE);
    config.hosts = 6;
    config.leaves = 4;
    config.spines = 3;
    config.core_rate_bps = 400 * GBIT;
    struct netsim_graph graph = build(&config, &memory);
    check_counts(&graph, 24, 7, 24 + 12);
    check_paths(&config, &graph, leaf_spine_length);
    assert_int_equal(alternatives(&graph, "leaf0", 0), 1);
    assert_int_equal(alternatives(&graph, "leaf0", 6), 3);
    assert_int_equal(alternatives(&graph, "leaf3", 17), 3);
    assert_int_equal(alternatives(&graph, "spine2", 23), 1);
    assert_true(cable_between(&graph, "leaf3", "spine2")->rate_bps == 400 * GBIT);
    assert_true(cable_between(&graph, "host23", "leaf3")->rate_bps == 100 * GBIT);
    free(memory);
}

/* Same edge, same pod, other pod. */
static unsigned fat_tree_length(const struct netsim_topology_config *config, uint32_t a, uint32_t b)
{
    uint32_t half = config->k / 2;
    if (a / half == b / half)
        return 2;
    return a / (half * half) == b / (half * half) ? 4 : 6;
}

static void test_fat_trees(void **state)
{
    (void)state;
    static const uint32_t ks[] = {2, 4, 6, 8, 16};
    for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i++) {
        void *memory;
        uint32_t k = ks[i];
        struct netsim_topology_config config = topology_config(NETSIM_FAT_TREE);
        config.k = k;
        struct netsim_graph graph = build(&config, &memory);
        check_counts(&graph, k * k * k / 4, 5 * k * k / 4, 3 * k * k * k / 4);
        check_paths(&config, &graph, fat_tree_length);
        for (uint32_t node = graph.hosts; node < graph.nodes_count; node++)
            assert_int_equal(graph.nodes[node].ports, k);
        assert_int_equal(alternatives(&graph, "p0.edge0", 0), 1);
        assert_int_equal(alternatives(&graph, "p0.edge0", graph.hosts - 1), k / 2);
        assert_int_equal(alternatives(&graph, "p1.agg0", 0), k / 2);
        assert_int_equal(alternatives(&graph, "p0.agg0", 0), 1);
        assert_int_equal(alternatives(&graph, "core0", graph.hosts - 1), 1);
        free(memory);
    }
}

static void test_names_and_tiers(void **state)
{
    (void)state;
    void *memory;
    struct netsim_topology_config config = topology_config(NETSIM_FAT_TREE);
    config.k = 4;
    struct netsim_graph graph = build(&config, &memory);
    static const struct {
        const char *name;
        uint32_t node;
        enum netsim_tier tier;
    } expected[] = {{"host0", 0, NETSIM_TIER_HOST},           {"host15", 15, NETSIM_TIER_HOST},
                    {"p0.edge0", 16, NETSIM_TIER_TOR},        {"p3.edge1", 23, NETSIM_TIER_TOR},
                    {"p0.agg0", 24, NETSIM_TIER_AGGREGATION}, {"p3.agg1", 31, NETSIM_TIER_AGGREGATION},
                    {"core0", 32, NETSIM_TIER_CORE},          {"core3", 35, NETSIM_TIER_CORE}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_string_equal(graph.nodes[expected[i].node].name, expected[i].name);
        assert_int_equal(graph.nodes[expected[i].node].tier, expected[i].tier);
    }
    free(memory);
}

static unsigned two_datacenters_length(const struct netsim_topology_config *config, uint32_t a, uint32_t b)
{
    uint32_t edge_hosts = config->hosts != 0 ? config->hosts : config->k / 2;
    uint32_t pod_hosts = edge_hosts * config->k / 2;
    uint32_t site_hosts = pod_hosts * config->k;
    if (a / site_hosts != b / site_hosts)
        return 9;
    if (a / edge_hosts == b / edge_hosts)
        return 2;
    return a / pod_hosts == b / pod_hosts ? 4 : 6;
}

/* The network of Bifrost (ICNP 2023): 16 servers a site, two below each ToR, four cores, 400 Gbit/s. */
static void test_two_datacenters(void **state)
{
    (void)state;
    void *memory;
    struct netsim_topology_config config = topology_config(NETSIM_TWO_DATACENTERS);
    config.k = 4;
    config.hosts = 2;
    struct netsim_graph graph = build(&config, &memory);
    check_counts(&graph, 32, 42, 2 * (16 + 16 + 16 + 4) + 1);
    check_paths(&config, &graph, two_datacenters_length);
    assert_int_equal(graph.sites, 2);
    assert_true(graph.nodes[15].site == 0 && graph.nodes[16].site == 1);
    const struct netsim_cable *cable = cable_between(&graph, "a.dci", "b.dci");
    assert_true(cable->rate_bps == 400 * GBIT && cable->delay_ps == 3 * NETSIM_PS_PER_MS);
    assert_true(cable_between(&graph, "b.core3", "b.dci")->rate_bps == 100 * GBIT);
    assert_int_equal(graph.nodes[cable->ends[0]].tier, NETSIM_TIER_DCI);
    assert_int_equal(graph.nodes[cable->ends[1]].site, 1);
    assert_int_equal(graph.nodes[cable->ends[0]].ports, 5);
    assert_int_equal(alternatives(&graph, "a.dci", 0), 4);
    assert_int_equal(alternatives(&graph, "a.dci", 16), 1);
    assert_int_equal(alternatives(&graph, "a.core0", 16), 1);
    assert_int_equal(alternatives(&graph, "a.p0.agg0", 16), 2);
    assert_int_equal(alternatives(&graph, "b.p0.edge0", 0), 2);
    free(memory);
}

static void test_two_datacenters_with_other_hosts(void **state)
{
    (void)state;
    static const struct {
        uint32_t k;
        uint32_t hosts;
        uint32_t total;
    } cases[] = {{4, 0, 32}, {2, 3, 12}, {6, 1, 36}, {8, 0, 256}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        void *memory;
        struct netsim_topology_config config = topology_config(NETSIM_TWO_DATACENTERS);
        config.k = cases[i].k;
        config.hosts = cases[i].hosts;
        config.long_rate_bps = 1600 * GBIT;
        struct netsim_graph graph = build(&config, &memory);
        assert_int_equal(graph.hosts, cases[i].total);
        check_paths(&config, &graph, two_datacenters_length);
        assert_true(cable_between(&graph, "a.dci", "b.dci")->rate_bps == 1600 * GBIT);
        free(memory);
    }
}

/* Across: one cable for each step, or three where each has two relays. */
static unsigned line_length(const struct netsim_topology_config *config, uint32_t a, uint32_t b)
{
    uint32_t site_hosts = config->hosts * config->k / 2 * config->k;
    uint32_t steps = a > b ? a / site_hosts - b / site_hosts : b / site_hosts - a / site_hosts;
    if (steps == 0)
        return two_datacenters_length(config, a, b);
    return 8 + steps * (config->relays ? 3 : 1);
}

static void test_datacenters_in_a_line(void **state)
{
    (void)state;
    for (uint32_t sites = 2; sites <= NETSIM_SITES_MAX; sites++) {
        for (unsigned relays = 0; relays < 2; relays++) {
            void *memory;
            struct netsim_topology_config config = topology_config(NETSIM_DATACENTERS);
            config.k = sites == 3 ? 4 : 2;
            config.hosts = sites == 4 ? 3 : 1;
            config.sites = sites;
            config.relays = relays == 1;
            struct netsim_graph graph = build(&config, &memory);
            assert_int_equal(graph.sites, sites);
            assert_int_equal(graph.nodes[graph.hosts - 1].site, sites - 1);
            check_paths(&config, &graph, line_length);
            free(memory);
        }
    }
}

static void test_a_datacenter_in_the_middle(void **state)
{
    (void)state;
    void *memory;
    struct netsim_topology_config config = topology_config(NETSIM_DATACENTERS);
    config.k = 4;
    config.hosts = 2;
    config.sites = 3;
    struct netsim_graph graph = build(&config, &memory);
    check_counts(&graph, 48, 63, 3 * (16 + 16 + 16 + 4) + 2);
    assert_int_equal(graph.nodes[cable_between(&graph, "a.dci", "b.dci")->ends[0]].ports, 5);
    const struct netsim_cable *cable = cable_between(&graph, "b.dci", "c.dci");
    assert_true(cable->rate_bps == 400 * GBIT && cable->delay_ps == 3 * NETSIM_PS_PER_MS);
    assert_int_equal(graph.nodes[cable->ends[0]].ports, 6);
    assert_true(graph.nodes[cable->ends[0]].border);
    free(memory);
    config.relays = true;
    graph = build(&config, &memory);
    assert_true(cable_between(&graph, "a.relay", "b.relay-a")->delay_ps == 3 * NETSIM_PS_PER_MS);
    assert_true(cable_between(&graph, "b.relay-c", "c.relay")->delay_ps == 3 * NETSIM_PS_PER_MS);
    assert_int_equal(cable_between(&graph, "b.dci", "b.relay-a")->delay_ps, 0);
    free(memory);
}

/* How many cables have the faults, and that all of these join switches. */
static uint32_t faulty_cables(struct netsim_topology_config config)
{
    void *memory;
    uint32_t count = 0;
    assert_int_equal(lh_link_parse("loss=1e-4,burst=8,seed=7", &config.faults), 0);
    struct netsim_graph graph = build(&config, &memory);
    assert_int_equal(graph.faults_count, 1);
    assert_true(graph.faults[0].loss == 1e-4 && graph.faults[0].seed == 7);
    for (uint32_t i = 0; i < graph.cables_count; i++) {
        const struct netsim_cable *cable = &graph.cables[i];
        if (cable->faults == NETSIM_NO_FAULTS)
            continue;
        assert_int_equal(cable->faults, 0);
        assert_true(cable->ends[0] >= graph.hosts || config.kind == NETSIM_TWO_HOSTS);
        count++;
    }
    free(memory);
    return count;
}

static void test_faults_are_on_the_bottleneck(void **state)
{
    (void)state;
    struct netsim_topology_config config = topology_config(NETSIM_TWO_HOSTS);
    config.hosts = 3;
    config.leaves = 4;
    config.spines = 2;
    config.k = 4;
    assert_int_equal(faulty_cables(config), 1);
    config.kind = NETSIM_DUMBBELL;
    assert_int_equal(faulty_cables(config), 1);
    config.kind = NETSIM_LEAF_SPINE;
    assert_int_equal(faulty_cables(config), 8);
    config.kind = NETSIM_FAT_TREE;
    assert_int_equal(faulty_cables(config), 32);
    config.kind = NETSIM_TWO_DATACENTERS;
    assert_int_equal(faulty_cables(config), 1);
}

/* Refused with words that hold these two. */
static void refuse(const struct netsim_topology_config *config, int code, const char *word,
                   const char *other)
{
    void *memory;
    struct netsim_graph graph;
    assert_int_equal(build_topology(config, &graph, &memory), code);
    if (strstr(lh_last_error(), word) == NULL || strstr(lh_last_error(), other) == NULL)
        fail_msg("\"%s\" has no \"%s\" or no \"%s\"", lh_last_error(), word, other);
}

static void test_k_is_even(void **state)
{
    (void)state;
    static const uint32_t wrong[] = {0, 1, 3, 5, 65, 66, UINT32_MAX, UINT32_MAX - 1};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct netsim_topology_config config = topology_config(NETSIM_FAT_TREE);
        config.k = wrong[i];
        refuse(&config, -LH_ERANGE, "topology.k ", "an even number, 2 to 64");
        config.kind = NETSIM_TWO_DATACENTERS;
        refuse(&config, -LH_ERANGE, "topology.k ", "even");
    }
}

static void test_sites_are_few(void **state)
{
    (void)state;
    struct netsim_topology_config config = topology_config(NETSIM_DATACENTERS);
    config.k = 2;
    refuse(&config, -LH_ERANGE, "topology.sites 0", "2 to 8");
    config.sites = 9;
    refuse(&config, -LH_ERANGE, "topology.sites 9", "2 to 8");
}

static void test_limits(void **state)
{
    (void)state;
    struct netsim_topology_config config = topology_config(NETSIM_DUMBBELL);
    refuse(&config, -LH_ERANGE, "topology.hosts 0", "1 to 4095");
    config.hosts = 4096;
    refuse(&config, -LH_ERANGE, "topology.hosts 4096", "1 to 4095");
    config.kind = NETSIM_LEAF_SPINE;
    refuse(&config, -LH_ERANGE, "topology.leaves 0", "1 to 4096");
    config.leaves = 4096;
    refuse(&config, -LH_ERANGE, "topology.spines 0", "1 to 4095");
    config.spines = 16;
    refuse(&config, -LH_ERANGE, "topology.hosts 4096", "1 to 4080");
    config.hosts = 17;
    refuse(&config, -LH_ERANGE, "topology.kind", "69632 hosts");
    config.hosts = 1;
    config.spines = 4095;
    refuse(&config, -LH_ERANGE, "topology.kind", "cables");
    config.leaves = config.spines = 1;
    refuse(&config, -LH_ERANGE, "1 hosts", "add hosts");
    config.kind = NETSIM_TWO_DATACENTERS;
    config.k = 64;
    config.hosts = 0;
    config.long_rate_bps = 400 * GBIT;
    refuse(&config, -LH_ERANGE, "131072 hosts", "at most 65536");
    config.hosts = 4065;
    refuse(&config, -LH_ERANGE, "topology.hosts 4065", "1 to 4064");
}

static void test_rates_and_delays_have_limits(void **state)
{
    (void)state;
    struct netsim_topology_config good = topology_config(NETSIM_TWO_DATACENTERS);
    good.k = 4;
    struct netsim_topology_config config = good;
    config.rate_bps = NETSIM_RATE_MIN - 1;
    refuse(&config, -LH_ERANGE, "topology.rate ", "1Mbit to 100Tbit");
    config.rate_bps = NETSIM_RATE_MAX + 1;
    refuse(&config, -LH_ERANGE, "topology.rate ", "1Mbit to 100Tbit");
    config.rate_bps = NETSIM_RATE_MAX;
    refuse(&config, -LH_ERANGE, "topology.long_rate is full", "100Tbit");
    config = good;
    config.core_rate_bps = 1;
    refuse(&config, -LH_ERANGE, "topology.core_rate", "1Mbit");
    config = good;
    config.long_rate_bps = UINT64_MAX;
    refuse(&config, -LH_ERANGE, "topology.long_rate", "1Mbit");
    config = good;
    config.delay_ps = NETSIM_NEVER;
    refuse(&config, -LH_ERANGE, "topology.delay", "hour");
    config = good;
    config.core_delay_ps = NETSIM_NEVER - 1;
    refuse(&config, -LH_ERANGE, "topology.core_delay", "hour");
    config = good;
    config.long_delay_ps = NETSIM_TIME_MAX;
    refuse(&config, -LH_ERANGE, "topology.long_delay", "hour");
    config = good;
    config.faults.delay_ns = 1;
    refuse(&config, -LH_EINVAL, "topology.link", "topology.delay");
}

/* The largest there is: 65,536 hosts. */
static void test_largest_fat_tree(void **state)
{
    (void)state;
    void *memory;
    struct netsim_topology_config config = topology_config(NETSIM_FAT_TREE);
    config.k = 64;
    struct netsim_graph graph = build(&config, &memory);
    check_counts(&graph, 65536, 5120, 196608);
    struct walk walk;
    walk_init(&walk, &graph);
    for (uint32_t to = 0; to < graph.hosts; to += 8191) {
        walk_to(&walk, to);
        for (uint32_t from = 0; from < graph.hosts; from++)
            assert_true(from == to || walk_length(&walk, from) == fat_tree_length(&config, from, to));
    }
    walk_free(&walk);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_hosts),
        cmocka_unit_test(test_dumbbell),
        cmocka_unit_test(test_core_rate_and_delay_default_to_the_others),
        cmocka_unit_test(test_leaf_spine),
        cmocka_unit_test(test_fat_trees),
        cmocka_unit_test(test_names_and_tiers),
        cmocka_unit_test(test_two_datacenters),
        cmocka_unit_test(test_two_datacenters_with_other_hosts),
        cmocka_unit_test(test_datacenters_in_a_line),
        cmocka_unit_test(test_a_datacenter_in_the_middle),
        cmocka_unit_test(test_faults_are_on_the_bottleneck),
        cmocka_unit_test(test_k_is_even),
        cmocka_unit_test(test_sites_are_few),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_rates_and_delays_have_limits),
        cmocka_unit_test(test_largest_fat_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
