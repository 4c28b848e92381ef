/*
 * fat_tree.c - see fat_tree.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/topology/fat_tree.h"

#include "base/error.h"

#define K_MAX 64u

static uint32_t pods(const struct netsim_tree *tree)
{
    return 2 * tree->half;
}

static uint32_t pod_hosts(const struct netsim_tree *tree)
{
    return tree->half * tree->edge_hosts;
}

int netsim_tree_check_k(uint32_t k)
{
    if (k >= 2 && k <= K_MAX && k % 2 == 0)
        return 0;
    return lh_fail(LH_ERANGE, "topology.k %u: out of range (an even number, 2 to %u)", k, K_MAX);
}

void netsim_tree_shape(uint32_t k, uint32_t edge_hosts, struct netsim_shape *shape)
{
    uint64_t half = k / 2;
    uint64_t pod_switches = k * 2 * half;
    shape->hosts = k * half * edge_hosts;
    shape->switches = pod_switches + half * half;
    /* Between edges and aggregation switches as many as between these and the cores. */
    shape->cables = shape->hosts + 2 * k * half * half;
}

void netsim_tree_add_hosts(struct netsim_graph_builder *builder, struct netsim_tree *tree)
{
    tree->host_first = builder->nodes;
    netsim_build_hosts(builder, netsim_tree_hosts(tree), tree->site);
}

static void add_pod_switches(struct netsim_graph_builder *builder, struct netsim_tree *tree)
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

static void add_core_switches(struct netsim_graph_builder *builder, struct netsim_tree *tree)
{
    tree->core_first = builder->nodes;
    for (uint32_t core = 0; core < netsim_tree_cores(tree); core++) {
        struct netsim_route route = {.below_first = tree->host_first,
                                     .below_count = netsim_tree_hosts(tree),
                                     .hosts_per_group = pod_hosts(tree),
                                     .below_width = 1,
                                     .up_port = pods(tree),
                                     .up_width = tree->has_dci ? 1 : 0};
        netsim_build_switch(builder, NETSIM_TIER_CORE, tree->site, &route, "%score%u", tree->prefix, core);
    }
}

void netsim_tree_add_switches(struct netsim_graph_builder *builder, struct netsim_tree *tree)
{
    add_pod_switches(builder, tree);
    add_core_switches(builder, tree);
}

void netsim_tree_add_cables(struct netsim_graph_builder *builder, const struct netsim_tree *tree,
                            uint32_t core_faults)
{
    struct netsim_cable cable = netsim_host_cable(builder);
    for (uint32_t i = 0; i < netsim_tree_hosts(tree); i++)
        netsim_build_cable(builder, tree->host_first + i, tree->edge_first + i / tree->edge_hosts, &cable);
    cable.faults = core_faults;
    /* half links up from each edge, to the aggregation switches of its pod. */
    for (uint32_t i = 0; i < pods(tree) * netsim_tree_cores(tree); i++) {
        uint32_t edge = i / tree->half;
        uint32_t aggregation = edge / tree->half * tree->half + i % tree->half;
        netsim_build_cable(builder, tree->edge_first + edge, tree->aggregation_first + aggregation, &cable);
    }
    /* half links up from each aggregation switch: those of a pod see each core once. */
    for (uint32_t i = 0; i < pods(tree) * netsim_tree_cores(tree); i++)
        netsim_build_cable(builder, tree->aggregation_first + i / tree->half,
                           tree->core_first + i % netsim_tree_cores(tree), &cable);
}

int netsim_fat_tree_shape(const struct netsim_topology_config *config, struct netsim_shape *shape)
{
    int rc = netsim_tree_check_k(config->k);
    netsim_tree_shape(config->k, config->k / 2, shape);
    return rc;
}

void netsim_fat_tree_fill(struct netsim_graph_builder *builder)
{
    uint32_t half = builder->config->k / 2;
    struct netsim_tree tree = {.half = half, .edge_hosts = half};
    netsim_tree_add_hosts(builder, &tree);
    netsim_tree_add_switches(builder, &tree);
    netsim_tree_add_cables(builder, &tree, builder->core_faults);
}
