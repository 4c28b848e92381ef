/*
 * simulation.h - what is behind the handle of <longhaul/netsim.h>.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_SIMULATION_H
#define LH_NETSIM_SIMULATION_H

#include <longhaul/netsim.h>

struct netsim;

struct netsim *netsim_of(struct lh_netsim *simulation);

#endif
