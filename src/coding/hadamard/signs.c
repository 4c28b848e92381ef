/*
 * signs.c - SplitMix64 (Steele, Lea and Flood 2014), whose n-th number needs none of those before.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/hadamard/signs.h"

#include <assert.h>

#define STEP UINT64_C(0x9E3779B97F4A7C15)

static uint64_t mixed(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

void signs_fill(uint64_t *signs, uint64_t seed, uint64_t first, size_t count)
{
    assert((count & (count - 1)) == 0 && (first & (count - 1)) == 0);
    uint64_t state = seed + (first / 64 + 1) * STEP;
    signs[0] = mixed(state) >> first % 64;
    for (size_t i = 1; i < count / 64; i++)
        signs[i] = mixed(state += STEP);
}
