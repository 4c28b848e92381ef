/*
 * bitmap.h - bits in 64-bit words: bit i is bit i % 64 of word i / 64.
 *
 * Plain functions for one owner; the atomic ones of the receive path are in sdr/message_table.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_BASE_BITMAP_H
#define LH_BASE_BITMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LH_BITMAP_WORDS(bits) (((bits) + 63) / 64)

static inline bool lh_bitmap_get(const uint64_t *words, size_t bit)
{
    return (words[bit / 64] >> (bit % 64)) & 1;
}

static inline void lh_bitmap_set(uint64_t *words, size_t bit)
{
    words[bit / 64] |= (uint64_t)1 << (bit % 64);
}

static inline void lh_bitmap_clear(uint64_t *words, size_t bit)
{
    words[bit / 64] &= ~((uint64_t)1 << (bit % 64));
}

/* Bits first … first + count - 1. */
void lh_bitmap_set_range(uint64_t *words, size_t first, size_t count);
void lh_bitmap_clear_range(uint64_t *words, size_t first, size_t count);
size_t lh_bitmap_count(const uint64_t *words, size_t bits);
/* The first bit at or after `from` that is set (clear), or `bits` when there is none. */
size_t lh_bitmap_next_set(const uint64_t *words, size_t bits, size_t from);
size_t lh_bitmap_next_clear(const uint64_t *words, size_t bits, size_t from);

#endif
