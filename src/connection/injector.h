/*
 * injector.h - what a sender's machine wants done: chunks into the SDR queue pair, messages behind them.
 *
 * Little waits in the SDR layer's queue at any time, so that a machine's send times are true and what is
 * sent again is not stuck behind a long queue.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONNECTION_INJECTOR_H
#define LH_CONNECTION_INJECTOR_H

#include "connection/connection.h"

/* Chunks that may be injected now: room in the window and in the queue. */
uint32_t injector_budget_chunks(const struct lh_connection *c);
/* The path as a sender's machine sees it: what it asks for waits in the injection queue first, and its
 * timers run meanwhile. */
struct lh_path_view injector_path_view(struct lh_connection *c, lh_time now);
/* Room for a good part of the queue: filling it by single chunks would cost a step each. */
bool injector_has_room(const struct lh_connection *c);
/* Lets the segment's machine act. The segment may have ended afterwards. */
void injector_run(struct lh_connection *c, struct send_segment *segment, lh_time now);
/* Goes on where the queue was full; sends what was held back; gives ended sends back. */
void injector_resume(struct lh_connection *c, lh_time now);
/* Nothing of the segment's payload is read any more when this returns. */
void injector_end_segment(struct lh_connection *c, struct send_segment *segment);
/* The queue pair is gone, and with it what was still ending. */
void injector_close(struct lh_connection *c);

#endif
