/*
 * graph_builder.c - see graph_builder.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/topology/graph_builder.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

bool netsim_graph_take(struct netsim_graph *graph, struct netsim_arena *arena)
{
    assert(graph->hosts >= 2 && graph->hosts <= graph->nodes_count);
    uint32_t switches = graph->nodes_count - graph->hosts;
    graph->nodes = netsim_arena_take(arena, graph->nodes_count, sizeof *graph->nodes);
    graph->cables = netsim_arena_take(arena, graph->cables_count, sizeof *graph->cables);
    graph->routes = netsim_arena_take(arena, switches, sizeof *graph->routes);
    graph->faults = netsim_arena_take(arena, graph->faults_count, sizeof *graph->faults);
    return arena->base != NULL;
}

void netsim_build_hosts(struct netsim_graph_builder *builder, uint32_t count, unsigned site)
{
    struct netsim_graph *graph = builder->graph;
    assert(builder->nodes + count <= graph->hosts && site < graph->sites);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = builder->nodes++;
        struct netsim_node *node = &graph->nodes[number];
        *node = (struct netsim_node){.tier = NETSIM_TIER_HOST, .site = (uint8_t)site};
        snprintf(node->name, sizeof node->name, "host%u", number);
    }
}

uint32_t netsim_build_switch(struct netsim_graph_builder *builder, enum netsim_tier tier, unsigned site,
                             const struct netsim_route *route, const char *name, ...)
{
    struct netsim_graph *graph = builder->graph;
    assert(builder->nodes >= graph->hosts && builder->nodes < graph->nodes_count && site < graph->sites);
    uint32_t number = builder->nodes++;
    struct netsim_node *node = &graph->nodes[number];
    *node = (struct netsim_node){.tier = (uint8_t)tier, .site = (uint8_t)site};
    va_list arguments;
    va_start(arguments, name);
    int length = vsnprintf(node->name, sizeof node->name, name, arguments);
    va_end(arguments);
    assert(length > 0 && (size_t)length < sizeof node->name);
    graph->routes[number - graph->hosts] = *route;
    return number;
}

void netsim_build_cable(struct netsim_graph_builder *builder, uint32_t a, uint32_t b,
                        const struct netsim_cable *cable)
{
    struct netsim_graph *graph = builder->graph;
    assert(builder->cables < graph->cables_count);
    assert(a < graph->nodes_count && b < graph->nodes_count && a != b);
    assert(cable->faults == NETSIM_NO_FAULTS || cable->faults < graph->faults_count);
    struct netsim_cable *added = &graph->cables[builder->cables++];
    *added = *cable;
    added->ends[0] = a;
    added->ends[1] = b;
    graph->nodes[a].ports++;
    graph->nodes[b].ports++;
}

struct netsim_cable netsim_host_cable(const struct netsim_graph_builder *builder)
{
    return (struct netsim_cable){.rate_bps = builder->config->rate_bps,
                                 .delay_ps = builder->config->delay_ps,
                                 .faults = NETSIM_NO_FAULTS};
}

struct netsim_cable netsim_core_cable(const struct netsim_graph_builder *builder)
{
    const struct netsim_topology_config *config = builder->config;
    struct netsim_cable cable = netsim_host_cable(builder);
    cable.faults = builder->core_faults;
    if (config->core_rate_bps != 0)
        cable.rate_bps = config->core_rate_bps;
    if (config->core_delay_ps != NETSIM_NEVER)
        cable.delay_ps = config->core_delay_ps;
    return cable;
}
