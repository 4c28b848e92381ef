/*
 * keys.h - the keys of a configuration: their names, and how each is read.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_KEYS_H
#define LH_NETSIM_KEYS_H

#include <longhaul/netsim.h>

#include "netsim/key_value.h"

/* Its place in lh_netsim_keys(); -LH_EINVAL when there is no such key, with what may have been meant in
 * lh_last_error(). */
int netsim_key_find(const char *name);
/* How the key of that place is read. */
const struct netsim_value_rule *netsim_key_rule(int place);

#endif
