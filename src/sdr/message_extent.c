/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/message_extent.h"

#include <assert.h>

#define FIXED ((uint64_t)1 << 63)
#define SHORT ((uint64_t)1 << 62) /* the short packet has come: it ends where the message does */
#define FLAGS (FIXED | SHORT)

static uint32_t end_of(uint64_t word)
{
    return (uint32_t)word;
}

/* One past the highest full packet. */
static uint32_t top_of(uint64_t word)
{
    return (uint32_t)((word & ~FLAGS) >> 32);
}

static uint64_t make(uint64_t flags, uint32_t top, uint64_t end)
{
    assert(top < 1u << 30 && end <= UINT32_MAX);
    return flags | (uint64_t)top << 32 | end;
}

static bool change(struct message_extent *extent, uint64_t *from, uint64_t to)
{
    return atomic_compare_exchange_weak_explicit(&extent->word, from, to, memory_order_relaxed,
                                                 memory_order_relaxed);
}

void message_extent_open(struct message_extent *extent, uint64_t room_bytes)
{
    atomic_store_explicit(&extent->word, make(0, 0, room_bytes), memory_order_relaxed);
}

uint64_t message_extent_full(struct message_extent *extent, uint32_t mtu, uint32_t first, uint64_t mask)
{
    assert(mask != 0);
    uint64_t word = atomic_load_explicit(&extent->word, memory_order_relaxed);
    for (;;) { /* until no other thread is in between: each of those makes the message longer, or ends it */
        uint32_t top = first + 64 - (uint32_t)__builtin_clzll(mask);
        if (top <= top_of(word))
            return mask;
        if ((uint64_t)top * mtu > end_of(word)) {
            uint32_t whole = end_of(word) / mtu;
            mask = whole > first ? mask & (((uint64_t)1 << (whole - first)) - 1) : 0;
            if (mask == 0)
                return 0;
            continue;
        }
        if (change(extent, &word, make(word & FLAGS, top, end_of(word))))
            return mask;
    }
}

bool message_extent_short(struct message_extent *extent, uint32_t mtu, uint32_t packet, uint32_t bytes)
{
    assert(bytes > 0 && bytes < mtu);
    uint64_t end = (uint64_t)packet * mtu + bytes;
    uint64_t word = atomic_load_explicit(&extent->word, memory_order_relaxed);
    do {
        bool possible = (word & FIXED) != 0 ? end == end_of(word) : end <= end_of(word);
        if (!possible || packet < top_of(word))
            return false;
    } while (!change(extent, &word, make(FLAGS, top_of(word), end)));
    return true;
}

bool message_extent_fix(struct message_extent *extent, uint32_t mtu, uint64_t bytes)
{
    uint64_t word = atomic_load_explicit(&extent->word, memory_order_relaxed);
    do {
        uint64_t arrived = (word & SHORT) != 0 ? end_of(word) : (uint64_t)top_of(word) * mtu;
        if (bytes > end_of(word) || bytes < arrived)
            return false;
    } while (!change(extent, &word, make(FIXED | (word & SHORT), top_of(word), bytes)));
    return true;
}

uint64_t message_extent_end(const struct message_extent *extent)
{
    return end_of(atomic_load_explicit(&extent->word, memory_order_relaxed));
}
