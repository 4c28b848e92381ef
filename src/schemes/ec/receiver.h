/*
 * receiver.h - the receiving machine of the erasure-code schemes.
 *
 * It counts what arrives and says COMPLETE as soon as all data is there or can be decoded (needs.h). What
 * cannot be decoded long enough after all was sent is asked for, round by round (asking.h). ACKs only
 * open the sender's window: they go out at the pace of sr-nack (sr/ack_pace.h), when a probe asks, and when
 * a MARK that has settled shows a loss.
 *
 * Timers: periodic and pause (sr/ack_pace.h), fallback and repeat (asking.h), and
 *   settle   of the oldest MARK, one reordering window after it was heard: what was injected before it and is
 *            not here is lost (sr/settle.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_EC_RECEIVER_H
#define LH_SCHEMES_EC_RECEIVER_H

#include <longhaul/scheme.h>

size_t ec_receiver_bytes(uint32_t chunks_max);
void ec_receiver_start(void *state, const struct lh_transfer *transfer, lh_time now);
void ec_receiver_on_message(void *state, const uint8_t *data, size_t bytes,
                            const struct lh_receiver_view *view);
void ec_receiver_step(void *state, const struct lh_receiver_view *view, struct lh_actions *actions);

#endif
