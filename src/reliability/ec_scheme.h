/*
 * ec_scheme.h - the erasure-code schemes, as they are plugged in.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_RELIABILITY_EC_SCHEME_H
#define LH_RELIABILITY_EC_SCHEME_H

#include <longhaul/scheme.h>

extern const struct lh_scheme ec_mds_scheme; /* "ec:mds" */
extern const struct lh_scheme ec_xor_scheme; /* "ec:xor" */

#endif
