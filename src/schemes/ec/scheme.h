/*
 * scheme.h - the erasure codes in the table of schemes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_EC_SCHEME_H
#define LH_SCHEMES_EC_SCHEME_H

#include "model/scheme_entry.h"

extern const struct lh_scheme ec_mds_scheme; /* "ec:mds" */
extern const struct lh_scheme ec_xor_scheme; /* "ec:xor" */
extern const struct scheme_entry ec_mds_entry;
extern const struct scheme_entry ec_xor_entry;

#endif
