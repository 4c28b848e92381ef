/*
 * scheme.h - the erasure codes in the table of schemes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_EC_SCHEME_H
#define LH_SCHEMES_EC_SCHEME_H

#include "model/scheme_entry.h"

/* Never reused: they travel in every clear-to-send. */
enum ec_scheme_id {
    EC_MDS_ID = 3,
    EC_XOR_ID = 4,
};

extern const struct lh_scheme ec_mds_scheme; /* "ec:mds" */
extern const struct lh_scheme ec_xor_scheme; /* "ec:xor" */
extern const struct scheme_entry ec_mds_entry;
extern const struct scheme_entry ec_xor_entry;

#endif
