/*
 * requests.h - the requests of a connection: a table that outlives it, and waiting for them.
 *
 * The table holds the one lock of its connection. It is freed when the connection has been closed and the
 * user has freed the last request.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_REQUESTS_H
#define LH_MESSAGE_REQUESTS_H

#include <pthread.h>
#include <stdatomic.h>

#include <longhaul/connection.h>

#include "control/message_control.h"
#include "message/completion_queue.h"
#include "message/message_memory.h"

enum request_state {
    REQUEST_FREE,
    REQUEST_PENDING,
    REQUEST_DONE, /* the result is set; written last */
};

struct onesided_operation;

#define REQUEST_WAKES_MAX 32u /* held back at once: others are woken under the lock */

/* What becomes of a request when it is done. */
struct request_target {
    struct lh_completion_queue *queue; /* that gets an entry; or NULL */
    uint64_t user;                     /* of the entry */
    bool detached;                     /* it frees itself */
    enum lh_operation operation;
};

struct lh_request {
    struct message_request part; /* first */
    struct request_target target;
    _Atomic uint32_t state;   /* enum request_state; waiters sleep on it */
    _Atomic uint32_t waiters; /* threads that sleep, or are about to */
    struct request_table *table;
    struct message_memory memory; /* while pending */
    uint32_t message;             /* its number */
    bool sending;
    struct onesided_operation *waiting; /* one-sided: it is not a message yet; or NULL */
};

#define REQUESTS_A_BLOCK 32u

/* Requests, at places that do not change: users hold pointers to them. */
struct request_block {
    struct request_block *next;
    struct lh_request requests[REQUESTS_A_BLOCK];
};

/* Who waits for requests that a step finishes, or for their entries: on its stack. Woken under the lock, they
 * would sleep again at once, for the lock. */
struct request_wakes {
    uint32_t count;
    struct request_wake {
        _Atomic uint32_t *word; /* they sleep on it */
        int threads;
    } wakes[REQUEST_WAKES_MAX];
};

struct request_table {
    pthread_mutex_t lock;
    struct request_wakes *wakes; /* of the step that has the lock; NULL: whoever has it wakes at once */
    struct spin_wait spin;       /* of lh_wait() */
    struct lh_connection *connection; /* NULL once it is closed */
    struct lh_connection *owner;      /* the user's, for entries of queues; stays when it is closed */
    bool workers;                     /* somebody else makes progress: waiting makes sense */
    uint32_t pending;
    uint32_t in_use;     /* pending and done */
    struct store *store; /* NULL once the connection is closed: what is left is the table's own */
    struct request_block *blocks;
    struct message_request *free; /* parts of those of all blocks */
    uint32_t count;               /* in all blocks */
};

struct request_table *request_table_create(struct lh_connection *connection, const struct lh_engine *engine,
                                           struct store *store); /* NULL: no memory */
/* The connection is gone. Frees the table when nothing else uses it. */
void request_table_close(struct request_table *table);

/* Before the lock is taken: -LH_EINVAL, -LH_ESTATE. */
int request_target_check(const struct request_target *target, const struct lh_engine *engine);

/* The request is done; takes the lock. Frees the table when nothing else uses it. */
void request_give(struct lh_request *request);

/* The lock, for a step: those whose requests it finishes are woken when it gives the lock back. `wakes` need
 * not be initialized. */
void requests_lock(struct request_table *table, struct request_wakes *wakes);
void requests_unlock(struct request_table *table);

/* All below under the table's lock. */

/* Owns the memory of the message from here on. -LH_EAGAIN: LH_REQUESTS_MAX are in use, or the target's queue
 * has no place left. -LH_ENOMEM. */
int request_take(struct request_table *table, const struct request_target *target, bool sending,
                 uint32_t message, const struct message_memory *memory, lh_time now,
                 struct lh_request **request);
/* Gives the memory of those back that are not in use. */
void requests_give_back(struct request_table *table);
/* The results of the requests are set: gives the memory of their messages back, adds their entries to their
 * queues, and wakes who waits. */
void requests_finish(struct message_request *parts);

#endif
