/*
 * graph_builder.h - fills a graph, node by node and cable by cable.
 *
 * The counts of the graph are set first; then its arrays are taken from the arena; then exactly that
 * many nodes and cables are added: hosts before switches, and the cables of a node in the order of its ports.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TOPOLOGY_GRAPH_BUILDER_H
#define LH_NETSIM_TOPOLOGY_GRAPH_BUILDER_H

#include <stdbool.h>

#include "netsim/base/config.h"
#include "netsim/engine/graph.h"

struct netsim_graph_builder {
    const struct netsim_topology_config *config;
    struct netsim_graph *graph;
    uint32_t nodes;       /* added so far */
    uint32_t cables;      /* added so far */
    uint32_t core_faults; /* what a bottleneck's cable gets: 0, or NETSIM_NO_FAULTS when there are none */
};

/* Takes the arrays, by the counts of the graph. False: the arena only counts, nothing may be added. */
bool netsim_graph_take(struct netsim_graph *graph, struct netsim_arena *arena);

/* `count` more hosts, named by their numbers. */
void netsim_build_hosts(struct netsim_graph_builder *builder, uint32_t count, unsigned site);
/* Returns the number of the switch. The name is shorter than NETSIM_NAME_MAX. */
__attribute__((format(printf, 5, 6))) uint32_t netsim_build_switch(struct netsim_graph_builder *builder,
                                                                   enum netsim_tier tier, unsigned site,
                                                                   const struct netsim_route *route,
                                                                   const char *name, ...);
/* `cable` without its ends. */
void netsim_build_cable(struct netsim_graph_builder *builder, uint32_t a, uint32_t b,
                        const struct netsim_cable *cable);

/* The cable of a host; one of the core (dumbbell, leaf-spine), which has the faults. */
struct netsim_cable netsim_host_cable(const struct netsim_graph_builder *builder);
struct netsim_cable netsim_core_cable(const struct netsim_graph_builder *builder);

#endif
