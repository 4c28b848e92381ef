/*
 * topology_tree.h - one fat tree among the nodes of a graph: by itself, or as one of several datacenters.
 *
 * Its parts are added in the order of their numbers: the hosts of all trees, then the switches, then the
 * cables.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TOPOLOGY_TREE_H
#define LH_NETSIM_TOPOLOGY_TREE_H

#include "netsim/topology_kinds.h"

struct netsim_tree {
    uint32_t half; /* k/2: edges of a pod, aggregation switches of a pod, cores of an aggregation switch */
    uint32_t edge_hosts;
    uint32_t host_first;
    uint32_t edge_first; /* of all pods; then come all aggregation switches, then the cores */
    uint32_t aggregation_first;
    uint32_t core_first;
    unsigned site;
    bool has_dci;   /* each core has one more port, behind the others, for a switch above */
    char prefix[4]; /* of names: "", "a.", "b." */
};

static inline uint32_t netsim_tree_cores(const struct netsim_tree *tree)
{
    return tree->half * tree->half;
}

static inline uint32_t netsim_tree_hosts(const struct netsim_tree *tree)
{
    return 2 * tree->half * tree->half * tree->edge_hosts;
}

/* -LH_ERANGE, with topology.k named; 0. */
int netsim_tree_check_k(uint32_t k);
/* Of one tree, without what is above its cores. */
void netsim_tree_shape(uint32_t k, uint32_t edge_hosts, struct netsim_shape *shape);

/* Each sets where its nodes begin. */
void netsim_tree_add_hosts(struct netsim_graph_builder *builder, struct netsim_tree *tree);
void netsim_tree_add_switches(struct netsim_graph_builder *builder, struct netsim_tree *tree);
/* All but those above the cores. Those between switches have the faults. */
void netsim_tree_add_cables(struct netsim_graph_builder *builder, const struct netsim_tree *tree,
                            uint32_t core_faults);

#endif
