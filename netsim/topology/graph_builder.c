/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/topology/topology.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "netsim/base/netsim_config.h"
#include "netsim/engine/network.h"

/* ---- graph builder --------------------------------------------------------------------------------- */

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

/* ---- kind ------------------------------------------------------------------------------------------ */

int netsim_topology_check_count(const char *key, uint32_t value, const char *what, uint32_t max)
{
    if (value >= 1 && value <= max)
        return 0;
    return lh_fail(LH_ERANGE, "%s %u: %s, 1 to %u", key, value, what, max);
}

int netsim_topology_check_shape(const char *key, const struct netsim_shape *shape)
{
    uint64_t nodes = shape->hosts + shape->switches;
    if (shape->hosts < 2)
        return lh_fail(LH_ERANGE, "%s: %llu hosts, at least two are needed (add hosts)", key,
                       (unsigned long long)shape->hosts);
    if (shape->hosts > NETSIM_HOSTS_MAX)
        return lh_fail(LH_ERANGE, "%s: %llu hosts, at most %u (make it smaller)", key,
                       (unsigned long long)shape->hosts, NETSIM_HOSTS_MAX);
    if (nodes > NETSIM_NODES_MAX)
        return lh_fail(LH_ERANGE, "%s: %llu hosts and switches, at most %u (make it smaller)", key,
                       (unsigned long long)nodes, NETSIM_NODES_MAX);
    if (shape->cables > NETSIM_CABLES_MAX)
        return lh_fail(LH_ERANGE, "%s: %llu cables, at most %u (make it smaller)", key,
                       (unsigned long long)shape->cables, NETSIM_CABLES_MAX);
    return 0;
}

/* ---- route tables ---------------------------------------------------------------------------------- */

/*
 * For each host a search from the switch that it hangs on gives every switch its distance; the ports that
 * lead one step closer are the alternatives. All is done twice: to count the alternatives, then to note
 * them.
 */

#define NOT_REACHED UINT32_MAX

uint64_t netsim_route_choices_max(uint64_t hosts, uint64_t switches, uint64_t cables)
{
    /* Between switches a cable can be a choice at either end; to a host of its own a switch has one. */
    uint64_t between = cables > hosts ? cables - hosts : 0;
    return hosts * (2 * between + switches);
}

void netsim_route_tables_take(struct netsim_route_tables *tables, const struct netsim_graph *graph,
                              struct netsim_arena *arena)
{
    size_t nodes = graph->nodes_count;
    size_t switches = nodes - graph->hosts;
    uint64_t choices = netsim_route_choices_max(graph->hosts, switches, graph->cables_count);
    assert(choices <= NETSIM_ROUTE_CHOICES_MAX);
    tables->port_first = netsim_arena_take(arena, nodes + 1, sizeof *tables->port_first);
    tables->peers = netsim_arena_take(arena, 2 * (size_t)graph->cables_count, sizeof *tables->peers);
    tables->distance = netsim_arena_take(arena, nodes, sizeof *tables->distance);
    tables->queue = netsim_arena_take(arena, nodes, sizeof *tables->queue);
    tables->first = netsim_arena_take(arena, switches * ((size_t)graph->hosts + 1), sizeof *tables->first);
    tables->choices = netsim_arena_take(arena, choices, sizeof *tables->choices);
}

static void find_peers(struct netsim_route_tables *tables, const struct netsim_graph *graph)
{
    uint32_t *next = tables->queue;
    tables->port_first[0] = 0;
    for (uint32_t node = 0; node < graph->nodes_count; node++) {
        next[node] = tables->port_first[node];
        tables->port_first[node + 1] = tables->port_first[node] + graph->nodes[node].ports;
    }
    for (uint32_t i = 0; i < graph->cables_count; i++) {
        const uint32_t *ends = graph->cables[i].ends;
        tables->peers[next[ends[0]]++] = ends[1];
        tables->peers[next[ends[1]]++] = ends[0];
    }
}

/* Breadth first, over hosts too: these are dead ends. */
static void search(struct netsim_route_tables *tables, const struct netsim_graph *graph, uint32_t start)
{
    uint32_t head = 0;
    uint32_t tail = 0;
    memset(tables->distance, 0xff, graph->nodes_count * sizeof *tables->distance);
    tables->distance[start] = 0;
    tables->queue[tail++] = start;
    while (head < tail) {
        uint32_t node = tables->queue[head++];
        for (uint32_t port = tables->port_first[node]; port < tables->port_first[node + 1]; port++) {
            uint32_t peer = tables->peers[port];
            if (tables->distance[peer] != NOT_REACHED)
                continue;
            tables->distance[peer] = tables->distance[node] + 1;
            tables->queue[tail++] = peer;
        }
    }
}

uint32_t netsim_route_tables_unreached(struct netsim_route_tables *tables, const struct netsim_graph *graph)
{
    find_peers(tables, graph);
    search(tables, graph, 0);
    uint32_t node = 0;
    while (node < graph->nodes_count && tables->distance[node] != NOT_REACHED)
        node++;
    return node;
}

/* The ports of this switch that lead to the host, from whose switch distances are: into choices unless that
 * is NULL. Returns how many. */
static uint32_t find_choices(const struct netsim_route_tables *tables, uint32_t node, uint32_t host,
                             uint16_t *choices)
{
    uint32_t count = 0;
    uint32_t distance = tables->distance[node];
    uint32_t port_first = tables->port_first[node];
    for (uint32_t port = port_first; port < tables->port_first[node + 1]; port++) {
        uint32_t peer = tables->peers[port];
        bool closer = distance == 0 ? peer == host : tables->distance[peer] < distance;
        if (!closer)
            continue;
        if (choices != NULL)
            choices[count] = (uint16_t)(port - port_first);
        count++;
    }
    return count;
}

/* Counts the choices of all switches for all hosts, into first[host + 1] of each; or notes them. */
static void visit_hosts(struct netsim_route_tables *tables, struct netsim_graph *graph, bool note)
{
    uint32_t searched = graph->nodes_count;
    for (uint32_t host = 0; host < graph->hosts; host++) {
        uint32_t access = tables->peers[tables->port_first[host]];
        if (access != searched)
            search(tables, graph, access);
        searched = access;
        for (uint32_t node = graph->hosts; node < graph->nodes_count; node++) {
            const struct netsim_route *route = &graph->routes[node - graph->hosts];
            uint32_t *first = tables->first + (size_t)(node - graph->hosts) * (graph->hosts + 1);
            uint16_t *choices = NULL;
            if (note)
                choices = tables->choices + (route->table_choices - tables->choices) + first[host];
            uint32_t count = find_choices(tables, node, host, choices);
            assert(count > 0 && (!note || count == first[host + 1] - first[host]));
            if (!note)
                first[host + 1] = count;
        }
    }
}

void netsim_route_tables_fill(struct netsim_route_tables *tables, struct netsim_graph *graph)
{
    uint32_t switches = graph->nodes_count - graph->hosts;
    uint16_t *choices = tables->choices;
    for (uint32_t i = 0; i < switches; i++)
        graph->routes[i] = (struct netsim_route){.hosts_per_group = 1, .table_choices = choices};
    visit_hosts(tables, graph, false);
    for (uint32_t i = 0; i < switches; i++) {
        uint32_t *first = tables->first + (size_t)i * (graph->hosts + 1);
        first[0] = 0;
        for (uint32_t host = 0; host < graph->hosts; host++)
            first[host + 1] += first[host];
        graph->routes[i].table_first = first;
        graph->routes[i].table_choices = choices;
        choices += first[graph->hosts];
    }
    visit_hosts(tables, graph, true);
}
