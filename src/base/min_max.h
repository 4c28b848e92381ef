/*
 * least.h - the lesser and the greater of two numbers, and what is left of a limit.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_BASE_LEAST_H
#define LH_BASE_LEAST_H

#include <stdint.h>

static inline uint64_t lh_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t lh_most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* 0 where all of it is used, and more. */
static inline uint64_t lh_left(uint64_t limit, uint64_t used)
{
    return used < limit ? limit - used : 0;
}

#endif
