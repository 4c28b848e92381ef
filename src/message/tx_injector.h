/*
 * injector.h - what a sender's machine wants done: chunks into the SDR queue pair, messages behind them.
 *
 * Little waits in the SDR layer's queue at any time, so that a machine's send times are true and what is
 * sent again is not stuck behind a long queue.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_TX_INJECTOR_H
#define LH_MESSAGE_TX_INJECTOR_H

#include "message/tx/tx.h"

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

#endif
