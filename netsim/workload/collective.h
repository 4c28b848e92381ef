/*
 * collective.h - collective operations of a group of hosts, one after the other: flows that wait for flows.
 *
 * The schedule (src/collective/schedule) says what is sent in which step. A flow starts when its sender has
 * the blocks that it carries (collective_waits.h). Members in several datacenters follow the map of these
 * where groups do.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_WORKLOAD_COLLECTIVE_H
#define LH_NETSIM_WORKLOAD_COLLECTIVE_H

#include "netsim/workload/kind.h"

int netsim_workload_collective(const struct netsim_workload *workload);
/* Numbers of workload->scratch. -LH_EINVAL, -LH_ERANGE. */
int netsim_workload_collective_scratch(const struct netsim_workload_config *config,
                                       const struct netsim_graph *graph, uint64_t *numbers);

#endif
