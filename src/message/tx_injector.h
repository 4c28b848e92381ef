/*
 * tx_injector.h - what a sender's machine wants done: chunks into the SDR queue pair, messages behind them.
 *
 * Little waits in the SDR layer's queue at any time, so that a machine's send times are true and what is
 * sent again is not stuck behind a long queue.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_TX_INJECTOR_H
#define LH_MESSAGE_TX_INJECTOR_H

#include "message/tx_state.h"

/* Chunks that may be injected now: room in the window and in the queue. */
uint32_t injector_budget_chunks(const struct tx *tx);
/* Whether the window has no room for a chunk: whatever else has. */
bool injector_window_is_full(const struct tx *tx);
/* The path as a sender's machine sees it: what it asks for waits in the injection queue first, and its
 * timers run meanwhile. */
struct lh_path_view injector_path_view(struct tx *tx, lh_time now);
/* Whether the oldest in the queue has left, so that timers move on with its wait no more. */
bool injector_timers_stop(const struct tx *tx);
/* Room for a good part of the queue: filling it by single chunks would cost a step each. A blocked list
 * counts as in flight already: it needs no room in the window. */
bool injector_has_room(const struct tx *tx);
/* Lets the segment's machine act. 0, or the positive lh_error with which the caller aborts its message. */
int injector_run(struct tx *tx, struct tx_segment *segment, lh_time now);
/* Goes on with the list of the segment that blocks, where the queue was full. Returns as injector_run(). */
int injector_continue(struct tx *tx, struct tx_segment *segment, lh_time now);
/* A job of the coder for one of the segments is done. */
void injector_on_encoded(struct tx *tx, const struct coder_result *result);
/* What has left by now: sends messages that were held for it, gives ended sends back. */
void injector_collect(struct tx *tx, lh_time now);
/* Likewise only the latter. */
void injector_collect_ended(struct tx *tx);
/* Whether all that a leaving segment injected has left; it is not leaving any more then. */
bool injector_has_left(struct tx *tx, struct tx_segment *segment);
/* Drops what the segment has in the queue, unless it blocks: nothing is added to it any more. */
void injector_drop_queued(struct tx *tx, struct tx_segment *segment);
/* Nothing of the segment's payload is read any more when this returns. */
void injector_end_segment(struct tx *tx, struct tx_segment *segment);
/* The queue pair is gone, and with it what was still ending. */
void injector_close(struct tx *tx);

/* ---- backlog --------------------------------------------------------------------------------------- */

/*
 * Data that is still to be injected, of all messages: parity comes after it.
 *
 * A segment's machine sees in its view what else waits (longhaul/scheme.h). What can be injected at once
 * makes its parity wait: data of other segments, and of messages whose next segment can be begun. It is
 * stepped again when nothing of that is left.
 */

/* A message was added that clear-to-sends start; a segment of it was begun; one has ended, or the message. */
void backlog_on_message(struct tx *tx, struct tx_message *message);
void backlog_on_segment(struct tx *tx, struct tx_message *message, struct tx_segment *segment);
void backlog_on_segment_over(struct tx *tx, struct tx_segment *segment);
void backlog_on_message_over(struct tx *tx, struct tx_message *message);
/* A clear-to-send has taken a place of the ring, whatever it was for. */
void backlog_on_place(struct tx *tx);
/* Data chunks up to `end` of a segment have been injected at least once. */
void backlog_on_injected(struct tx *tx, struct tx_segment *segment, uint32_t end);
/* What a segment's machine sees of it. */
void backlog_view(struct tx *tx, const struct tx_segment *segment, struct lh_sender_view *view);
/* At the end of a step: parity that waited, and need not any more, has its machine stepped again. */
void backlog_release(struct tx *tx, lh_time now, lh_time *next);

/* ---- to receiver ----------------------------------------------------------------------------------- */

/*
 * TO_RECEIVER: the lengths of a segment and its message, and what its machine sends.
 *
 * A machine's message is held back until the chunks injected before it have left, so that it speaks of
 * chunks that are in flight.
 */

/* Announces the lengths, without bytes of the scheme. Sets segment->lengths_at. */
void to_receiver_lengths(struct tx *tx, struct tx_segment *segment, lh_time now);
/* Sends a message of the segment's machine; the lengths go with it. Lost when HELD_MAX messages wait. */
void to_receiver_scheme(struct tx *tx, struct tx_segment *segment, const uint8_t *data, uint32_t bytes,
                        lh_time now);
/* Sends held messages whose chunks have left by now. */
void to_receiver_send_held(struct tx *tx);

#endif
