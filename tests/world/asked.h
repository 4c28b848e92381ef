/*
 * asked.h - what a user asked a connection for, and how it ended: once, in time, and as it stays; with one
 * entry in a queue, where it completes into one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_ASKED_H
#define LH_TESTS_WORLD_ASKED_H

#include <longhaul/queue.h>

#include "world/engines.h"

/* The entry that a request has in a queue: exactly one. */
struct entry_due {
    uint8_t queue; /* its number, from 1; 0: none */
    bool came;
    struct lh_connection *connection;
    struct lh_request *request;
};

struct asked {
    struct lh_request *request; /* NULL: not asked, or freed */
    struct lh_result result;
    struct entry_due due; /* of a queue */
    uint32_t event;       /* of the plan */
    bool begun;
    bool done;
    bool canceled; /* by the user, while it was pending */
    bool freed;    /* before it was done: nobody learns how it ended */
    bool cut_off;  /* it failed when its connection had been closed, or had ended */
};

/* A call was refused. True when there is a reason for it, and it may be tried again. */
bool asked_may_be_refused(struct world *world, const struct end *end, int error, const char *call);
/* When to try again what was refused: a full queue is polled before long, other reasons pass soon. */
lh_time asked_retry_ns(const struct world *world, int error);
/* The call was made with that queue, or NULL, and came to that. */
void asked_on_call(struct world *world, const struct end *end, struct asked *asked, struct queue *queue,
                   int error);
/* Whether this is the entry that it waits for. */
bool asked_is_due(const struct asked *asked, uint32_t queue, const struct lh_completion *entry);
/* Whether it ended just now, on that host; what has ended before has not changed. what: "sent", say. */
bool asked_has_ended(struct world *world, struct asked *asked, const char *what, uint32_t host);
/* Cancels it, or frees it while it is pending. Whether there was anything to be canceled. */
bool asked_cancel(struct world *world, struct end *end, struct asked *asked, bool by_freeing);
/* Its connection is closed: it has ended, and is freed. */
void asked_on_closed(struct world *world, struct asked *asked);

#endif
