/*
 * due_heap.h - which of many things is due first: a binary heap whose entries stand in the things themselves.
 * Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_BASE_DUE_HEAP_H
#define LH_BASE_DUE_HEAP_H

#include <longhaul/types.h>

/* Part of what is due. Zeroed: it is in no heap. */
struct due {
    lh_time at_ns;
    uint32_t place; /* in the heap, from 1; 0: it is not there */
};

struct due_heap {
    struct due **places; /* `room` of them, owned by the caller */
    uint32_t room;
    uint32_t count;
};

void due_heap_init(struct due_heap *heap, struct due **places, uint32_t room);
/* It is due then, whenever it was before; LH_TIME_NEVER takes it out. A heap has room for all its entries
 * (asserted). */
void due_heap_set(struct due_heap *heap, struct due *due, lh_time at_ns);
/* Takes out one that is due at `now`, the earliest; NULL when none is. */
struct due *due_heap_pop(struct due_heap *heap, lh_time now);
/* When the earliest is due; LH_TIME_NEVER when there is none. */
lh_time due_heap_next(const struct due_heap *heap);

#endif
