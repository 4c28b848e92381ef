/*
 * scheme_list.h - the numbers by which schemes are known on the wire. lh_schemes() is in
 * <longhaul/scheme.h>.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_RELIABILITY_SCHEME_LIST_H
#define LH_RELIABILITY_SCHEME_LIST_H

#include <longhaul/scheme.h>

/* Never reused: they travel in every clear-to-send. */
enum lh_scheme_id {
    LH_SCHEME_ID_SR_NACK = 1,
    LH_SCHEME_ID_SR_RTO = 2,
    LH_SCHEME_ID_EC_MDS = 3,
    LH_SCHEME_ID_EC_XOR = 4,
};

/* The scheme of this build with that name, which need not end in zero; NULL: none. */
const struct lh_scheme *scheme_list_find(const char *name, size_t bytes);

#endif
