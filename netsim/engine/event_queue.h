/*
 * event_queue.h - what happens next: a timing wheel over a fixed set of events.
 *
 * Each event has a number, 0 … events - 1, and is pending at most once. Earliest first; equal times in the
 * order in which they were scheduled. Near events lie in a wheel of narrow buckets, each a sorted list;
 * later ones in a wheel of wide buckets, each as wide as the whole near wheel; the rest in a heap. With
 * buckets about as wide as events are apart, scheduling and taking are a handful of instructions, however
 * many are pending.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_ENGINE_EVENT_QUEUE_H
#define LH_NETSIM_ENGINE_EVENT_QUEUE_H

#include <assert.h>
#include <stdbool.h>

#include "netsim/base/netsim_time.h"

#define NETSIM_NEAR_LOG 15u
#define NETSIM_NEAR     (1u << NETSIM_NEAR_LOG) /* narrow buckets */
#define NETSIM_FAR_LOG  12u
#define NETSIM_FAR      (1u << NETSIM_FAR_LOG) /* wide buckets */
#define NETSIM_NO_EVENT UINT32_MAX

struct netsim_event {
    netsim_time at_ps; /* NETSIM_NEVER: not pending */
    uint32_t next;     /* in its bucket */
    uint32_t previous;
};

struct netsim_bucket {
    uint32_t first;
    uint32_t last;
};

struct netsim_heap_entry {
    netsim_time at_ps;
    uint64_t order;
    uint32_t event;
};

struct netsim_event_queue {
    struct netsim_event *events;
    struct netsim_bucket *near_buckets; /* the window's time, in NETSIM_NEAR parts */
    struct netsim_bucket *far_buckets;  /* index: window % NETSIM_FAR, of the windows after this one */
    struct netsim_heap_entry *heap;     /* what lies further off than all wide buckets */
    uint64_t window;                    /* at_ps >> window_shift of what the near wheel holds */
    uint64_t heap_orders;
    uint32_t heap_count;
    uint32_t events_count;
    uint32_t cursor;     /* no near bucket before it holds anything */
    unsigned near_shift; /* a near bucket is 2^near_shift ps wide */
    unsigned window_shift;
    uint64_t near_summary[NETSIM_NEAR / 4096]; /* bit w: near_bits[w] is not 0 */
    uint64_t near_bits[NETSIM_NEAR / 64];      /* bit b: bucket b is not empty */
    uint64_t far_bits[NETSIM_FAR / 64];
};

/* bucket_ps: about how far apart two events will be; rounded down to a power of two. */
void netsim_event_queue_init(struct netsim_event_queue *queue, struct netsim_arena *arena,
                             uint32_t events_count, netsim_time bucket_ps);
/* The slow ways of schedule and next. */
void netsim_event_insert_sorted(struct netsim_event_queue *queue, uint32_t bucket, uint32_t event);
void netsim_event_insert_far(struct netsim_event_queue *queue, uint32_t event);
/* Makes the window the next one that holds an event. False: there is none, or it begins after limit_ps. */
bool netsim_event_window_next(struct netsim_event_queue *queue, netsim_time limit_ps);
/* A pending event is not pending any more. */
void netsim_event_cancel(struct netsim_event_queue *queue, uint32_t event);

static inline bool netsim_event_pending(const struct netsim_event_queue *queue, uint32_t event)
{
    return queue->events[event].at_ps != NETSIM_NEVER;
}

static inline void netsim_event_append(struct netsim_event_queue *queue, struct netsim_bucket *bucket,
                                       uint32_t event)
{
    struct netsim_event *entry = &queue->events[event];
    entry->next = NETSIM_NO_EVENT;
    entry->previous = bucket->last;
    if (bucket->last == NETSIM_NO_EVENT)
        bucket->first = event;
    else
        queue->events[bucket->last].next = event;
    bucket->last = event;
}

/* Puts an event of this window into its near bucket. */
static inline void netsim_event_insert_near(struct netsim_event_queue *queue, uint32_t event)
{
    netsim_time at_ps = queue->events[event].at_ps;
    uint32_t index = (uint32_t)(at_ps >> queue->near_shift) & (NETSIM_NEAR - 1);
    struct netsim_bucket *bucket = &queue->near_buckets[index];
    if (bucket->last == NETSIM_NO_EVENT) {
        queue->near_bits[index / 64] |= (uint64_t)1 << (index % 64);
        queue->near_summary[index / 4096] |= (uint64_t)1 << (index / 64 % 64);
        if (index < queue->cursor)
            queue->cursor = index;
    } else if (queue->events[bucket->last].at_ps > at_ps) {
        netsim_event_insert_sorted(queue, index, event);
        return;
    }
    netsim_event_append(queue, bucket, event);
}

/* Lets an event that is not pending happen at at_ps, which is not before the last one taken. What would be
 * after NETSIM_TIME_MAX is pending then, and never happens. */
static inline void netsim_event_schedule(struct netsim_event_queue *queue, uint32_t event,
                                         netsim_time at_ps)
{
    assert(event < queue->events_count && !netsim_event_pending(queue, event));
    if (at_ps > NETSIM_TIME_MAX)
        at_ps = NETSIM_TIME_MAX;
    queue->events[event].at_ps = at_ps;
    if (at_ps >> queue->window_shift == queue->window)
        netsim_event_insert_near(queue, event);
    else
        netsim_event_insert_far(queue, event);
}

static inline void netsim_event_near_emptied(struct netsim_event_queue *queue, uint32_t index)
{
    queue->near_bits[index / 64] &= ~((uint64_t)1 << (index % 64));
    if (queue->near_bits[index / 64] == 0)
        queue->near_summary[index / 4096] &= ~((uint64_t)1 << (index / 64 % 64));
}

/* The first near bucket from the cursor on that is not empty, or NETSIM_NEAR. */
static inline uint32_t netsim_event_near_first(const struct netsim_event_queue *queue)
{
    uint32_t word = queue->cursor / 64;
    uint64_t bits = queue->near_bits[word] & ~(uint64_t)0 << (queue->cursor % 64);
    if (bits != 0)
        return word * 64 + (uint32_t)__builtin_ctzll(bits);
    word++;
    for (uint32_t part = word / 64; part < NETSIM_NEAR / 4096; part++) {
        bits = queue->near_summary[part];
        if (part == word / 64)
            bits &= ~(uint64_t)0 << (word % 64);
        if (bits != 0) {
            word = part * 64 + (uint32_t)__builtin_ctzll(bits);
            return word * 64 + (uint32_t)__builtin_ctzll(queue->near_bits[word]);
        }
    }
    return NETSIM_NEAR;
}

/* Takes the next event, if it happens at limit_ps or before; else NETSIM_NO_EVENT. */
static inline uint32_t netsim_event_next(struct netsim_event_queue *queue, netsim_time limit_ps,
                                         netsim_time *at_ps)
{
    uint32_t index = netsim_event_near_first(queue);
    while (index == NETSIM_NEAR) {
        if (!netsim_event_window_next(queue, limit_ps))
            return NETSIM_NO_EVENT;
        index = netsim_event_near_first(queue);
    }
    struct netsim_bucket *bucket = &queue->near_buckets[index];
    uint32_t event = bucket->first;
    struct netsim_event *entry = &queue->events[event];
    if (entry->at_ps > limit_ps)
        return NETSIM_NO_EVENT;
    queue->cursor = index;
    bucket->first = entry->next;
    if (entry->next == NETSIM_NO_EVENT) {
        bucket->last = NETSIM_NO_EVENT;
        netsim_event_near_emptied(queue, index);
    } else {
        queue->events[entry->next].previous = NETSIM_NO_EVENT;
    }
    *at_ps = entry->at_ps;
    entry->at_ps = NETSIM_NEVER;
    return event;
}

/* When the next event happens; NETSIM_NEVER when none is pending. Looks, and changes nothing. */
netsim_time netsim_event_peek(const struct netsim_event_queue *queue);

#endif
