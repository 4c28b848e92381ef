/*
 * receiver.h - the receiving machine of the hybrid scheme.
 *
 * It acknowledges and reports data as that of sr-nack (sr/answer.h, sr/nack.h). Once it has received that
 * all data was injected, each report also has the parity of the submessages that cannot be decoded yet
 * (ROWS, wire/hybrid.h). It is complete as soon as all of them can.
 *
 * Timers: periodic and pause (sr/ack_pace.h), settle and repeat (sr/nack.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_HYBRID_RECEIVER_H
#define LH_SCHEMES_HYBRID_RECEIVER_H

#include <longhaul/scheme.h>

size_t hybrid_receiver_bytes(uint32_t chunks_max);
void hybrid_receiver_start(void *state, const struct lh_transfer *transfer, lh_time now);
void hybrid_receiver_on_message(void *state, const uint8_t *data, size_t bytes,
                                const struct lh_receiver_view *view);
void hybrid_receiver_step(void *state, const struct lh_receiver_view *view, struct lh_actions *actions);

#endif
