/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/engine/event_queue.h"

#include <string.h>

static unsigned log2_down(uint64_t value)
{
    return value <= 1 ? 0 : 63u - (unsigned)__builtin_clzll(value);
}

void netsim_event_queue_init(struct netsim_event_queue *queue, struct netsim_arena *arena,
                             uint32_t events_count, netsim_time bucket_ps)
{
    memset(queue, 0, sizeof *queue);
    queue->events_count = events_count;
    queue->near_shift = log2_down(bucket_ps);
    queue->window_shift = queue->near_shift + NETSIM_NEAR_LOG;
    assert(queue->window_shift < 60);
    queue->events = netsim_arena_take(arena, events_count, sizeof *queue->events);
    queue->near_buckets = netsim_arena_take(arena, NETSIM_NEAR, sizeof *queue->near_buckets);
    queue->far_buckets = netsim_arena_take(arena, NETSIM_FAR, sizeof *queue->far_buckets);
    queue->heap = netsim_arena_take(arena, events_count, sizeof *queue->heap);
    if (arena->base == NULL)
        return;
    for (uint32_t i = 0; i < events_count; i++)
        queue->events[i].at_ps = NETSIM_NEVER;
    memset(queue->near_buckets, 0xFF, NETSIM_NEAR * sizeof *queue->near_buckets);
    memset(queue->far_buckets, 0xFF, NETSIM_FAR * sizeof *queue->far_buckets);
}

/* Rounds: as many as events in the bucket, which are few unless the bucket is far too wide. */
void netsim_event_insert_sorted(struct netsim_event_queue *queue, uint32_t index, uint32_t event)
{
    struct netsim_bucket *bucket = &queue->near_buckets[index];
    struct netsim_event *entry = &queue->events[event];
    uint32_t after = bucket->last;
    while (after != NETSIM_NO_EVENT && queue->events[after].at_ps > entry->at_ps)
        after = queue->events[after].previous;
    uint32_t before = after == NETSIM_NO_EVENT ? bucket->first : queue->events[after].next;
    assert(before != NETSIM_NO_EVENT);
    entry->previous = after;
    entry->next = before;
    queue->events[before].previous = event;
    if (after == NETSIM_NO_EVENT)
        bucket->first = event;
    else
        queue->events[after].next = event;
}

/* ---- the heap: two children a node, (time, order) ---- */

static bool sooner(const struct netsim_heap_entry *a, const struct netsim_heap_entry *b)
{
    return a->at_ps < b->at_ps || (a->at_ps == b->at_ps && a->order < b->order);
}

static void sift_up(struct netsim_heap_entry *heap, uint32_t place)
{
    struct netsim_heap_entry moving = heap[place];
    while (place > 0 && sooner(&moving, &heap[(place - 1) / 2])) {
        heap[place] = heap[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    heap[place] = moving;
}

static void sift_down(struct netsim_heap_entry *heap, uint32_t count, uint32_t place)
{
    struct netsim_heap_entry moving = heap[place];
    for (;;) {
        uint32_t child = 2 * place + 1;
        if (child >= count)
            break;
        if (child + 1 < count && sooner(&heap[child + 1], &heap[child]))
            child++;
        if (!sooner(&heap[child], &moving))
            break;
        heap[place] = heap[child];
        place = child;
    }
    heap[place] = moving;
}

static void heap_remove(struct netsim_event_queue *queue, uint32_t place)
{
    queue->heap_count--;
    if (place == queue->heap_count)
        return;
    queue->heap[place] = queue->heap[queue->heap_count];
    sift_down(queue->heap, queue->heap_count, place);
    sift_up(queue->heap, place);
}

/* ---- wide buckets ---- */

static void append_far(struct netsim_event_queue *queue, uint64_t window, uint32_t event)
{
    uint32_t index = (uint32_t)window & (NETSIM_FAR - 1);
    queue->far_bits[index / 64] |= (uint64_t)1 << (index % 64);
    netsim_event_append(queue, &queue->far_buckets[index], event);
}

void netsim_event_insert_far(struct netsim_event_queue *queue, uint32_t event)
{
    netsim_time at_ps = queue->events[event].at_ps;
    uint64_t window = at_ps >> queue->window_shift;
    assert(window > queue->window);
    if (window - queue->window < NETSIM_FAR) {
        append_far(queue, window, event);
        return;
    }
    assert(queue->heap_count < queue->events_count);
    queue->heap[queue->heap_count] = (struct netsim_heap_entry){
        .at_ps = at_ps,
        .order = queue->heap_orders++,
        .event = event,
    };
    sift_up(queue->heap, queue->heap_count++);
}

/* The next window whose wide bucket is not empty, or UINT64_MAX. The wheel is searched once around. */
static uint64_t far_first(const struct netsim_event_queue *queue)
{
    uint32_t start = (uint32_t)(queue->window + 1) & (NETSIM_FAR - 1);
    for (uint32_t looked = 0; looked < NETSIM_FAR;) {
        uint32_t index = (start + looked) & (NETSIM_FAR - 1);
        uint64_t bits = queue->far_bits[index / 64] >> (index % 64);
        if (bits != 0) {
            looked += (uint32_t)__builtin_ctzll(bits);
            return looked < NETSIM_FAR - 1 ? queue->window + 1 + looked : UINT64_MAX;
        }
        looked += 64 - index % 64;
    }
    return UINT64_MAX;
}

/* What the heap holds of the wide buckets' time moves there: nothing was put into these buckets directly as
 * long as they were out of reach, so the order of scheduling is kept. */
static void heap_to_far(struct netsim_event_queue *queue)
{
    while (queue->heap_count > 0) {
        const struct netsim_heap_entry first = queue->heap[0];
        uint64_t window = first.at_ps >> queue->window_shift;
        if (window - queue->window >= NETSIM_FAR)
            return;
        heap_remove(queue, 0);
        if (window == queue->window)
            netsim_event_insert_near(queue, first.event);
        else
            append_far(queue, window, first.event);
    }
}

bool netsim_event_window_next(struct netsim_event_queue *queue, netsim_time limit_ps)
{
    uint64_t window = far_first(queue);
    if (window == UINT64_MAX && queue->heap_count > 0)
        window = queue->heap[0].at_ps >> queue->window_shift;
    if (window == UINT64_MAX || window > limit_ps >> queue->window_shift)
        return false;
    queue->window = window;
    queue->cursor = 0;
    uint32_t index = (uint32_t)window & (NETSIM_FAR - 1);
    uint32_t event = queue->far_buckets[index].first;
    queue->far_buckets[index] = (struct netsim_bucket){NETSIM_NO_EVENT, NETSIM_NO_EVENT};
    queue->far_bits[index / 64] &= ~((uint64_t)1 << (index % 64));
    while (event != NETSIM_NO_EVENT) {
        uint32_t next = queue->events[event].next;
        netsim_event_insert_near(queue, event);
        event = next;
    }
    heap_to_far(queue);
    return true;
}

static void unlink_event(struct netsim_event_queue *queue, struct netsim_bucket *bucket,
                         const struct netsim_event *entry)
{
    if (entry->previous == NETSIM_NO_EVENT)
        bucket->first = entry->next;
    else
        queue->events[entry->previous].next = entry->next;
    if (entry->next == NETSIM_NO_EVENT)
        bucket->last = entry->previous;
    else
        queue->events[entry->next].previous = entry->previous;
}

void netsim_event_cancel(struct netsim_event_queue *queue, uint32_t event)
{
    struct netsim_event *entry = &queue->events[event];
    assert(netsim_event_pending(queue, event));
    uint64_t window = entry->at_ps >> queue->window_shift;
    if (window == queue->window) {
        uint32_t index = (uint32_t)(entry->at_ps >> queue->near_shift) & (NETSIM_NEAR - 1);
        unlink_event(queue, &queue->near_buckets[index], entry);
        if (queue->near_buckets[index].first == NETSIM_NO_EVENT)
            netsim_event_near_emptied(queue, index);
    } else if (window - queue->window < NETSIM_FAR) {
        uint32_t index = (uint32_t)window & (NETSIM_FAR - 1);
        unlink_event(queue, &queue->far_buckets[index], entry);
        if (queue->far_buckets[index].first == NETSIM_NO_EVENT)
            queue->far_bits[index / 64] &= ~((uint64_t)1 << (index % 64));
    } else {
        uint32_t place = 0;
        while (queue->heap[place].event != event) /* it is in there */
            place++;
        heap_remove(queue, place);
    }
    entry->at_ps = NETSIM_NEVER;
}

/* The earliest of a list. */
static netsim_time list_earliest(const struct netsim_event_queue *queue, uint32_t event)
{
    netsim_time earliest = NETSIM_NEVER;
    for (; event != NETSIM_NO_EVENT; event = queue->events[event].next) {
        if (queue->events[event].at_ps < earliest)
            earliest = queue->events[event].at_ps;
    }
    return earliest;
}

netsim_time netsim_event_peek(const struct netsim_event_queue *queue)
{
    uint32_t index = netsim_event_near_first(queue);
    if (index != NETSIM_NEAR)
        return queue->events[queue->near_buckets[index].first].at_ps;
    uint64_t window = far_first(queue);
    if (window != UINT64_MAX)
        return list_earliest(queue, queue->far_buckets[window & (NETSIM_FAR - 1)].first);
    return queue->heap_count > 0 ? queue->heap[0].at_ps : NETSIM_NEVER;
}
