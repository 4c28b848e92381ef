/*
 * rounds.h - permutation, incast and all-to-all: the same number of flows in each round.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_WORKLOAD_ROUNDS_H
#define LH_NETSIM_WORKLOAD_ROUNDS_H

#include "netsim/workload/kind.h"

int netsim_workload_rounds(const struct netsim_workload *workload);

#endif
