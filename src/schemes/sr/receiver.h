/*
 * receiver.h - the receiving machine of selective repeat, for sr-rto and sr-nack.
 *
 * It acknowledges what has arrived: at its own pace (ack_pace.h), when a probe asks, and in sr-nack as
 * soon as chunks are known to be lost (nack.h). An acknowledgement is one message, or several when the
 * chunks between the first missing one and the highest do not fit one.
 *
 * Timers: periodic and pause (ack_pace.h), settle and repeat (nack.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_SR_RECEIVER_H
#define LH_SCHEMES_SR_RECEIVER_H

#include <longhaul/scheme.h>

size_t sr_receiver_bytes(uint32_t chunks_max);
void sr_rto_receiver_start(void *state, const struct lh_transfer *transfer, lh_time now);
void sr_nack_receiver_start(void *state, const struct lh_transfer *transfer, lh_time now);
void sr_receiver_on_message(void *state, const uint8_t *data, size_t bytes,
                            const struct lh_receiver_view *view);
void sr_receiver_step(void *state, const struct lh_receiver_view *view, struct lh_actions *actions);

#endif
