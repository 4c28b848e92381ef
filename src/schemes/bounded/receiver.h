/*
 * receiver.h - the receiver's machine of bounded completion (OptiNIC, sections 3.1.1, 3.1.2 and 3.3):
 * when all has arrived that will, it is delivered. Nothing is asked for.
 *
 * The end is seen from the last place of the order of injection, from END, or from a later message
 * (preemption), whichever is first; what was sent before may still be behind that, so the transfer ends
 * when nothing has arrived for a reordering window. (With a code, a later message counts a round trip
 * after it was seen.) The deadline is the connection's (longhaul/scheme.h).
 *
 * One timer:
 *   settle   a reordering window after the end was seen, or after the newest arrival, whichever is later
 * and those of ACKs (schemes/sr/ack_pace.h), which open the sender's window.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_BOUNDED_RECEIVER_H
#define LH_SCHEMES_BOUNDED_RECEIVER_H

#include <longhaul/scheme.h>

size_t bounded_receiver_bytes(uint32_t chunks_max);
void bounded_receiver_start(void *state, const struct lh_transfer *transfer, lh_time now);
void bounded_receiver_on_message(void *state, const uint8_t *data, size_t bytes,
                                 const struct lh_receiver_view *view);
void bounded_receiver_step(void *state, const struct lh_receiver_view *view, struct lh_actions *actions);

#endif
