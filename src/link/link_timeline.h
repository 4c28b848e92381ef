/*
 * timeline.h - things that are due at some time, taken out in order of that time, ties in order of
 * creation.
 *
 * Most packets of a link fall due in the order in which they were sent: those wait in a ring, at O(1). One
 * that is reordered (jitter, reordering, another speed) waits in a binary heap beside it. Taking looks at
 * both.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_LINK_TIMELINE_H
#define LH_LINK_TIMELINE_H

#include <stddef.h>

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

#endif
