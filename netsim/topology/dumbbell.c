/*
 * dumbbell.c - see dumbbell.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/topology/dumbbell.h"

int netsim_two_hosts_shape(const struct netsim_topology_config *config, struct netsim_shape *shape)
{
    (void)config;
    shape->hosts = 2;
    shape->cables = 1;
    return 0;
}

void netsim_two_hosts_fill(struct netsim_graph_builder *builder)
{
    struct netsim_cable cable = netsim_host_cable(builder);
    cable.faults = builder->core_faults;
    netsim_build_hosts(builder, 2, 0);
    netsim_build_cable(builder, 0, 1, &cable);
}

int netsim_dumbbell_shape(const struct netsim_topology_config *config, struct netsim_shape *shape)
{
    shape->hosts = 2 * (uint64_t)config->hosts;
    shape->switches = 2;
    shape->cables = shape->hosts + 1;
    return netsim_topology_check_count("topology.hosts", config->hosts, "hosts on each side of a dumbbell",
                                       NETSIM_PORTS_MAX - 1);
}

/* Ports of both switches: the hosts, then the bottleneck. */
void netsim_dumbbell_fill(struct netsim_graph_builder *builder)
{
    static const char *const names[] = {"left", "right"};
    uint32_t side_hosts = builder->config->hosts;
    uint32_t switches[2];
    netsim_build_hosts(builder, 2 * side_hosts, 0);
    for (uint32_t side = 0; side < 2; side++) {
        struct netsim_route route = {.below_first = side * side_hosts,
                                     .below_count = side_hosts,
                                     .hosts_per_group = 1,
                                     .below_width = 1,
                                     .up_port = side_hosts,
                                     .up_width = 1};
        switches[side] = netsim_build_switch(builder, NETSIM_TIER_TOR, 0, &route, "%s", names[side]);
    }
    struct netsim_cable cable = netsim_host_cable(builder);
    for (uint32_t host = 0; host < 2 * side_hosts; host++)
        netsim_build_cable(builder, host, switches[host / side_hosts], &cable);
    struct netsim_cable bottleneck = netsim_core_cable(builder);
    netsim_build_cable(builder, switches[0], switches[1], &bottleneck);
}
