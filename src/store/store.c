/* SPDX-License-Identifier: BSD-3-Clause */
#include "store/store.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/types.h>

#include "base/error.h"

/* ---- store ----------------------------------------------------------------------------------------- */

#define ALIGNMENT 64u

void store_init(struct store *store, uint64_t limit_bytes)
{
    *store = (struct store){.limit_bytes = limit_bytes};
}

void store_init_part(struct store *store, struct store *whole)
{
    *store = (struct store){.whole = whole, .limit_bytes = UINT64_MAX};
}

static void add(_Atomic uint64_t *count, uint64_t more)
{
    atomic_fetch_add_explicit(count, more, memory_order_relaxed);
}

static void subtract(struct store *store, size_t bytes)
{
    uint64_t before = atomic_fetch_sub_explicit(&store->bytes, bytes, memory_order_relaxed);
    assert(before >= bytes);
    (void)before;
}

static void note_max(struct store *store, uint64_t bytes)
{
    uint64_t maximum = atomic_load_explicit(&store->maximum, memory_order_relaxed);
    while (bytes > maximum &&
           !atomic_compare_exchange_weak_explicit(&store->maximum, &maximum, bytes, memory_order_relaxed,
                                                  memory_order_relaxed))
        ; /* until another has noted more */
}

/* In this store alone. */
static bool count_here(struct store *store, size_t bytes)
{
    uint64_t before = atomic_fetch_add_explicit(&store->bytes, bytes, memory_order_relaxed);
    if (bytes <= store->limit_bytes && before <= store->limit_bytes - bytes) {
        note_max(store, before + bytes);
        return true;
    }
    atomic_fetch_sub_explicit(&store->bytes, bytes, memory_order_relaxed); /* the sum may have wrapped */
    return false;
}

/* NULL, or the one that has reached its limit: then nothing is counted. */
static struct store *count_all(struct store *store, size_t bytes)
{
    for (struct store *part = store; part; part = part->whole) {
        if (count_here(part, bytes))
            continue;
        for (struct store *counted = store; counted != part; counted = counted->whole)
            subtract(counted, bytes);
        return part;
    }
    return NULL;
}

bool store_count(struct store *store, size_t bytes)
{
    struct store *full = count_all(store, bytes);
    if (!full)
        return true;
    for (struct store *part = store; part != full->whole; part = part->whole)
        add(&part->refusals, 1);
    lh_fail(LH_ENOMEM,
            "%zu bytes more exceed the limit of the engine's memory, %llu bytes (raise "
            "lh_engine_attr.memory_bytes, or close connections)",
            bytes, (unsigned long long)full->limit_bytes);
    return false;
}

static void *counted(struct store *store, void *memory, size_t bytes)
{
    if (memory)
        return memory;
    store_forget(store, bytes);
    lh_fail(LH_ENOMEM, "no memory for %zu bytes", bytes);
    return NULL;
}

void *store_take(struct store *store, size_t bytes)
{
    return store_count(store, bytes) ? counted(store, calloc(1, bytes), bytes) : NULL;
}

void *store_try(struct store *store, size_t bytes)
{
    return count_all(store, bytes) ? NULL : counted(store, calloc(1, bytes), bytes);
}

static void *aligned(struct store *store, size_t bytes)
{
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return counted(store, aligned_alloc(ALIGNMENT, rounded), bytes);
}

void *store_take_aligned(struct store *store, size_t bytes)
{
    return store_count(store, bytes) ? aligned(store, bytes) : NULL;
}

void *store_try_aligned(struct store *store, size_t bytes)
{
    return count_all(store, bytes) ? NULL : aligned(store, bytes);
}

void store_give(struct store *store, void *memory, size_t bytes)
{
    if (!memory)
        return;
    store_forget(store, bytes);
    free(memory);
}

void store_forget(struct store *store, size_t bytes)
{
    for (; store; store = store->whole) /* itself, and what it is a part of */
        subtract(store, bytes);
}

uint64_t store_bytes(const struct store *store)
{
    return atomic_load_explicit(&store->bytes, memory_order_relaxed);
}

/* ---- ring ------------------------------------------------------------------------------------------ */

#define SIZE_MIN 4u

static size_t bytes_of(const struct ring *ring)
{
    return (size_t)ring->size * ring->entry_bytes;
}

bool ring_hold(struct ring *ring, struct store *store, uint32_t first, uint32_t count)
{
    assert(count <= ring->maximum);
    if (count <= ring->size)
        return true;
    struct ring grown = *ring;
    grown.size = ring->maximum < SIZE_MIN ? ring->maximum : SIZE_MIN;
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
