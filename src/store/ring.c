/* SPDX-License-Identifier: BSD-3-Clause */
#include "store/ring.h"

#include <string.h>

#define SIZE_LEAST 4u

static size_t bytes_of(const struct ring *ring)
{
    return (size_t)ring->size * ring->entry_bytes;
}

bool ring_hold(struct ring *ring, struct store *store, uint32_t first, uint32_t count)
{
    assert(count <= ring->most);
    if (count <= ring->size)
        return true;
    struct ring grown = *ring;
    grown.size = ring->most < SIZE_LEAST ? ring->most : SIZE_LEAST;
    while (grown.size < count) /* at most `most` */
        grown.size *= 2;
    grown.entries = store_take(store, bytes_of(&grown));
    if (!grown.entries)
        return false;
    for (uint32_t i = 0; i < ring->size; i++)
        memcpy(ring_at(&grown, first + i), ring_at(ring, first + i), ring->entry_bytes);
    store_give(store, ring->entries, bytes_of(ring));
    *ring = grown;
    return true;
}

void ring_free(struct ring *ring, struct store *store)
{
    store_give(store, ring->entries, bytes_of(ring));
    ring->entries = NULL;
    ring->size = 0;
}
