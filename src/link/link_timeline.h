/*
 * link_timeline.h - packets in time: a queue by arrival time, ties in order of creation, and the ring that
 * stores them.
 *
 * Most packets of a link fall due in the order in which they were sent: those wait in a ring, at O(1). One
 * that is reordered (jitter, reordering, another speed) waits in a binary heap beside it. Taking looks at
 * both.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_LINK_LINK_TIMELINE_H
#define LH_LINK_LINK_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <longhaul/types.h>

struct timeline_entry {
    lh_time due_ns;
    uint64_t order; /* of creation: of two that are due together, the lower goes first */
    void *item;
};

/* All zero is an empty timeline. It grows by doubling; what its items occupy elsewhere bounds it. */
struct timeline {
    struct timeline_entry *ring; /* due in the order of arrival; capacity is a power of two */
    size_t ring_capacity;
    size_t ring_first;
    size_t ring_count;
    struct timeline_entry *heap;
    size_t heap_capacity;
    size_t heap_count;
};

/* Frees the timeline's own memory, not the items. */
void timeline_clear(struct timeline *timeline);
/* False when memory ran out; nothing changed then. `order` is above that of every earlier push. */
bool timeline_push(struct timeline *timeline, lh_time due_ns, uint64_t order, void *item);
/* When the first thing is due; LH_TIME_NEVER when there is none. */
lh_time timeline_next_ns(const struct timeline *timeline);
/* The first entry, without taking it; NULL when there is none. Valid until the next push or pop. */
const struct timeline_entry *timeline_first(const struct timeline *timeline);
/* Takes the first item when it is due at or before `now`, else NULL. */
void *timeline_pop_due(struct timeline *timeline, lh_time now);

static inline size_t timeline_count(const struct timeline *timeline)
{
    return timeline->ring_count + timeline->heap_count;
}

/* ---- ring store ------------------------------------------------------------------------------------ */

/*
 * Consecutive blocks of bytes of a ring, released in any order.
 *
 * For things that leave about as they came. A block that was given back is free again once all older ones
 * are too, so nothing is ever searched for, and what is in use lies together.
 */

#define RING_STORE_ALIGN 16u

/* Before each block's bytes. */
struct ring_block {
    uint32_t bytes;    /* of the block with this header, a multiple of RING_STORE_ALIGN */
    uint32_t users;    /* 0: given back */
    uint64_t reserved; /* keeps the bytes behind it aligned */
};

struct ring_store {
    uint8_t *memory;
    size_t capacity; /* a multiple of RING_STORE_ALIGN */
    size_t oldest;   /* offset of the oldest block in use */
    size_t next;     /* offset of the next block */
    size_t used;
};

/* False when there is no memory. Pages are allocated only as they are used. */
bool ring_store_init(struct ring_store *store, size_t capacity);
void ring_store_free(struct ring_store *store);
/* Whether ring_store_take(bytes) would succeed. */
bool ring_store_fits(const struct ring_store *store, uint32_t bytes);
/* A block with one user, or NULL when it does not fit. */
void *ring_store_take(struct ring_store *store, uint32_t bytes);
/* One more user, who gives the block back on his own. */
void ring_store_share(void *block);
void ring_store_give_back(struct ring_store *store, void *block);
/* The oldest block in use; NULL when there is none. */
const void *ring_store_oldest(const struct ring_store *store);

#endif
