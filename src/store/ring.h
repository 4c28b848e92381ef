/*
 * ring.h - entries by their number, which counts up and wraps: a ring that doubles when its numbers need more
 * places, up to a bound, and that takes no memory while it is empty.
 *
 * The owner knows which numbers are in use. An entry moves when the ring grows: no pointer outlives
 * ring_hold().
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_STORE_RING_H
#define LH_STORE_RING_H

#include <assert.h>
#include <stdbool.h>

#include "store/store.h"

struct ring {
    uint8_t *entries;
    uint32_t entry_bytes;
    uint32_t size; /* places: 0, or a power of two */
    uint32_t most; /* a power of two */
};

/* Without memory. most: a power of two. */
static inline void ring_init(struct ring *ring, size_t entry_bytes, uint32_t most)
{
    assert(most > 0 && (most & (most - 1)) == 0);
    *ring = (struct ring){.entry_bytes = (uint32_t)entry_bytes, .most = most};
}

/* Places for the numbers first … first + count - 1, count at most `most`. Entries keep their contents, new
 * ones are zeroed. False: no memory, nothing has changed; lh_last_error() has the reason. */
bool ring_hold(struct ring *ring, struct store *store, uint32_t first, uint32_t count);
/* No entry is in use. */
void ring_free(struct ring *ring, struct store *store);

/* A number that ring_hold() was called for. */
static inline void *ring_at(const struct ring *ring, uint32_t number)
{
    return ring->entries + (size_t)(number & (ring->size - 1)) * ring->entry_bytes;
}

#endif
