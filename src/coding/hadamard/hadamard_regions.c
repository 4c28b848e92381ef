/* SPDX-License-Identifier: BSD-3-Clause */
#include "coding/hadamard/hadamard_regions.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* ---- regions --------------------------------------------------------------------------------------- */

/*
 * The tail is cut by the bits of its length, the largest first: so that each piece is at a
 * multiple of its length.
 */

uint32_t regions_cut(uint64_t count, uint32_t block_log, uint32_t stride_log, struct region *regions)
{
    assert(stride_log <= block_log && block_log <= 30);
    const uint32_t tile_log = block_log + stride_log;
    uint32_t used = 0;
    uint64_t first = 0;
    if (count >> tile_log) {
        regions[used++] = (struct region){0, count >> tile_log, block_log, stride_log};
        first = count >> tile_log << tile_log;
    }
    for (uint32_t bit = tile_log; bit-- > 0;)
        if (count >> bit & 1) {
            const uint32_t block = bit < block_log ? bit : block_log;
            regions[used++] = (struct region){first, 1, block, bit - block};
            first += UINT64_C(1) << bit;
        }
    assert(first == count && used <= REGIONS_MAX);
    return used;
}

/* ---- signs ----------------------------------------------------------------------------------------- */

/* SplitMix64 (Steele, Lea and Flood 2014), whose n-th number needs none of those before. */

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
