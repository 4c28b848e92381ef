/*
 * key_use.h - which keys a configuration does not read: those of another topology or workload, and those of
 * what is switched off.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_CONFIG_KEY_USE_H
#define LH_NETSIM_CONFIG_KEY_USE_H

#include "netsim/base/config.h"

/* The key whose value makes that nothing reads `key`, such as "workload.kind"; NULL: it is read. `key` is one
 * of the table's. */
const char *netsim_key_unread(const struct netsim_config *config, const char *key);

#endif
