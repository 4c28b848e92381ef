/*
 * route_tables.h - shortest paths, by number of links, for a graph without a regular shape.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TOPOLOGY_ROUTE_TABLES_H
#define LH_NETSIM_TOPOLOGY_ROUTE_TABLES_H

#include "netsim/engine/graph.h"

/* Most alternatives that all tables may hold together: 2 GiB, touched only as far as they are used. */
#define NETSIM_ROUTE_CHOICES_MAX ((uint64_t)1 << 30)

/* All arrays are from the arena. */
struct netsim_route_tables {
    uint32_t *port_first; /* of node n: ports port_first[n] … port_first[n + 1] - 1 */
    uint32_t *peers;      /* of each port: the node behind it */
    uint32_t *distance;   /* of each node from where the search began; UINT32_MAX: not reached */
    uint32_t *queue;      /* of the search */
    uint32_t *first;      /* of each switch hosts + 1: becomes table_first */
    uint16_t *choices;    /* of all switches: becomes table_choices */
};

/* How many alternatives there are at most, in a graph of these counts where each host has one cable. */
uint64_t netsim_route_choices_max(uint64_t hosts, uint64_t switches, uint64_t cables);
/* Takes the memory, by the counts of the graph. Choices are at most NETSIM_ROUTE_CHOICES_MAX. */
void netsim_route_tables_take(struct netsim_route_tables *tables, const struct netsim_graph *graph,
                              struct netsim_arena *arena);
/* Sees who is behind which port. To be called first, with all nodes and cables in the graph. Returns a node
 * that has no path to host 0, or nodes_count when all have one. */
uint32_t netsim_route_tables_unreached(struct netsim_route_tables *tables,
                                       const struct netsim_graph *graph);
/* Fills the routes of all switches in. All nodes have a path to each other, and each host has one cable. */
void netsim_route_tables_fill(struct netsim_route_tables *tables, struct netsim_graph *graph);

#endif
