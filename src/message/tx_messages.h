/*
 * tx_messages.h - messages to send: added, ended when all their segments have arrived or by an error,
 * retired.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_TX_MESSAGES_H
#define LH_MESSAGE_TX_MESSAGES_H

#include "message/receive_buffer.h"
#include "message/tx_state.h"

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

/* ---- cancel ---------------------------------------------------------------------------------------- */

/*
 * Messages to send that end early: CANCEL to the receiver, REFUSE from it.
 *
 * The receiver may be ahead: a refusal of a message that has no lh_send yet waits for it. So the message
 * takes its place in the sequence on both sides, whoever aborted it, and when.
 */

/* Aborts an open message. error: positive. */
void cancel_message(struct tx *tx, struct tx_message *message, int error, lh_time now);
/* The receiver ended a message. Answered by FORGET. */
void cancel_on_refuse(struct tx *tx, const struct transfer_message *message, lh_time now);
/* Sends CANCEL again where it is due; lowers *next. */
void cancel_on_refresh_expired(struct tx *tx, lh_time now, lh_time *next);

/* ---- memory ---------------------------------------------------------------------------------------- */

/*
 * Memory of the connection's own that a segment needs: for its parity, and for what is copied of a
 * message in several parts.
 */

/* Where the bytes of a segment lie. */
struct tx_place {
    const uint8_t *payload; /* in one place; NULL: in pieces, or no bytes */
    uint32_t lkey;
    struct parity_buffer *copied;  /* NULL: nothing is to be copied */
    struct segment_pieces *pieces; /* in its notes; NULL: nothing was cut */
};

/* Memory for parity; bytes 0: none. False when there is none now: segments in flight will give theirs back,
 * and where no segment has any the message ends. */
bool memory_take(struct tx *tx, struct tx_message *message, size_t bytes, size_t notes_bytes,
                 struct parity_buffer **buffer, lh_time now);
/* Where a segment of the message lies, with memory for what is to be copied; whole: all of it is to be in
 * one place. False: as above. */
bool memory_place(struct tx *tx, struct tx_message *message, const struct segment_range *range, bool whole,
                  struct tx_place *place, lh_time now);
/* Copies what is to be copied of a segment that was given its place. */
void memory_copy(const struct tx_message *message, const struct segment_range *range,
                 struct tx_segment *segment);

#endif
