/*
 * storage.h - when a connection takes memory, and gives it back: for each message with lh_send and lh_recv,
 * and after a second without any.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_STORAGE_H
#define LH_MESSAGE_STORAGE_H

#include <longhaul/types.h>

struct lh_connection;

/* Whether messages wait for memory that does not come. Timer: look_at. */
struct storage_stall {
    lh_time look_at;   /* LH_TIME_NEVER: none was refused since the last look */
    uint64_t refusals; /* as of the last look, as the next */
    uint64_t yields;   /* of other connections */
    uint64_t moved;    /* of what this connection has to send and to receive */
};

/* All under the connection's lock. */

/* For that many messages more. -LH_ENOMEM. */
int storage_hold_send(struct lh_connection *connection, uint32_t count);
int storage_hold_recv(struct lh_connection *connection, uint32_t count);
/* A request is freed at once after this: its memory is not in use any more. */
void storage_on_request_free(struct lh_connection *connection);
/* In each step: gives back what is idle, and ends the connection with -LH_ENOMEM when nothing moved for its
 * peer's timeout for lack of memory: where all wait for what others hold, one has to give way. Returns when
 * it looks again. */
lh_time storage_step(struct lh_connection *connection, lh_time now);
/* The same of a connection that has ended, and is not closed yet. */
lh_time storage_step_ended(struct lh_connection *connection, lh_time now);

#endif
