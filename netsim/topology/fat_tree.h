/*
 * fat_tree.h - the k-ary fat tree (Al-Fares et al., SIGCOMM 2008): by itself, or one of several datacenters.
 *
 * k pods of k/2 edge and k/2 aggregation switches, and (k/2)^2 cores; aggregation switch a of each pod has
 * the cores from a * k/2 on. Ports, in this order: of an edge its hosts, the aggregation switches of the pod;
 * of an aggregation switch the edges of the pod, its cores; of a core the pods, the switch above it if there
 * is one.
 *
 * Its parts are added in the order of their numbers: the hosts of all trees, then the switches, then the
 * cables.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TOPOLOGY_FAT_TREE_H
#define LH_NETSIM_TOPOLOGY_FAT_TREE_H

#include "netsim/topology/kind.h"

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

int netsim_fat_tree_shape(const struct netsim_topology_config *config, struct netsim_shape *shape);
void netsim_fat_tree_fill(struct netsim_graph_builder *builder);

#endif
