/*
 * topology.h - builds the graph of a simulation: kinds of topologies, files, route tables.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TOPOLOGY_TOPOLOGY_H
#define LH_NETSIM_TOPOLOGY_TOPOLOGY_H

#include <stdbool.h>

#include "netsim/base/netsim_config.h"
#include "netsim/engine/network.h"

/* Lays the graph out in the arena (graph->nodes and so on are NULL, and the counts are set, when the arena
 * only counts). -LH_EINVAL or -LH_ERANGE with the key ("topology.k") or the line of the file, the value and
 * the remedy in lh_last_error(). */
int netsim_topology_build(const struct netsim_topology_config *config, struct netsim_arena *arena,
                          struct netsim_graph *graph);

/* ---- topology file --------------------------------------------------------------------------------- */

/* The graph of a topology file, with tables for routes. */

/* As netsim_topology_build(), which has checked the keys of all kinds. */
int netsim_topology_file_build(const struct netsim_topology_config *config, struct netsim_arena *arena,
                               struct netsim_graph *graph);

/* ---- graph builder --------------------------------------------------------------------------------- */

/*
 * Fills a graph, node by node and cable by cable.
 *
 * The counts of the graph are set first; then its arrays are taken from the arena; then exactly that
 * many nodes and cables are added: hosts before switches, and the cables of a node in the order of its ports.
 */

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

/* ---- kind ------------------------------------------------------------------------------------------ */

/*
 * What a kind of topology is, and what all kinds check.
 *
 * Each kind is two functions. `shape` checks the keys that this kind reads, and sets the counts of the graph
 * (0, -LH_EINVAL or -LH_ERANGE). `fill` adds what was counted.
 */

/* Counts that may exceed the limits of a graph. */
struct netsim_shape {
    uint64_t hosts;
    uint64_t switches;
    uint64_t cables; /* the hosts' too */
    uint32_t sites;
};

struct netsim_topology_entry {
    int (*shape)(const struct netsim_topology_config *config, struct netsim_shape *shape);
    void (*fill)(struct netsim_graph_builder *builder);
};

/* 0; -LH_ERANGE: a count is out of range; the message begins with `key`. */
int netsim_topology_check_shape(const char *key, const struct netsim_shape *shape);
/* 0 when 1 <= value <= max; else -LH_ERANGE with "topology.leaves is 0: <what>, 1 to 4096". */
int netsim_topology_check_count(const char *key, uint32_t value, const char *what, uint32_t max);

/* ---- route tables ---------------------------------------------------------------------------------- */

/* Shortest paths, by number of links, for a graph without a regular shape. */

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
