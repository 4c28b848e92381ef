/* SPDX-License-Identifier: BSD-3-Clause */
#include "store/store.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"

#define ALIGNMENT 64u

void store_init(struct store *store, uint64_t limit_bytes)
{
    atomic_init(&store->bytes, 0);
    store->limit_bytes = limit_bytes;
}

static bool count(struct store *store, size_t bytes)
{
    uint64_t before = atomic_fetch_add_explicit(&store->bytes, bytes, memory_order_relaxed);
    if (bytes <= store->limit_bytes && before <= store->limit_bytes - bytes)
        return true;
    atomic_fetch_sub_explicit(&store->bytes, bytes, memory_order_relaxed);
    lh_fail(LH_ENOMEM, "%zu bytes more exceed the limit of the engine's memory, %llu bytes", bytes,
            (unsigned long long)store->limit_bytes);
    return false;
}

static void *counted(struct store *store, void *memory, size_t bytes)
{
    if (memory)
        return memory;
    atomic_fetch_sub_explicit(&store->bytes, bytes, memory_order_relaxed);
    lh_fail(LH_ENOMEM, "no memory for %zu bytes", bytes);
    return NULL;
}

void *store_take(struct store *store, size_t bytes)
{
    return count(store, bytes) ? counted(store, calloc(1, bytes), bytes) : NULL;
}

void *store_take_aligned(struct store *store, size_t bytes)
{
    if (!count(store, bytes))
        return NULL;
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return counted(store, aligned_alloc(ALIGNMENT, rounded), bytes);
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
    uint64_t before = atomic_fetch_sub_explicit(&store->bytes, bytes, memory_order_relaxed);
    assert(before >= bytes);
    (void)before;
}

uint64_t store_bytes(const struct store *store)
{
    return atomic_load_explicit(&store->bytes, memory_order_relaxed);
}
