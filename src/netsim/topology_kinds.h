/*
 * topology_kinds.h - the kinds of topology, for topology.c alone.
 *
 * Each kind is two functions. `shape` checks the keys that this kind reads, and sets the counts of the
 * graph (hosts, nodes, cables, sites; 0, -LH_EINVAL or -LH_ERANGE). `fill` adds what was counted.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TOPOLOGY_KINDS_H
#define LH_NETSIM_TOPOLOGY_KINDS_H

#include "netsim/graph_builder.h"

/* Counts before anyone knows whether they fit. */
struct netsim_shape {
    uint64_t hosts;
    uint64_t switches;
    uint64_t cables; /* the hosts' too */
    uint32_t sites;
};

/* Longest cable: an hour, as in the grammar of links. */
#define NETSIM_DELAY_MAX ((netsim_time)LH_LINK_TIME_MAX * NETSIM_PS_PER_NS)

int netsim_two_hosts_shape(const struct netsim_topology_config *config, struct netsim_shape *shape);
void netsim_two_hosts_fill(struct netsim_graph_builder *builder);
int netsim_dumbbell_shape(const struct netsim_topology_config *config, struct netsim_shape *shape);
void netsim_dumbbell_fill(struct netsim_graph_builder *builder);
int netsim_leaf_spine_shape(const struct netsim_topology_config *config, struct netsim_shape *shape);
void netsim_leaf_spine_fill(struct netsim_graph_builder *builder);
int netsim_fat_tree_shape(const struct netsim_topology_config *config, struct netsim_shape *shape);
void netsim_fat_tree_fill(struct netsim_graph_builder *builder);
int netsim_datacenters_shape(const struct netsim_topology_config *config, struct netsim_shape *shape);
void netsim_datacenters_fill(struct netsim_graph_builder *builder);

/* The kind that is a file: lays everything out by itself, after the keys of all kinds were checked. */
int netsim_topology_text_build(const struct netsim_topology_config *config, struct netsim_arena *arena,
                               struct netsim_graph *graph);

/* -LH_ERANGE when there are too few or too many of something; `key` is blamed. 0. */
int netsim_topology_check_shape(const char *key, const struct netsim_shape *shape);
/* 0 when 1 <= value <= most; else -LH_ERANGE with "topology.leaves is 0: <what>, 1 to 4096". */
int netsim_topology_check_count(const char *key, uint32_t value, const char *what, uint32_t most);

/* The cable of a host; one of the core (dumbbell, leaf-spine), which has the faults. */
struct netsim_cable netsim_host_cable(const struct netsim_graph_builder *builder);
struct netsim_cable netsim_core_cable(const struct netsim_graph_builder *builder);

#endif
