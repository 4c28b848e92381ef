/*
 * tx_sender.h - the sending part as its engine calls it (tx_state.h lists the files behind it).
 *
 * Each call may leave effects; the engine carries them out before the next one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_TX_SENDER_H
#define LH_MESSAGE_TX_SENDER_H

#include "message/tx_state.h"

/* tx is zeroed; attr, path, coder, parity and store outlive it. The queue pair is set before the first
 * event. */
void sender_init(struct tx *tx, const struct lh_attr *attr, const struct lh_sdr_path *path,
                 struct coder *coder, struct parity_pool *parity, struct store *store);
/* Nothing of the queue pair is used any more. */
void sender_close(struct tx *tx);

/* Memory for that many messages more, before sender_send(). -LH_ENOMEM. */
int sender_hold(struct tx *tx, uint32_t count);
/* What is not in use is given back. */
void sender_give_back(struct tx *tx);

/* ---- the user ---------------------------------------------------------------------------------------- */

/* 0; -LH_EINVAL (too long), -LH_EAGAIN (MESSAGES_MAX are not over). */
int sender_check(const struct tx *tx, uint64_t bytes);
/* A message that was checked, and held memory for. */
void sender_send(struct tx *tx, struct message_request *request, const struct tx_content *content,
                 lh_time now);
/* The request of this message, which is pending, is canceled. */
void sender_cancel(struct tx *tx, uint32_t number, lh_time now);
/* Nothing more of this message, which is pending, is to leave: what has begun ends with what was injected, by
 * a scheme with a deadline, and else as it is; what has not is canceled. */
void sender_withdraw(struct tx *tx, uint32_t number, lh_time now);
/* All requests that are pending end with this error (negative). */
void sender_end_all(struct tx *tx, int error, lh_time now);
/* After that, when the connection has ended: the peer is told nothing any more. Again until nothing is held
 * for the fabric, which may still read. */
void sender_quiesce(struct tx *tx);

/* ---- the peer, and time ------------------------------------------------------------------------------ */

/* What the receiver's machine sends. */
void sender_on_to_sender(struct tx *tx, const struct transfer_message *message, lh_time now);
/* Segments that have arrived. */
void sender_on_done(struct tx *tx, const struct transfer_message *message, lh_time now);
/* Whether something that is waited for has come, other than a message: capacity, or a clear-to-send. */
bool sender_has_work(const struct tx *tx);
/* Everything that is due; lowers *next to when more is. REFUSE and refreshes of CANCEL: cancel.h. */
void sender_step(struct tx *tx, lh_time now, lh_time *next);

/* ---- cts ------------------------------------------------------------------------------------------- */

/*
 * Clear-to-sends of the receiver: each starts a segment, or opens the way for the parity
 * of one, or is passed by.
 *
 * They are taken in order. One of an earlier message is passed by: its receiver posted more segments than
 * the message needed. One of a later message waits: the receiver has ended the current one, and says so.
 */

/* Clear-to-sends of parity belong to the segment right before them, unless that is over. Whether there were
 * any. */
bool cts_use_parity(struct tx *tx);
/* Starts segments as they are cleared to be sent and there is room. Lowers *next. */
void cts_start_segments(struct tx *tx, lh_time now, lh_time *next);

#endif
