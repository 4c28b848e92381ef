/*
 * collective.h - collective operations of a group of hosts, one after the other: flows that wait for flows.
 *
 * The schedule (src/collective/schedule) says what is sent in which step. A member sends in a step when it
 * has received all of the steps before.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_WORKLOAD_COLLECTIVE_H
#define LH_NETSIM_WORKLOAD_COLLECTIVE_H

#include "netsim/workload/kind.h"

int netsim_workload_collective(const struct netsim_workload *workload);

#endif
