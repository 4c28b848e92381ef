/*
 * bitmap.c - ranges, counting and searching, a word at a time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/bitmap.h"

#include <assert.h>

/* Bits low … high - 1 of one word. */
static uint64_t word_mask(size_t low, size_t high)
{
    assert(low < high && high <= 64);
    return (UINT64_MAX << low) & (UINT64_MAX >> (64 - high));
}

/* The part of the range first … end - 1 that lies in the word of `first`; *next is where the rest begins.
 */
static uint64_t first_word_mask(size_t first, size_t end, size_t *next)
{
    size_t word_start = first - first % 64;
    *next = end - word_start > 64 ? word_start + 64 : end;
    return word_mask(first - word_start, *next - word_start);
}

void lh_bitmap_set_range(uint64_t *words, size_t first, size_t count)
{
    for (size_t bit = first, end = first + count; bit < end;) {
        uint64_t *word = &words[bit / 64];
        *word |= first_word_mask(bit, end, &bit);
    }
}

void lh_bitmap_clear_range(uint64_t *words, size_t first, size_t count)
{
    for (size_t bit = first, end = first + count; bit < end;) {
        uint64_t *word = &words[bit / 64];
        *word &= ~first_word_mask(bit, end, &bit);
    }
}

size_t lh_bitmap_count(const uint64_t *words, size_t bits)
{
    size_t count = 0;
    for (size_t bit = 0; bit < bits;) {
        uint64_t word = words[bit / 64];
        count += (size_t)__builtin_popcountll(word & first_word_mask(bit, bits, &bit));
    }
    assert(count <= bits);
    return count;
}

/* The first bit at or after `from` that is set once each word is XORed with `flip`. */
static size_t next_set(const uint64_t *words, size_t bits, size_t from, uint64_t flip)
{
    for (size_t bit = from; bit < bits;) {
        size_t word_start = bit - bit % 64;
        uint64_t word = words[bit / 64] ^ flip;
        word &= first_word_mask(bit, bits, &bit);
        if (word != 0)
            return word_start + (size_t)__builtin_ctzll(word);
    }
    return bits;
}

size_t lh_bitmap_next_set(const uint64_t *words, size_t bits, size_t from)
{
    return next_set(words, bits, from, 0);
}

size_t lh_bitmap_next_clear(const uint64_t *words, size_t bits, size_t from)
{
    return next_set(words, bits, from, UINT64_MAX);
}
