/*
 * rx_messages.h - messages to receive: added, ended when all their segments have arrived or by an error,
 * retired.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_RX_MESSAGES_H
#define LH_MESSAGE_RX_MESSAGES_H

#include "message/rx_state.h"

/* The next message; rx->next - rx->oldest must be below MESSAGES_MAX. An error that came ahead of it is in
 * notice.error. */
struct rx_message *rx_add_message(struct rx *rx, struct message_request *request,
                                  const struct message_buffer *buffer, uint64_t capacity);
/* A message before rx->next that has no receive gets one. */
struct rx_message *rx_bind_message(struct rx *rx, uint32_t number, const struct rx_receive *receive);
/* The next message came without a receive, and is over; likewise. */
void rx_take_message(struct rx *rx);
/* Closes the slots of an open segment, which becomes `state`: no packet changes its buffer any more. */
void rx_close_segment(struct rx *rx, struct rx_segment *segment, enum rx_segment_state state);
/* One more segment of an open message has all its bytes, and is closed: copies them to the user's parts. The
 * message ends with the last one. */
void rx_finish_segment(struct rx *rx, struct rx_segment *segment, lh_time now);
/* Ends an open message with this error (negative): from the return on nothing changes its buffer. Nothing
 * of it may be left to be decoded. */
void rx_end_message(struct rx *rx, struct rx_message *message, int error, enum rx_state state, lh_time now);
/* Moves on past segments and messages that are over. */
void rx_retire(struct rx *rx);

/* ---- partial --------------------------------------------------------------------------------------- */

/*
 * Which packets of a message with a deadline have come, and what is done about the others.
 *
 * The bits are taken with the message's first segment, so that none that ends lacks memory for them. A
 * segment's are set when it is closed: whatever comes later changes neither them nor the buffer. Those of
 * a message that lacks something go to its request.
 */

/* Memory for the bits of a message, if it has a deadline. False: none now. */
bool partial_hold(struct rx *rx, struct rx_message *message);

/* ---- done ------------------------------------------------------------------------------------------ */

/*
 * DONE: announces to the sender what has arrived.
 *
 * DONE names the segment that arrived last, all before the oldest one that has not, and 64 from there on.
 * It is sent at once, again rtt / 64, and twice more rtt / 8 after the last arrival, and whenever the sender
 * asks for a segment that has arrived. So a lost one is covered by a later one.
 */

/* Whether a segment may be announced. */
bool done_is(const struct rx *rx, const struct rx_segment *segment);
/* A segment has arrived; announced at the end of the step. */
void done_note(struct rx *rx, uint32_t sequence);
/* The sender asked for one that has arrived. */
void done_answer(struct rx *rx, uint32_t sequence);
/* Announces what arrived in this step, or refreshes the last announcement; lowers *next. */
void done_step(struct rx *rx, lh_time now, lh_time *next);
/* The last message of a connection that closes. */
struct transfer_message done_last(struct rx *rx);

/* ---- decoding -------------------------------------------------------------------------------------- */

/*
 * Segments that have arrived: whole, or as much of them as the rest can be decoded from.
 *
 * Decoding begins when the slots are closed and the bitmaps are copied: no packet changes the buffer under
 * the decoder's hands. The sender is notified before; what it was told to have arrived is handed over,
 * whatever comes between.
 */

/* An open segment of a known length has arrived. whole: nothing is to be decoded. */
void decoding_segment_done(struct rx *rx, struct rx_segment *segment, bool whole, lh_time now);
/* An open segment ends with what has arrived of it, and what can be recovered. end: why its message does,
 * unless nothing of that is missing. */
void decoding_segment_partial(struct rx *rx, struct rx_segment *segment, enum lh_end end, lh_time now);
/* A job of the coder for one of the segments is done. */
void decoding_on_decoded(struct rx *rx, const struct coder_result *result, lh_time now);
/* All that is to be decoded has been when this returns. Messages may end thereby. */
void decoding_finish(struct rx *rx, lh_time now);

/* ---- deadline -------------------------------------------------------------------------------------- */

/*
 * Deadlines of messages (lh_scheme.deadline): one counts at a time, that of the first
 * message that is pending, from its post or from the end of the one before it, whichever is later. So
 * receives may be posted ahead.
 *
 * A message that ends by its deadline is delivered as it is. Where the sender could not know from its
 * segments that it is over, it is told so: REFUSE with error 0, until it answers.
 *
 * Timer:
 *   rx.active_at   the deadline
 */

/* Ends messages whose deadline has passed; lowers *next. */
void deadline_step(struct rx *rx, lh_time now, lh_time *next);
/* Segments were posted, and messages may have ended thereby: the deadline of the next one counts from now. */
void deadline_on_posted(struct rx *rx, lh_time now, lh_time *next);
/* Whether messages with a deadline are pending: the peer may close when all of them has left. */
bool deadline_waits(const struct rx *rx);
/* Those whose tag the peer has announced, and `ends` chooses, are delivered as they are. */
typedef bool deadline_ends(const void *context, uint64_t tag);
void deadline_end_some(struct rx *rx, deadline_ends *ends, const void *context, lh_time now);
/* The peer has closed the connection: those of which something came are delivered as they are. */
void deadline_on_closed(struct rx *rx, lh_time now);

/* ---- refuse ---------------------------------------------------------------------------------------- */

/*
 * Messages to receive that end early: REFUSE to the sender, CANCEL and FORGET from it.
 *
 * The sender may be ahead: a cancellation of a message that has no lh_recv yet waits for it. So the message
 * takes its place in the sequence on both sides, whoever aborted it, and when.
 */

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
