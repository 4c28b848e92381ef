/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/arrivals.h"

#include <assert.h>
#include <string.h>

#include "base/bitmap.h"
#include "schemes/sr/timing.h"

size_t sr_arrivals_bytes(uint32_t capacity)
{
    return LH_BITMAP_WORDS((size_t)capacity) * sizeof(uint64_t);
}

void sr_arrivals_init(struct sr_arrivals *arrivals, uint32_t capacity, void *memory)
{
    assert((uintptr_t)memory % sizeof(uint64_t) == 0);
    memset(memory, 0, sr_arrivals_bytes(capacity));
    *arrivals = (struct sr_arrivals){.capacity = capacity, .limit = capacity, .bits = memory};
}

/* One past the highest bit before `limit` that is set. */
static uint32_t highest_below(const struct sr_arrivals *arrivals, uint32_t limit)
{
    for (uint32_t words = (limit + 63) / 64; words > 0; words--) {
        uint64_t bits = arrivals->bits[words - 1] & sr_word_below(words - 1, limit);
        if (bits != 0)
            return (words - 1) * 64 + 64 - (uint32_t)__builtin_clzll(bits);
    }
    return 0;
}

void sr_arrivals_limit(struct sr_arrivals *arrivals, uint32_t limit)
{
    assert(limit <= arrivals->capacity);
    if (limit == arrivals->limit)
        return;
    if (arrivals->highest > limit) { /* a peer that sends more than it says */
        lh_bitmap_clear_range(arrivals->bits, limit, arrivals->highest - limit);
        arrivals->highest = highest_below(arrivals, limit);
        arrivals->seen = (uint32_t)lh_bitmap_count(arrivals->bits, arrivals->highest);
        if (arrivals->cumulative > limit)
            arrivals->cumulative = limit;
    }
    arrivals->limit = limit;
}

/* Eight bytes of the bitmap as eight bits, the first byte lowest. Workers write the bytes meanwhile, hence
 * atomic. */
static uint64_t load_eight(const uint8_t *bytes)
{
    typedef uint64_t __attribute__((may_alias)) word_of_bytes;
    uint64_t eight = __atomic_load_n((const word_of_bytes *)(const void *)bytes, __ATOMIC_RELAXED);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    eight = __builtin_bswap64(eight);
#endif
    uint64_t low_seven = UINT64_C(0x7f7f7f7f7f7f7f7f);
    uint64_t nonzero = ((((eight & low_seven) + low_seven) | eight) & ~low_seven) >> 7;
    return (nonzero * UINT64_C(0x0102040810204080)) >> 56;
}

/* Bytes 0 … count - 1 as bits; count <= 64. */
static uint64_t load_word(const uint8_t *bytes, uint32_t count)
{
    uint64_t word = 0;
    uint32_t i = 0;
    if ((uintptr_t)bytes % sizeof(uint64_t) == 0)
        for (; i + 8 <= count; i += 8)
            word |= load_eight(bytes + i) << i;
    for (; i < count; i++)
        word |= (uint64_t)(__atomic_load_n(&bytes[i], __ATOMIC_RELAXED) != 0) << i;
    return word;
}

/* Brings one word up to date; returns how many of its chunks are new. */
static uint32_t update_word(struct sr_arrivals *arrivals, const uint8_t *chunk_bitmap, uint32_t word)
{
    uint64_t wanted = sr_word_below(word, arrivals->limit) & ~arrivals->bits[word];
    if (wanted == 0)
        return 0;
    uint32_t left = arrivals->limit - word * 64;
    uint64_t fresh = load_word(chunk_bitmap + (size_t)word * 64, left < 64 ? left : 64) & wanted;
    if (fresh == 0)
        return 0;
    arrivals->bits[word] |= fresh;
    uint32_t end = word * 64 + 64 - (uint32_t)__builtin_clzll(fresh);
    if (end > arrivals->highest)
        arrivals->highest = end;
    uint32_t count = (uint32_t)__builtin_popcountll(fresh);
    arrivals->seen += count;
    return count;
}

/* Words first … end - 1, until `arrived` chunks are known. With `contiguous` it also ends at the first word
 * that brings nothing. Returns where it ended. */
static uint32_t update_words(struct sr_arrivals *arrivals, const uint8_t *chunk_bitmap, uint32_t first,
                             uint32_t end, uint32_t arrived, bool contiguous)
{
    uint32_t word = first;
    while (word < end && arrivals->seen < arrived) {
        uint32_t fresh = update_word(arrivals, chunk_bitmap, word++);
        if (contiguous && fresh == 0)
            break;
    }
    return word;
}

uint32_t sr_arrivals_update(struct sr_arrivals *arrivals, const uint8_t *chunk_bitmap, uint32_t arrived)
{
    uint32_t before = arrivals->seen;
    if (arrived <= before)
        return 0;
    uint32_t words = (arrivals->limit + 63) / 64;
    uint32_t front = arrivals->highest / 64;
    /* New chunks come at the front as a rule, repairs between cumulative and there; the rest is rare. */
    uint32_t rest = update_words(arrivals, chunk_bitmap, front, words, arrived, true);
    update_words(arrivals, chunk_bitmap, arrivals->cumulative / 64, front, arrived, false);
    update_words(arrivals, chunk_bitmap, rest, words, arrived, false);
    arrivals->cumulative =
        (uint32_t)lh_bitmap_next_clear(arrivals->bits, arrivals->limit, arrivals->cumulative);
    assert(arrivals->seen <= arrivals->limit && arrivals->highest <= arrivals->limit);
    assert(arrivals->cumulative <= arrivals->highest);
    return arrivals->seen - before;
}

bool sr_arrivals_gap(const struct sr_arrivals *arrivals, uint32_t first, uint32_t end)
{
    assert(end <= arrivals->capacity);
    return first < end && lh_bitmap_next_clear(arrivals->bits, end, first) < end;
}
