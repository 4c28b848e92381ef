/*
 * verdict.h - messages that end early: CANCEL by the sender, REFUSE by the receiver, FORGET when it was
 * heard.
 *
 * Either side may be ahead of the other: a verdict on a message that has no lh_send or lh_recv yet waits
 * for it. So the message takes its place in the sequence on both sides, whoever gave it up, and when.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONNECTION_VERDICT_H
#define LH_CONNECTION_VERDICT_H

#include "connection/connection.h"

/* The sender gives an open message up. error: positive. */
void verdict_cancel(struct lh_connection *c, struct send_message *message, enum lh_error error,
                    lh_time now);
/* The receiver ends an open message without its data. False: all of it had arrived and only had to be
 * decoded, so it is whole and over now. */
bool verdict_refuse(struct lh_connection *c, struct recv_message *message, enum lh_error error,
                    lh_time now);
/* Answers whatever is asked about a message that is not open. */
void verdict_answer(struct lh_connection *c, uint32_t message);

void verdict_on_refuse(struct lh_connection *c, const struct transfer_message *message, lh_time now);
void verdict_on_cancel(struct lh_connection *c, const struct transfer_message *message, lh_time now);
void verdict_on_forget(struct lh_connection *c, const struct transfer_message *message);

void verdict_step(struct lh_connection *c, lh_time now, lh_time *next);

#endif
