/*
 * topology_fat_tree.c - the k-ary fat tree (Al-Fares et al., SIGCOMM 2008), once, or in each of two sites.
 *
 * k pods of k/2 edge and k/2 aggregation switches, and (k/2)^2 cores; aggregation switch a of each pod has
 * the cores from a * k/2 on. With two sites every core has one more port, to the one DCI switch of its
 * site, and a long cable joins the two.
 *
 * Ports, in this order: of an edge its hosts, the aggregation switches of the pod; of an aggregation switch
 * the edges of the pod, its cores; of a core the pods, the DCI switch; of a DCI switch the cores, the long
 * cable.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <assert.h>

#include "base/error.h"
#include "netsim/topology_kinds.h"

#define K_MAX 64u

/* One tree among the nodes of the graph. */
struct tree {
    uint32_t half; /* k/2: edges of a pod, aggregation switches of a pod, cores of an aggregation switch */
    uint32_t edge_hosts;
    uint32_t host_first;
    uint32_t edge_first; /* of all pods; then come all aggregation switches, the cores, the DCI switch */
    uint32_t aggregation_first;
    uint32_t core_first;
    uint32_t dci; /* 0: none */
    unsigned site;
    const char *prefix; /* of names: "", "a.", "b." */
};

static uint32_t pods(const struct tree *tree)
{
    return 2 * tree->half;
}

static uint32_t cores(const struct tree *tree)
{
    return tree->half * tree->half;
}

static uint32_t pod_hosts(const struct tree *tree)
{
    return tree->half * tree->edge_hosts;
}

static uint32_t tree_hosts(const struct tree *tree)
{
    return pods(tree) * pod_hosts(tree);
}

static int check_k(uint32_t k)
{
    if (k >= 2 && k <= K_MAX && k % 2 == 0)
        return 0;
    return lh_fail(LH_ERANGE, "topology.k is %u: a fat tree needs an even number, 2 to %u", k, K_MAX);
}

static void tree_shape(uint32_t k, uint32_t edge_hosts, struct netsim_shape *shape)
{
    uint64_t half = k / 2;
    uint64_t pod_switches = k * 2 * half;
    shape->hosts = k * half * edge_hosts;
    shape->switches = pod_switches + half * half;
    /* Between edges and aggregation switches as many as between these and the cores. */
    shape->cables = shape->hosts + 2 * k * half * half;
}

int netsim_fat_tree_shape(const struct netsim_topology_config *config, struct netsim_shape *shape)
{
    int rc = check_k(config->k);
    tree_shape(config->k, config->k / 2, shape);
    return rc;
}

static uint32_t site_edge_hosts(const struct netsim_topology_config *config)
{
    return config->hosts != 0 ? config->hosts : config->k / 2;
}

static uint64_t long_rate_bps(const struct netsim_topology_config *config)
{
    uint64_t site_cores = (uint64_t)(config->k / 2) * (config->k / 2);
    return config->long_rate_bps != 0 ? config->long_rate_bps : config->rate_bps * site_cores;
}

int netsim_two_datacenters_shape(const struct netsim_topology_config *config, struct netsim_shape *shape)
{
    uint32_t edge_hosts = site_edge_hosts(config);
    int rc = check_k(config->k);
    if (rc == 0)
        rc = netsim_topology_check_count("topology.hosts", edge_hosts, "hosts below each ToR switch",
                                         NETSIM_PORTS_MAX - config->k / 2);
    if (rc == 0 && long_rate_bps(config) > NETSIM_RATE_MAX)
        rc = lh_fail(LH_ERANGE,
                     "topology.long_rate is full: that is topology.rate times the cores of a site, and "
                     "over 100Tbit; give it");
    tree_shape(config->k, edge_hosts, shape);
    uint64_t site_cores = (uint64_t)(config->k / 2) * (config->k / 2);
    shape->hosts *= 2;
    shape->switches = 2 * (shape->switches + 1 + (config->relays ? 1 : 0));
    shape->cables = 2 * (shape->cables + site_cores) + 1 + (config->relays ? 2 : 0);
    shape->sites = 2;
    return rc;
}

static void add_pod_switches(struct netsim_graph_builder *builder, struct tree *tree)
{
    tree->edge_first = builder->nodes;
    for (uint32_t i = 0; i < pods(tree) * tree->half; i++) {
        struct netsim_route route = {.below_first = tree->host_first + i * tree->edge_hosts,
                                     .below_count = tree->edge_hosts,
                                     .hosts_per_group = 1,
                                     .below_width = 1,
                                     .up_port = tree->edge_hosts,
                                     .up_width = tree->half};
        netsim_build_switch(builder, NETSIM_TIER_TOR, tree->site, &route, "%sp%u.edge%u", tree->prefix,
                            i / tree->half, i % tree->half);
    }
    tree->aggregation_first = builder->nodes;
    for (uint32_t i = 0; i < pods(tree) * tree->half; i++) {
        uint32_t pod = i / tree->half;
        struct netsim_route route = {.below_first = tree->host_first + pod * pod_hosts(tree),
                                     .below_count = pod_hosts(tree),
                                     .hosts_per_group = tree->edge_hosts,
                                     .below_width = 1,
                                     .up_port = tree->half,
                                     .up_width = tree->half};
        netsim_build_switch(builder, NETSIM_TIER_AGGREGATION, tree->site, &route, "%sp%u.agg%u",
                            tree->prefix, pod, i % tree->half);
    }
}

static void add_core_switches(struct netsim_graph_builder *builder, struct tree *tree, bool dci)
{
    tree->core_first = builder->nodes;
    for (uint32_t core = 0; core < cores(tree); core++) {
        struct netsim_route route = {.below_first = tree->host_first,
                                     .below_count = tree_hosts(tree),
                                     .hosts_per_group = pod_hosts(tree),
                                     .below_width = 1,
                                     .up_port = pods(tree),
                                     .up_width = dci ? 1 : 0};
        netsim_build_switch(builder, NETSIM_TIER_CORE, tree->site, &route, "%score%u", tree->prefix, core);
    }
    if (!dci)
        return;
    struct netsim_route route = {.below_first = tree->host_first,
                                 .below_count = tree_hosts(tree),
                                 .hosts_per_group = tree_hosts(tree),
                                 .below_width = cores(tree),
                                 .up_port = cores(tree),
                                 .up_width = 1};
    tree->dci = netsim_build_switch(builder, NETSIM_TIER_DCI, tree->site, &route, "%sdci", tree->prefix);
}

static void add_cables(struct netsim_graph_builder *builder, const struct tree *tree, uint32_t core_faults)
{
    struct netsim_cable cable = netsim_host_cable(builder);
    for (uint32_t i = 0; i < tree_hosts(tree); i++)
        netsim_build_cable(builder, tree->host_first + i, tree->edge_first + i / tree->edge_hosts, &cable);
    cable.faults = core_faults;
    /* half links up from each edge, to the aggregation switches of its pod. */
    for (uint32_t i = 0; i < pods(tree) * cores(tree); i++) {
        uint32_t edge = i / tree->half;
        uint32_t aggregation = edge / tree->half * tree->half + i % tree->half;
        netsim_build_cable(builder, tree->edge_first + edge, tree->aggregation_first + aggregation, &cable);
    }
    /* half links up from each aggregation switch: those of a pod see each core once. */
    for (uint32_t i = 0; i < pods(tree) * cores(tree); i++)
        netsim_build_cable(builder, tree->aggregation_first + i / tree->half,
                           tree->core_first + i % cores(tree), &cable);
    for (uint32_t core = 0; tree->dci != 0 && core < cores(tree); core++)
        netsim_build_cable(builder, tree->core_first + core, tree->dci, &cable);
}

void netsim_fat_tree_fill(struct netsim_graph_builder *builder)
{
    uint32_t half = builder->config->k / 2;
    struct tree tree = {.half = half, .edge_hosts = half, .prefix = ""};
    netsim_build_hosts(builder, tree_hosts(&tree), 0);
    add_pod_switches(builder, &tree);
    add_core_switches(builder, &tree, false);
    add_cables(builder, &tree, builder->core_faults);
}

/* Between the DCI switch and the long cable, beside the switch. Ports: the switch, the long cable. */
static uint32_t add_relay(struct netsim_graph_builder *builder, const struct tree *tree, uint64_t rate_bps)
{
    const struct netsim_cable cable = {.rate_bps = rate_bps, .faults = NETSIM_NO_FAULTS};
    struct netsim_route route = {.below_first = tree->host_first,
                                 .below_count = tree_hosts(tree),
                                 .hosts_per_group = tree_hosts(tree),
                                 .below_width = 1,
                                 .up_port = 1,
                                 .up_width = 1};
    uint32_t relay =
        netsim_build_switch(builder, NETSIM_TIER_RELAY, tree->site, &route, "%srelay", tree->prefix);
    netsim_build_cable(builder, tree->dci, relay, &cable);
    return relay;
}

void netsim_two_datacenters_fill(struct netsim_graph_builder *builder)
{
    const struct netsim_topology_config *config = builder->config;
    struct tree trees[2] = {{.site = 0, .prefix = "a."}, {.site = 1, .prefix = "b."}};
    for (unsigned site = 0; site < 2; site++) {
        trees[site].half = config->k / 2;
        trees[site].edge_hosts = site_edge_hosts(config);
        trees[site].host_first = builder->nodes;
        netsim_build_hosts(builder, tree_hosts(&trees[site]), site);
    }
    for (unsigned site = 0; site < 2; site++) {
        add_pod_switches(builder, &trees[site]);
        add_core_switches(builder, &trees[site], true);
    }
    for (unsigned site = 0; site < 2; site++)
        add_cables(builder, &trees[site], NETSIM_NO_FAULTS);
    struct netsim_cable cable = {.rate_bps = long_rate_bps(config),
                                 .delay_ps = config->long_delay_ps,
                                 .faults = builder->core_faults};
    assert(cable.rate_bps >= NETSIM_RATE_MIN);
    uint32_t ends[2] = {trees[0].dci, trees[1].dci};
    for (unsigned site = 0; config->relays && site < 2; site++)
        ends[site] = add_relay(builder, &trees[site], cable.rate_bps);
    netsim_build_cable(builder, ends[0], ends[1], &cable);
}
