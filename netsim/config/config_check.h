/*
 * config_check.h - conditions on several keys of a configuration together.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_CONFIG_CONFIG_CHECK_H
#define LH_NETSIM_CONFIG_CONFIG_CHECK_H

#include "netsim/base/config.h"

/* 0; -LH_EINVAL or -LH_ERANGE with keys, values and remedy in lh_last_error(). */
int netsim_config_check(const struct netsim_config *config);

#endif
