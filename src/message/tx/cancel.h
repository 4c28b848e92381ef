/*
 * cancel.h - messages to send that end early: CANCEL to the receiver, REFUSE from it.
 *
 * The receiver may be ahead: a refusal of a message that has no lh_send yet waits for it. So the message
 * takes its place in the sequence on both sides, whoever aborted it, and when.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_TX_CANCEL_H
#define LH_MESSAGE_TX_CANCEL_H

#include "message/tx/tx.h"

/* Aborts an open message. error: positive. */
void cancel_message(struct tx *tx, struct tx_message *message, int error, lh_time now);
/* The receiver ended a message. Answered by FORGET. */
void cancel_on_refuse(struct tx *tx, const struct transfer_message *message, lh_time now);
/* Sends CANCEL again where it is due; lowers *next. */
void cancel_on_refresh_expired(struct tx *tx, lh_time now, lh_time *next);

#endif
