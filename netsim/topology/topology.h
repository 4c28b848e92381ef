/*
 * topology.h - builds the graph of a simulation from its configuration.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TOPOLOGY_TOPOLOGY_H
#define LH_NETSIM_TOPOLOGY_TOPOLOGY_H

#include "netsim/base/config.h"
#include "netsim/engine/graph.h"

/* Lays the graph out in the arena (graph->nodes and so on are NULL, and the counts are set, when the arena
 * only counts). -LH_EINVAL or -LH_ERANGE with the key ("topology.k") or the line of the file, the value and
 * the remedy in lh_last_error(). */
int netsim_topology_build(const struct netsim_topology_config *config, struct netsim_arena *arena,
                          struct netsim_graph *graph);

#endif
