/*
 * sender.h - messages to send: cut into segments as clear-to-sends come (clearing.h), ended when all have
 * arrived.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONNECTION_SENDER_H
#define LH_CONNECTION_SENDER_H

#include "connection/connection.h"

int sender_init(struct lh_connection *c); /* -LH_ENOMEM */
void sender_free(struct lh_connection *c);

/* Everything that is due; lowers *next to when more is. */
void sender_step(struct lh_connection *c, lh_time now, lh_time *next);
/* Whether something that is waited for has come, other than a message: room, or a clear-to-send. */
bool sender_has_work(struct lh_connection *c);

void sender_on_to_sender(struct lh_connection *c, const struct transfer_message *message, lh_time now);
void sender_on_done(struct lh_connection *c, const struct transfer_message *message, lh_time now);

/* Gives an open message up: nothing of its buffer is read any more, its request ends with this error
 * (negative). The message becomes `state`. */
void sender_end_message(struct lh_connection *c, struct send_message *message, int error,
                        enum send_state state, lh_time now);
void sender_end_all(struct lh_connection *c, int error, lh_time now);
/* Moves on past messages that are over. */
void sender_retire(struct lh_connection *c);

#endif
