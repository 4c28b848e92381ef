/*
 * simulation_config.h - the configuration as its owner sees it: keys as text, and the files that it keeps.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_CONFIG_SIMULATION_CONFIG_H
#define LH_NETSIM_CONFIG_SIMULATION_CONFIG_H

#include <longhaul/netsim.h>

#include "netsim/base/config.h"

const struct netsim_config *netsim_config_values(const struct lh_netsim_config *config);

#endif
