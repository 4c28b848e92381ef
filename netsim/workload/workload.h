/*
 * workload.h - draws the list of flows of a simulation from its configuration.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_WORKLOAD_WORKLOAD_H
#define LH_NETSIM_WORKLOAD_WORKLOAD_H

#include "base/prng.h"
#include "netsim/base/config.h"
#include "netsim/base/flow_list.h"
#include "netsim/engine/graph.h"

/* Bytes of memory that the calls below need besides, aligned for numbers of 32 bits. Errors as below. */
int netsim_workload_scratch(const struct netsim_workload_config *config, const struct netsim_graph *graph,
                            struct netsim_arena *scratch);
/* The graph is complete, both times: poisson looks at sites and at the cables of hosts (others only at the
 * number of hosts, a collective at their sites). No flow may come of it: poisson with little load.
 *
 * Lays the list out in the arena (list->flows is NULL, and count is set, when the arena only counts: the
 * same draws are made both times). -LH_EINVAL or -LH_ERANGE with the key ("workload.load") or the line of
 * the file, the value and the remedy in lh_last_error(). */
int netsim_workload_build(const struct netsim_workload_config *config, const struct netsim_graph *graph,
                          const struct lh_prng *prng, void *scratch, struct netsim_arena *arena,
                          struct netsim_flow_list *list);

#endif
