/* SPDX-License-Identifier: BSD-3-Clause */
#include "link/link_timeline.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/types.h>

/* ---- timeline -------------------------------------------------------------------------------------- */

#define CAPACITY_FIRST 64u

static bool before(const struct timeline_entry *a, const struct timeline_entry *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order;
}

static struct timeline_entry *ring_at(const struct timeline *timeline, size_t index)
{
    return &timeline->ring[(timeline->ring_first + index) & (timeline->ring_capacity - 1)];
}

static bool ring_grow(struct timeline *timeline)
{
    size_t capacity = timeline->ring_capacity == 0 ? CAPACITY_FIRST : 2 * timeline->ring_capacity;
    struct timeline_entry *ring = malloc(capacity * sizeof(*ring));
    if (ring == NULL)
        return false;
    for (size_t i = 0; i < timeline->ring_count; i++)
        ring[i] = *ring_at(timeline, i);
    free(timeline->ring);
    timeline->ring = ring;
    timeline->ring_capacity = capacity;
    timeline->ring_first = 0;
    return true;
}

static bool ring_push(struct timeline *timeline, struct timeline_entry entry)
{
    if (timeline->ring_count == timeline->ring_capacity && !ring_grow(timeline))
        return false;
    *ring_at(timeline, timeline->ring_count) = entry;
    timeline->ring_count++;
    return true;
}

static struct timeline_entry ring_pop(struct timeline *timeline)
{
    assert(timeline->ring_count > 0);
    struct timeline_entry first = timeline->ring[timeline->ring_first];
    timeline->ring_first = (timeline->ring_first + 1) & (timeline->ring_capacity - 1);
    timeline->ring_count--;
    return first;
}

static bool heap_push(struct timeline *timeline, struct timeline_entry entry)
{
    if (timeline->heap_count == timeline->heap_capacity) {
        size_t capacity = timeline->heap_capacity == 0 ? CAPACITY_FIRST : 2 * timeline->heap_capacity;
        struct timeline_entry *grown = realloc(timeline->heap, capacity * sizeof(*grown));
        if (grown == NULL)
            return false;
        timeline->heap = grown;
        timeline->heap_capacity = capacity;
    }
    struct timeline_entry *heap = timeline->heap;
    size_t hole = timeline->heap_count++;
    /* Halves its index each round. */
    while (hole > 0 && before(&entry, &heap[(hole - 1) / 2])) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = entry;
    return true;
}

static struct timeline_entry heap_pop(struct timeline *timeline)
{
    assert(timeline->heap_count > 0);
    struct timeline_entry *heap = timeline->heap;
    struct timeline_entry first = heap[0];
    struct timeline_entry last = heap[--timeline->heap_count];
    size_t count = timeline->heap_count;
    size_t hole = 0;
    /* Doubles its index each round. */
    for (size_t child = 1; child < count; child = 2 * hole + 1) {
        if (child + 1 < count && before(&heap[child + 1], &heap[child]))
            child++;
        if (!before(&heap[child], &last))
            break;
        heap[hole] = heap[child];
        hole = child;
    }
    heap[hole] = last;
    return first;
}

void timeline_clear(struct timeline *timeline)
{
    free(timeline->ring);
    free(timeline->heap);
    memset(timeline, 0, sizeof(*timeline));
}

bool timeline_push(struct timeline *timeline, lh_time due_ns, uint64_t order, void *item)
{
    assert(item != NULL && due_ns != LH_TIME_NEVER);
    struct timeline_entry entry = {.due_ns = due_ns, .order = order, .item = item};
    bool in_order =
        timeline->ring_count == 0 || ring_at(timeline, timeline->ring_count - 1)->due_ns <= due_ns;
    return in_order ? ring_push(timeline, entry) : heap_push(timeline, entry);
}

const struct timeline_entry *timeline_first(const struct timeline *timeline)
{
    const struct timeline_entry *ring = timeline->ring_count > 0 ? ring_at(timeline, 0) : NULL;
    if (timeline->heap_count == 0)
        return ring;
    return ring != NULL && before(ring, &timeline->heap[0]) ? ring : &timeline->heap[0];
}

lh_time timeline_next_ns(const struct timeline *timeline)
{
    const struct timeline_entry *first = timeline_first(timeline);
    return first == NULL ? LH_TIME_NEVER : first->due_ns;
}

void *timeline_pop_due(struct timeline *timeline, lh_time now)
{
    const struct timeline_entry *first = timeline_first(timeline);
    if (first == NULL || first->due_ns > now)
        return NULL;
    bool from_heap = timeline->heap_count > 0 && first == &timeline->heap[0];
    return from_heap ? heap_pop(timeline).item : ring_pop(timeline).item;
}

/* ---- ring store ------------------------------------------------------------------------------------ */

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
