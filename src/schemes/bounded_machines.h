/*
 * sender.h - the sender's machine of bounded completion: each chunk once, then its parity, then END.
 * Nothing is sent again.
 *
 * One that is withdrawn ends with what was injected: END says so.
 *
 * What is in flight is what was injected but for what an ACK says has passed, and for what was injected an
 * overdue round trip ago: ACKs are few, they may be lost, and so may be all that they would speak of.
 *
 * Timers:
 *   end       END is repeated, a reordering window after the first and then at doubling intervals, until the
 *             receiver has finished: so that its loss does not cost the deadline
 *   passed    an overdue round trip after the last look: what was injected before that is not in flight
 *   give_up   a deadline and an overdue round trip after the start: the receiver takes no more. Not with
 *             deadline=auto, which the sender does not know
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_BOUNDED_SENDER_H
#define LH_SCHEMES_BOUNDED_SENDER_H

#include <longhaul/scheme.h>

size_t bounded_sender_bytes(uint32_t chunks_max);
void bounded_sender_start(void *state, const struct lh_transfer *transfer, lh_time now);
void bounded_sender_on_message(void *state, const uint8_t *data, size_t bytes,
                               const struct lh_sender_view *view);
void bounded_sender_step(void *state, const struct lh_sender_view *view, struct lh_actions *actions);

#endif
