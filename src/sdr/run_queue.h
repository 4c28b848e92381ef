/*
 * run_queue.h - what a worker has to serve: entries that are ready, in the order in which they became so, and
 * those that are due. One that is neither costs nothing.
 *
 * Any thread marks an entry as ready; the rest is its worker's, or of whoever holds that worker's gate.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_RUN_QUEUE_H
#define LH_SDR_RUN_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/due_heap.h"
#include "sdr/run/turns.h"

/* Why an entry is to be served. */
enum run_ready {
    RUN_IDLE,    /* it is not */
    RUN_LINGERS, /* nothing asked for it: something may have arrived */
    RUN_MARKED,
};

/* A QP, as one worker sees it. Zeroed: it belongs to no queue. Not in a
 * cache line with what another worker writes: other threads mark it while its worker serves the next. */
struct run_entry {
    struct due due;   /* first, so that it tells its entry */
    struct turn turn; /* its worker's */
    struct sdr_qp *qp;
    struct run_entry *next; /* as the two below under the queue's lock, while it is listed */
    struct run_entry *previous;
    bool listed;
    bool attached;                /* likewise: it may be listed */
    _Atomic enum run_ready ready; /* not idle: listed, or about to be, or taken and not served yet */
    lh_time moved_ns;             /* when anything moved in it last */
    bool watched;                 /* it has descriptors (watch.h) */
    bool polled;                  /* nothing else tells when something arrives for it */
    _Atomic bool fds_changed;     /* since they were registered */
};

struct run_queue {
    pthread_mutex_t lock;
    struct run_entry *first; /* ready */
    struct run_entry *last;
    struct due_heap due;
};

/* For at most `room` entries; the caller owns their places. */
void run_queue_init(struct run_queue *queue, struct due **places, uint32_t room);
void run_queue_destroy(struct run_queue *queue);

void run_queue_attach(struct run_queue *queue, struct run_entry *entry);
/* Afterwards the queue does not know it, however it is marked. */
void run_queue_detach(struct run_queue *queue, struct run_entry *entry);

/* The entry is served in its next turn, once. What was written before is seen then. Any thread. */
void run_queue_mark(struct run_queue *queue, struct run_entry *entry);
/* It is polled in its next turn, unless it is marked. By the worker. */
void run_queue_linger(struct run_queue *queue, struct run_entry *entry);
/* Marks those that are due. */
void run_queue_mark_due(struct run_queue *queue, lh_time now);
/* All that are ready, the first of a list by `next`. Each is to be served: by run_entry_begin(), before which
 * its `next` is read. */
struct run_entry *run_queue_take(struct run_queue *queue);
static inline struct run_entry *run_entry_of_turn(struct turn *turn)
{
    return (struct run_entry *)((uint8_t *)turn - offsetof(struct run_entry, turn));
}
/* From here on a mark lists it again. Returns whether it was marked. */
static inline bool run_entry_begin(struct run_entry *entry)
{
    return atomic_exchange(&entry->ready, RUN_IDLE) == RUN_MARKED;
}

#endif
