/*
 * dumbbell.h - two hosts with one cable, and the dumbbell: hosts on either side of a bottleneck.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TOPOLOGY_DUMBBELL_H
#define LH_NETSIM_TOPOLOGY_DUMBBELL_H

#include "netsim/topology/kind.h"

int netsim_two_hosts_shape(const struct netsim_topology_config *config, struct netsim_shape *shape);
void netsim_two_hosts_fill(struct netsim_graph_builder *builder);
int netsim_dumbbell_shape(const struct netsim_topology_config *config, struct netsim_shape *shape);
void netsim_dumbbell_fill(struct netsim_graph_builder *builder);

#endif
