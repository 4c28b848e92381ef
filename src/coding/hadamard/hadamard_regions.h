/*
 * hadamard_regions.h - how a tensor is cut into tiles: whole ones first, then smaller ones, then blocks of
 * few elements.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CODING_HADAMARD_HADAMARD_REGIONS_H
#define LH_CODING_HADAMARD_HADAMARD_REGIONS_H

#include <stddef.h>
#include <stdint.h>

/* Tiles of one shape, one after the other. */
struct region {
    uint64_t first; /* element */
    uint64_t tiles; /* at least 1 */
    uint32_t block_log;
    uint32_t stride_log;
};

/* The whole tiles, and a region for each bit of S and p. */
#define REGIONS_MAX 64u

/* Cuts `count` elements, for p = 2^block_log and S = 2^stride_log <= p; returns the number of regions. */
uint32_t regions_cut(uint64_t count, uint32_t block_log, uint32_t stride_log, struct region *regions);

/* ---- signs ----------------------------------------------------------------------------------------- */

/* Random signs of a tensor's elements, by number: each host computes the same from the seed. */

/* A bit for each of the elements first … first + count - 1, from bit 0 of signs[0] on. count is a power of
 * two, first a multiple of it. */
void signs_fill(uint64_t *signs, uint64_t seed, uint64_t first, size_t count);

#endif
