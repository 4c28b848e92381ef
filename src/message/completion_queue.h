/*
 * completion_queue.h - a completion queue: a ring of entries that belongs to an engine.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_COMPLETION_QUEUE_H
#define LH_MESSAGE_COMPLETION_QUEUE_H

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <longhaul/connection.h>
#include <longhaul/queue.h>
#include <longhaul/types.h>

#include "message/rx_messages.h"
#include "sdr/worker_sleep.h"

/* ---- spin wait ------------------------------------------------------------------------------------- */

/*
 * A thread that waits for a word to change spins for a while before it sleeps, where its
 * engine was told to and where that pays: the rule of workers (sdr/worker_sleep.h), learned from the last
 * waits.
 */

/* What the threads that wait for the same object learned. */
struct spin_wait {
    lh_time spin_ns; /* 0: none of them spins */
    _Atomic unsigned short_pauses;
};

void spin_wait_init(struct spin_wait *wait, lh_time spin_ns);
/* A wait begins: spins while *word is `value`, at most timeout_ns, and returns. */
void spin_wait_begin(struct spin_wait *wait, struct spin *spin, const _Atomic uint32_t *word,
                     uint32_t value, lh_time timeout_ns);
/* The wait is over, whatever came of it. */
void spin_wait_end(struct spin_wait *wait, struct spin *spin);
/* When a wait that begins now has lasted that long, on CLOCK_MONOTONIC: until when to sleep. */
struct timespec spin_wait_deadline(lh_time timeout_ns);

/* ---- completion ring ------------------------------------------------------------------------------- */

/*
 * The entries of a completion queue, and who waits for them: threads, a descriptor.
 *
 * Bounded: a request reserves the place of its entry when it starts. Nothing makes a system call unless
 * somebody waits.
 *
 * Nobody misses an entry: who is about to sleep says so under the lock that entries are added under, and only
 * when there are none.
 */

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
/* From now on it has that capacity, if not more: checked. What it holds stays. -LH_ENOMEM. */
int completion_ring_enlarge(struct completion_ring *ring, uint32_t capacity);
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
/* The same, but the caller wakes as many threads that sleep on `count`, when it likes. */
uint32_t completion_ring_end_quietly(struct completion_ring *ring);

/* Takes up to n entries, oldest first; returns their number. */
uint32_t completion_ring_take(struct completion_ring *ring, struct lh_completion *entries, uint32_t n);
/* The same, after waiting for the first one. 0: timeout_ns have passed. */
uint32_t completion_ring_wait(struct completion_ring *ring, struct lh_completion *entries, uint32_t n,
                              lh_time timeout_ns);

/* As lh_queue_fd() and lh_queue_arm(). */
int completion_ring_fd(struct completion_ring *ring);
int completion_ring_arm(struct completion_ring *ring);

/* ---- completion queue ------------------------------------------------------------------------------ */

struct lh_completion_queue {
    struct lh_engine *engine;
    struct completion_ring ring;
};

/* Whether requests of the engine's connections may complete into it; NULL: none was given. -LH_EINVAL. */
int completion_queue_check(const struct lh_completion_queue *queue, const struct lh_engine *engine);

/* ---- futex ----------------------------------------------------------------------------------------- */

/* Threads of this process that sleep until a word changes. */

/* Sleeps while *word is `value`, until it is woken, for whatever reason. deadline: on CLOCK_MONOTONIC; NULL:
 * none. False: it has passed. */
static inline bool futex_sleep(_Atomic uint32_t *word, uint32_t value, const struct timespec *deadline)
{
    return syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, deadline, NULL,
                   FUTEX_BITSET_MATCH_ANY) == 0 ||
           errno != ETIMEDOUT;
}

/* The memory of the word may be gone, which the kernel does not mind: nobody sleeps there then. */
static inline void futex_wake(_Atomic uint32_t *word, int threads)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}

/* ---- early end ------------------------------------------------------------------------------------- */

/*
 * Messages with a deadline that somebody else keeps, as a group does for its operations: what
 * is sent is withdrawn, what is received ends with what has come.
 */

/* Nothing more of a send is to leave. Its request ends when nothing reads the buffer any more; one that has
 * not begun is canceled. */
void early_end_send(struct lh_request *request);
/* Receives of a connection end with what has come of their messages, whose tags `ends` chooses: their entries
 * are in the queue on return. Not those of which nothing was announced yet. */
void early_end_receives(struct lh_connection *connection, deadline_ends *ends, const void *context);
/* Whether the peer has received all that was sent, as far as it came: a send with a deadline ends when all
 * of it has left. */
bool sends_are_over(struct lh_connection *connection);
/* Decodes what waits for a coder: the peer knows that it has arrived, and may close. Entries are in the queue
 * on return. */
void early_finish_decoding(struct lh_connection *connection);

#endif
