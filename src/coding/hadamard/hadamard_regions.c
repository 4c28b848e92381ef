/*
 * regions.c - the tail is cut by the bits of its length, the largest first: so that each piece is at a
 * multiple of its length.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/hadamard/regions.h"

#include <assert.h>

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
