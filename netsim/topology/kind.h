/*
 * kind.h - what a kind of topology is, and what all kinds check.
 *
 * Each kind is two functions. `shape` checks the keys that this kind reads, and sets the counts of the graph
 * (0, -LH_EINVAL or -LH_ERANGE). `fill` adds what was counted.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TOPOLOGY_KIND_H
#define LH_NETSIM_TOPOLOGY_KIND_H

#include "netsim/topology/graph_builder.h"

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

#endif
