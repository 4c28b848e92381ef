/*
 * netsim_build.h - graphs and lists of flows for tests, laid out as a simulation does: counted, then built.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SUPPORT_NETSIM_BUILD_H
#define LH_SUPPORT_NETSIM_BUILD_H

#include "netsim/topology/topology.h"
#include "netsim/workload/workload.h"

/* 100 Gbit/s, 1 us; the long cable 3 ms; nothing else. */
struct netsim_topology_config topology_config(enum netsim_topology_kind kind);

/* Counts, allocates and builds, and asserts that both passes want the same memory and give the same counts.
 * An error of either pass is returned. *memory is to be freed; NULL after an error. */
int build_topology(const struct netsim_topology_config *config, struct netsim_graph *graph, void **memory);
int build_workload(const struct netsim_workload_config *config, const struct netsim_graph *graph,
                   uint64_t seed, struct netsim_flow_list *list, void **memory);

#endif
