/*
 * leaf_spine.h - every leaf to every spine.
 *
 * Ports of a leaf: its hosts, then the spines. Ports of a spine: the leaves.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TOPOLOGY_LEAF_SPINE_H
#define LH_NETSIM_TOPOLOGY_LEAF_SPINE_H

#include "netsim/topology/kind.h"

int netsim_leaf_spine_shape(const struct netsim_topology_config *config, struct netsim_shape *shape);
void netsim_leaf_spine_fill(struct netsim_graph_builder *builder);

#endif
