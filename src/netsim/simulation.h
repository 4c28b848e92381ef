/*
 * simulation.h - what stands behind the handles of <longhaul/netsim.h>.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_SIMULATION_H
#define LH_NETSIM_SIMULATION_H

#include <longhaul/netsim.h>

#include "netsim/config.h"

/* keys.c: sets one key from words; a file's text is set by simulation_config.c. */
int netsim_key_set(struct netsim_config *config, const char *key, const char *value);
void netsim_config_init(struct netsim_config *config);
/* What can only be said of all keys together: 0, -LH_EINVAL or -LH_ERANGE. */
int netsim_config_check(const struct netsim_config *config);

/* simulation_config.c: the numbers inside. */
const struct netsim_config *netsim_config_values(const struct lh_netsim_config *config);

#endif
