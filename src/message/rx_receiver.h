/*
 * rx_receiver.h - the receiving part as its engine calls it (rx_state.h lists the files behind it).
 *
 * Each call may leave effects; the engine carries them out before the next one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_RX_RECEIVER_H
#define LH_MESSAGE_RX_RECEIVER_H

#include "message/rx_state.h"

/* attr, path, coder, parity and store outlive rx. The queue pair is set before the first event. */
void receiver_init(struct rx *rx, const struct lh_attr *attr, const struct scheme_choice *choice,
                   const struct lh_sdr_path *path, struct coder *coder, struct parity_pool *parity,
                   struct store *store);
/* Nothing of the queue pair is used any more. */
void receiver_close(struct rx *rx);

/* Memory for that many messages more, before receiver_recv(). -LH_ENOMEM. */
int receiver_hold(struct rx *rx, uint32_t count);
/* What is not in use is given back. */
void receiver_give_back(struct rx *rx);

/* ---- the user ---------------------------------------------------------------------------------------- */

/* 0; -LH_EINVAL (too long), -LH_EAGAIN (MESSAGES_MAX are not over). */
int receiver_check(const struct rx *rx, uint64_t capacity);
/* A message that was checked, and held memory for. The buffer stays until its request is finished. */
void receiver_recv(struct rx *rx, struct message_request *request, const struct message_buffer *buffer,
                   uint64_t capacity, lh_time now);
/* The request of this message, which is pending, is canceled; unless it is whole once what has arrived is
 * decoded. */
void receiver_cancel(struct rx *rx, uint32_t number, lh_time now);
/* All requests that are pending end with this error (negative), but for those that are whole once decoded. */
void receiver_end_all(struct rx *rx, int error, lh_time now);
/* After that, when the connection has ended: the peer is told nothing any more. */
void receiver_quiesce(struct rx *rx);

/* ---- time -------------------------------------------------------------------------------------------- */

/* In this order in each step of the engine, after arrivals_poll(). They lower *next to when more is due.
 *
 * What arrived and is due of the messages that are posted. */
void receiver_step(struct rx *rx, lh_time now, lh_time *next);
/* Posts messages for which there are slots now, and starts their machines. */
void receiver_post(struct rx *rx, lh_time now, lh_time *next);
/* DONE and refreshes of REFUSE, at the end of a step; lowers *next. */
void receiver_announce(struct rx *rx, lh_time now, lh_time *next);

/* ---- posting --------------------------------------------------------------------------------------- */

/* Buffers to fill: cut into segments, which are posted in order as places are free. */

/* Posts what there are places for. */
void posting_step(struct rx *rx, lh_time now);

/* ---- arrivals -------------------------------------------------------------------------------------- */

/* Segments that fill up: their bitmaps are polled, and their scheme's machine decides. */

/* Polls for chunks that have arrived; whether there are any. */
bool arrivals_poll(struct rx *rx, lh_time now);
/* Bytes of the sender's machine. */
void arrivals_on_scheme(struct rx *rx, struct rx_segment *segment, const uint8_t *data, uint32_t bytes,
                        lh_time now);
/* Lets the machines act to which something happened, or whose timer has expired, of the segments from `from`
 * on; lowers *next. Returns the newest timer that expired, 0: none did. */
lh_time arrivals_step(struct rx *rx, uint32_t from, lh_time now, lh_time *next);

/* ---- lengths --------------------------------------------------------------------------------------- */

/*
 * TO_RECEIVER: the lengths of a segment and its message, and what its machine sends.
 *
 * A message may be shorter than its buffer. When its length is announced, segments past the end are given
 * back, and are not posted any more.
 */

/* Answered by DONE or REFUSE when the segment is over. */
void lengths_on_to_receiver(struct rx *rx, const struct transfer_message *message, lh_time now);

#endif
