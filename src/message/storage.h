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

/* All under the connection's lock. */

/* For one message more. -LH_ENOMEM. */
int storage_hold_send(struct lh_connection *connection);
int storage_hold_recv(struct lh_connection *connection);
/* A request is freed at once after this: its memory is not in use any more. */
void storage_on_request_free(struct lh_connection *connection);
/* In each step: gives back what is idle. Returns when it looks again. */
lh_time storage_step(struct lh_connection *connection, lh_time now);

#endif
