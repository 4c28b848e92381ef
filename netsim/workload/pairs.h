/*
 * pairs.h - which sites send to which, and how much: "a>c, b>c=2".
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_WORKLOAD_PAIRS_H
#define LH_NETSIM_WORKLOAD_PAIRS_H

#include "netsim/base/config.h"

/* Reads a list of FROM>TO or FROM>TO=TIMES, where sites are letters from a on; "none": an empty one. *pairs
 * stays as it is when that fails: -LH_EINVAL or -LH_ERANGE with key, value and remedy in lh_last_error(). */
int netsim_pairs_read(const char *key, const char *value, struct netsim_pairs *pairs);

#endif
