/*
 * earlier.h - the earlier of two moments: how every timer finds out when it is due next.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_BASE_EARLIER_H
#define LH_BASE_EARLIER_H

#include <longhaul/types.h>

static inline lh_time lh_earlier(lh_time a, lh_time b)
{
    return a < b ? a : b;
}

/* *next becomes the candidate, if that is earlier. */
static inline void lh_keep_earlier(lh_time *next, lh_time candidate)
{
    *next = lh_earlier(*next, candidate);
}

#endif
