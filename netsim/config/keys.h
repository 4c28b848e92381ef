/*
 * keys.h - the keys of a configuration: their names, and how each is read.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_CONFIG_KEYS_H
#define LH_NETSIM_CONFIG_KEYS_H

#include <longhaul/netsim.h>

#include "netsim/base/config.h"
#include "netsim/config/key_value.h"

/* Its place in lh_netsim_keys(); -LH_EINVAL when there is no such key, with what may have been meant in
 * lh_last_error(). */
int netsim_key_find(const char *name);
/* How the key of that place is read. */
const struct netsim_value_rule *netsim_key_rule(int place);

/* Every key has its default, and no file is given. */
void netsim_config_init(struct netsim_config *config);
/* Sets one key from text, but for files: those keep their text (simulation_config.h). -LH_EINVAL or
 * -LH_ERANGE with key, value and remedy in lh_last_error(). */
int netsim_key_set(struct netsim_config *config, const char *key, const char *value);

#endif
