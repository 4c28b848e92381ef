/*
 * poisson.h - flows that arrive as a Poisson process; or as one for each pair of sites, each drawn by itself,
 * so that none shifts another.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_WORKLOAD_POISSON_H
#define LH_NETSIM_WORKLOAD_POISSON_H

#include "netsim/workload/kind.h"

int netsim_workload_poisson(const struct netsim_workload *workload);

#endif
