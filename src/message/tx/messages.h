/*
 * messages.h - messages to send: added, ended when all their segments have arrived or by an error, retired.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_TX_MESSAGES_H
#define LH_MESSAGE_TX_MESSAGES_H

#include "message/tx/tx.h"

/* The next message; tx->next - tx->oldest must be below MESSAGES_MAX. An error that came ahead of it is in
 * notice.error. */
struct tx_message *tx_add_message(struct tx *tx, struct message_request *request,
                                  const struct tx_content *content);
/* Ends an open message, or one that was sent: nothing of its buffer is read any more, its request ends
 * with this error (negative). The message becomes `state`. */
void tx_end_message(struct tx *tx, struct tx_message *message, int error, enum tx_state state, lh_time now);
/* All of an active segment has left; the request is done with the last one. */
void tx_sent_segment(struct tx *tx, struct tx_segment *segment, lh_time now);
/* An active segment has arrived; the message ends with the last one. */
void tx_end_segment(struct tx *tx, struct tx_segment *segment, lh_time now);
/* Moves on past messages that are over. */
void tx_retire(struct tx *tx);

#endif
