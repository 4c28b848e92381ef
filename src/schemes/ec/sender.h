/*
 * sender.h - the sending machine of the erasure-code schemes.
 *
 * It injects the message and its parity without waiting for anybody (opening.h: round 0), then what it
 * is asked for (repairs.h: each request is a round). MARKs say how far it is: they are numbered, repeated
 * and covered by timers as in selective repeat (sr/marker.h); one with the flag END says that all of a round
 * was injected.
 *
 * Parity is asked to be computed ahead, at most EC_ENCODINGS_AHEAD groups, behind the first chunks.
 *
 * What is under way is what was injected, less what the receiver says has arrived, or less all that was
 * injected before a MARK that has settled at the receiver: what was lost must not fill the window for ever.
 *
 * Timers: cover, repeat (sr/marker.h), probe (sr/probe.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_EC_SENDER_H
#define LH_SCHEMES_EC_SENDER_H

#include <longhaul/scheme.h>

#define EC_ENCODINGS_AHEAD 16u /* given out and not yet carried out; a few for each of several threads */

/* The same for any number of chunks: only what is asked for is remembered. */
size_t ec_sender_bytes(uint32_t chunks_max);
void ec_sender_start(void *state, const struct lh_transfer *transfer, lh_time now);
void ec_sender_on_message(void *state, const uint8_t *data, size_t bytes,
                          const struct lh_sender_view *view);
void ec_sender_step(void *state, const struct lh_sender_view *view, struct lh_actions *actions);

#endif
