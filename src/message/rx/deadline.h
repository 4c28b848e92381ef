/*
 * deadline.h - deadlines of messages (lh_scheme.deadline): one counts at a time, that of the first
 * message that is pending, from its post or from the end of the one before it, whichever is later. So
 * receives may be posted ahead.
 *
 * A message that ends by its deadline is delivered as it is. Where the sender could not know from its
 * segments that it is over, it is told so: REFUSE with error 0, until it answers.
 *
 * Timer:
 *   rx.active_at   the deadline
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_RX_DEADLINE_H
#define LH_MESSAGE_RX_DEADLINE_H

#include "message/rx/rx.h"

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

#endif
