/*
 * leaf_spine.c - see leaf_spine.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/topology/leaf_spine.h"

int netsim_leaf_spine_shape(const struct netsim_topology_config *config, struct netsim_shape *shape)
{
    int rc = netsim_topology_check_count("topology.leaves", config->leaves, "leaves", NETSIM_PORTS_MAX);
    if (rc == 0)
        rc = netsim_topology_check_count("topology.spines", config->spines, "spines", NETSIM_PORTS_MAX - 1);
    if (rc == 0)
        rc = netsim_topology_check_count("topology.hosts", config->hosts,
                                         "hosts below each leaf, which has a port for each spine too",
                                         NETSIM_PORTS_MAX - config->spines);
    shape->hosts = (uint64_t)config->leaves * config->hosts;
    shape->switches = (uint64_t)config->leaves + config->spines;
    shape->cables = shape->hosts + (uint64_t)config->leaves * config->spines;
    return rc;
}

void netsim_leaf_spine_fill(struct netsim_graph_builder *builder)
{
    const struct netsim_topology_config *config = builder->config;
    uint32_t hosts = config->leaves * config->hosts;
    uint32_t spine_first = hosts + config->leaves;
    struct netsim_cable host_cable = netsim_host_cable(builder);
    struct netsim_cable core_cable = netsim_core_cable(builder);
    netsim_build_hosts(builder, hosts, 0);
    for (uint32_t leaf = 0; leaf < config->leaves; leaf++) {
        struct netsim_route route = {.below_first = leaf * config->hosts,
                                     .below_count = config->hosts,
                                     .hosts_per_group = 1,
                                     .below_width = 1,
                                     .up_port = config->hosts,
                                     .up_width = config->spines};
        netsim_build_switch(builder, NETSIM_TIER_TOR, 0, &route, "leaf%u", leaf);
    }
    for (uint32_t spine = 0; spine < config->spines; spine++) {
        struct netsim_route route = {
            .below_count = hosts, .hosts_per_group = config->hosts, .below_width = 1};
        netsim_build_switch(builder, NETSIM_TIER_CORE, 0, &route, "spine%u", spine);
    }
    for (uint32_t host = 0; host < hosts; host++)
        netsim_build_cable(builder, host, hosts + host / config->hosts, &host_cable);
    for (uint32_t leaf = 0; leaf < config->leaves; leaf++) {
        for (uint32_t spine = 0; spine < config->spines; spine++)
            netsim_build_cable(builder, hosts + leaf, spine_first + spine, &core_cable);
    }
}
