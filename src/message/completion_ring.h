/*
 * completion_ring.h - the entries of a completion queue, and who waits for them: threads, a descriptor.
 *
 * Bounded: a request reserves the place of its entry when it starts. Nothing makes a system call unless
 * somebody waits.
 *
 * Nobody misses an entry: who is about to sleep says so under the lock that entries are added under, and only
 * when there are none.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_COMPLETION_RING_H
#define LH_MESSAGE_COMPLETION_RING_H

#include <pthread.h>
#include <stdatomic.h>

#include <longhaul/queue.h>

#include "message/spin_wait.h"

struct completion_ring {
    struct spin_wait spin;
    pthread_mutex_t lock; /* of all that follows; no other is taken under it */
    struct lh_completion *entries;
    uint32_t capacity;
    uint32_t first;         /* the oldest */
    _Atomic uint32_t count; /* read without the lock, too */
    uint32_t requests;      /* places of requests: pending ones, and entries */
    uint32_t notifications; /* likewise */
    uint32_t held;          /* places that requests do not take: for so many notifications */
    uint32_t sleeping;      /* threads, on `count` */
    uint32_t added;         /* entries since begin */
    int fd;                 /* -1: nobody asked for it */
    bool armed;             /* the next entry makes it readable */
    bool readable;          /* as far as is known: the user may have read it */
};

/* capacity: checked. spin_ns: of threads that wait, before they sleep. -LH_ENOMEM. */
int completion_ring_open(struct completion_ring *ring, uint32_t capacity, lh_time spin_ns);
/* -LH_ESTATE: places are reserved, or threads sleep; it stays open. */
int completion_ring_close(struct completion_ring *ring);

/* A place for one entry of that operation. -LH_EAGAIN. */
int completion_ring_reserve(struct completion_ring *ring, enum lh_operation operation);

/* A place that is not needed any more. */
void completion_ring_release(struct completion_ring *ring, enum lh_operation operation);

/* Holds one place more for notifications, whatever requests there are, and the ring stays open. -LH_EAGAIN.
 */
int completion_ring_hold(struct completion_ring *ring);
void completion_ring_unhold(struct completion_ring *ring);

/* Adds any number of entries to places that were reserved: begin, put, …, end. Between the calls the thread
 * holds the lock; who polls sees all that happened meanwhile. */
void completion_ring_begin(struct completion_ring *ring);
void completion_ring_put(struct completion_ring *ring, const struct lh_completion *entry);
void completion_ring_end(struct completion_ring *ring);
/* The same, but the caller wakes as many threads that sleep on `count`, when it likes (futex.h). */
uint32_t completion_ring_end_quietly(struct completion_ring *ring);

/* Takes up to n entries, oldest first; returns their number. */
uint32_t completion_ring_take(struct completion_ring *ring, struct lh_completion *entries, uint32_t n);
/* The same, after waiting for the first one. 0: timeout_ns have passed. */
uint32_t completion_ring_wait(struct completion_ring *ring, struct lh_completion *entries, uint32_t n,
                              lh_time timeout_ns);

/* As lh_queue_fd() and lh_queue_arm(). */
int completion_ring_fd(struct completion_ring *ring);
int completion_ring_arm(struct completion_ring *ring);

#endif
