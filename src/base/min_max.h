/*
 * min_max.h - the lesser and the greater of two numbers, and what is left of a limit.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_BASE_MIN_MAX_H
#define LH_BASE_MIN_MAX_H

#include <stdint.h>

#include <longhaul/types.h>

static inline uint64_t lh_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t lh_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* 0 where all of it is used, and more. */
static inline uint64_t lh_sub_sat(uint64_t limit, uint64_t used)
{
    return used < limit ? limit - used : 0;
}

/* The earlier of two moments: how every timer finds when it expires next. */
static inline lh_time lh_earlier(lh_time a, lh_time b)
{
    return lh_min(a, b);
}

/* *next becomes the candidate, if that is earlier. */
static inline void lh_keep_earlier(lh_time *next, lh_time candidate)
{
    *next = lh_earlier(*next, candidate);
}

#endif
