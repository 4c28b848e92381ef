/*
 * done.h - DONE: announces to the sender what has arrived.
 *
 * DONE names the segment that arrived last, all before the oldest one that has not, and 64 from there on.
 * It is sent at once, again rtt / 64, and twice more rtt / 8 after the last arrival, and whenever the sender
 * asks for a segment that has arrived. So a lost one is covered by a later one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_RX_DONE_H
#define LH_MESSAGE_RX_DONE_H

#include "message/rx/rx.h"

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

#endif
