/*
 * across_sites.h - completion times of flows between sites, and of all as their receivers see them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_RUN_ACROSS_SITES_H
#define LH_CLI_SIM_RUN_ACROSS_SITES_H

#include <longhaul/netsim.h>

/* Sets the figures RECEIVED, ACROSS and ACROSS_RECEIVED of value[CLI_FIGURES]; NaN where no such flow is
 * done. 0, or -LH_ENOMEM. */
int cli_across_collect(double *value, const struct lh_netsim *simulation);

#endif
