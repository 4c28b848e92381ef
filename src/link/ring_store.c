/* SPDX-License-Identifier: BSD-3-Clause */
#include "link/ring_store.h"

#include <assert.h>
#include <stdlib.h>

_Static_assert(sizeof(struct ring_block) == RING_STORE_ALIGN,
               "a remainder of the ring always holds a header");

static struct ring_block *block_at(const struct ring_store *store, size_t offset)
{
    assert(offset < store->capacity && offset % RING_STORE_ALIGN == 0);
    return (struct ring_block *)(void *)(store->memory + offset);
}

static struct ring_block *block_of(void *bytes)
{
    return (struct ring_block *)bytes - 1;
}

static size_t block_bytes(uint32_t bytes)
{
    size_t whole = sizeof(struct ring_block) + bytes;
    return (whole + RING_STORE_ALIGN - 1) / RING_STORE_ALIGN * RING_STORE_ALIGN;
}

/* Bytes at the end of the ring that must be passed over, because a block lies in one piece. */
static size_t bytes_skipped(const struct ring_store *store, size_t needed)
{
    size_t to_end = store->capacity - store->next;
    return needed > to_end ? to_end : 0;
}

bool ring_store_init(struct ring_store *store, size_t capacity)
{
    capacity = capacity / RING_STORE_ALIGN * RING_STORE_ALIGN;
    assert(capacity > 0);
    *store = (struct ring_store){.capacity = capacity, .memory = malloc(capacity)};
    return store->memory != NULL;
}

void ring_store_free(struct ring_store *store)
{
    free(store->memory);
    *store = (struct ring_store){0};
}

bool ring_store_fits(const struct ring_store *store, uint32_t bytes)
{
    size_t needed = block_bytes(bytes);
    return store->used + bytes_skipped(store, needed) + needed <= store->capacity;
}

/* Marks the next bytes as a block. They do not run over the end of the ring. */
static struct ring_block *append(struct ring_store *store, size_t bytes, uint32_t users)
{
    struct ring_block *block = block_at(store, store->next);
    *block = (struct ring_block){.bytes = (uint32_t)bytes, .users = users};
    store->next += bytes;
    store->used += bytes;
    assert(store->next <= store->capacity && store->used <= store->capacity);
    if (store->next == store->capacity)
        store->next = 0;
    return block;
}

void *ring_store_take(struct ring_store *store, uint32_t bytes)
{
    if (!ring_store_fits(store, bytes))
        return NULL;
    size_t needed = block_bytes(bytes);
    size_t skipped = bytes_skipped(store, needed);
    if (skipped > 0)
        append(store, skipped, 0);
    return append(store, needed, 1) + 1;
}

void ring_store_share(void *bytes)
{
    struct ring_block *block = block_of(bytes);
    assert(block->users > 0);
    block->users++;
}

void ring_store_give_back(struct ring_store *store, void *bytes)
{
    struct ring_block *block = block_of(bytes);
    assert(block->users > 0);
    block->users--;
    /* Frees each block once: as many rounds as takes, all in all. */
    while (store->used > 0) {
        const struct ring_block *oldest = block_at(store, store->oldest);
        if (oldest->users > 0)
            break;
        store->used -= oldest->bytes;
        store->oldest += oldest->bytes;
        if (store->oldest == store->capacity)
            store->oldest = 0;
    }
    /* An empty ring begins at its start again: a block of any size fits, and memory stays warm. */
    if (store->used == 0) {
        store->oldest = 0;
        store->next = 0;
    }
}

const void *ring_store_oldest(const struct ring_store *store)
{
    /* Never a skipped one: what comes before it is given back together with it. */
    return store->used > 0 ? block_at(store, store->oldest) + 1 : NULL;
}
