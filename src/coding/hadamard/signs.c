/*
 * signs.c - SplitMix64 (Steele, Lea and Flood 2014), whose n-th number needs none of those before.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/hadamard/signs.h"

#include <assert.h>

static uint64_t number(uint64_t seed, uint64_t n)
{
    uint64_t z = seed + (n + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

void signs_fill(uint64_t *signs, uint64_t seed, uint64_t first, size_t count)
{
    assert((count & (count - 1)) == 0 && first % count == 0);
    for (size_t i = 0; i < count; i += 64)
        signs[i / 64] = number(seed, (first + i) / 64) >> first % 64;
}
