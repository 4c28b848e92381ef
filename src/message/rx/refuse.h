/*
 * refuse.h - messages to receive that end early: REFUSE to the sender, CANCEL and FORGET from it.
 *
 * The sender may be ahead: a cancellation of a message that has no lh_recv yet waits for it. So the message
 * takes its place in the sequence on both sides, whoever aborted it, and when.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_RX_REFUSE_H
#define LH_MESSAGE_RX_REFUSE_H

#include "message/rx/rx.h"

/* Ends a message without its data, unless it is whole once what has arrived is decoded. error: positive. */
void refuse_message(struct rx *rx, struct rx_message *message, int error, lh_time now);
/* Answers whatever is asked about a message that is not open. */
void refuse_answer(struct rx *rx, uint32_t number);
/* The sender aborted a message. Answered by REFUSE. */
void refuse_on_cancel(struct rx *rx, const struct transfer_message *message, lh_time now);
/* The sender received the REFUSE. */
void refuse_on_forget(struct rx *rx, const struct transfer_message *message);
/* Sends REFUSE again where it is due; lowers *next. */
void refuse_on_refresh_expired(struct rx *rx, lh_time now, lh_time *next);

#endif
