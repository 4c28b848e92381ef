/*
 * signs.h - random signs of a tensor's elements, by number: each host computes the same from the seed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CODING_HADAMARD_SIGNS_H
#define LH_CODING_HADAMARD_SIGNS_H

#include <stddef.h>
#include <stdint.h>

/* A bit for each of the elements first … first + count - 1, from bit 0 of signs[0] on. count is a power of
 * two, first a multiple of it. */
void signs_fill(uint64_t *signs, uint64_t seed, uint64_t first, size_t count);

#endif
