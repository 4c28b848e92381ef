/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/due_heap.h"

#include <assert.h>
#include <stddef.h>

void due_heap_init(struct due_heap *heap, struct due **places, uint32_t room)
{
    *heap = (struct due_heap){.places = places, .room = room};
}

static void put(struct due_heap *heap, uint32_t place, struct due *due)
{
    heap->places[place - 1] = due;
    due->place = place;
}

/* Moves an entry from a free place towards the root, to where no earlier one stands below it. */
static void rise(struct due_heap *heap, uint32_t place, struct due *due)
{
    for (; place > 1 && due->at_ns < heap->places[place / 2 - 1]->at_ns; place /= 2)
        put(heap, place, heap->places[place / 2 - 1]);
    put(heap, place, due);
}

/* Likewise away from the root. */
static void sink(struct due_heap *heap, uint32_t place, struct due *due)
{
    for (uint32_t child; (child = 2 * place) <= heap->count; place = child) {
        if (child < heap->count && heap->places[child]->at_ns < heap->places[child - 1]->at_ns)
            child++;
        if (due->at_ns <= heap->places[child - 1]->at_ns)
            break;
        put(heap, place, heap->places[child - 1]);
    }
    put(heap, place, due);
}

static void settle(struct due_heap *heap, uint32_t place, struct due *due)
{
    if (place > 1 && due->at_ns < heap->places[place / 2 - 1]->at_ns)
        rise(heap, place, due);
    else
        sink(heap, place, due);
}

static void take_out(struct due_heap *heap, struct due *due)
{
    uint32_t place = due->place;
    assert(place > 0 && place <= heap->count && heap->places[place - 1] == due);
    struct due *last = heap->places[--heap->count];
    due->place = 0;
    if (last != due)
        settle(heap, place, last);
}

void due_heap_set(struct due_heap *heap, struct due *due, lh_time at_ns)
{
    if (at_ns == LH_TIME_NEVER) {
        if (due->place != 0)
            take_out(heap, due);
        return;
    }
    if (due->place != 0 && due->at_ns == at_ns)
        return;
    due->at_ns = at_ns;
    if (due->place != 0) {
        settle(heap, due->place, due);
        return;
    }
    assert(heap->count < heap->room);
    rise(heap, ++heap->count, due);
}

struct due *due_heap_pop(struct due_heap *heap, lh_time now)
{
    if (heap->count == 0 || heap->places[0]->at_ns > now)
        return NULL;
    struct due *first = heap->places[0];
    take_out(heap, first);
    return first;
}

lh_time due_heap_next(const struct due_heap *heap)
{
    return heap->count == 0 ? LH_TIME_NEVER : heap->places[0]->at_ns;
}
