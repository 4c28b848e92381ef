/*
 * sender.h - the sending machine of selective repeat, for sr-rto and sr-nack.
 *
 * It injects what is lost, lowest first, then what was never sent. The two schemes differ in how they learn
 * of a loss: sr-rto by its own timeouts (rto.h), sr-nack from the receiver's reports (marker.h).
 *
 * Timers: RTO (sr-rto; rto.h), cover and repeat (sr-nack; marker.h), probe (both; probe.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_SR_SENDER_H
#define LH_SCHEMES_SR_SENDER_H

#include <longhaul/scheme.h>

/* Chunks of a transfer at most; a slot has at most 2^22 packets. */
#define SR_CHUNKS_MAX ((uint32_t)1 << 26)

size_t sr_sender_bytes(uint32_t chunks_max);
void sr_rto_sender_start(void *state, const struct lh_transfer *transfer, lh_time now);
void sr_nack_sender_start(void *state, const struct lh_transfer *transfer, lh_time now);
void sr_sender_on_message(void *state, const uint8_t *data, size_t bytes,
                          const struct lh_sender_view *view);
void sr_sender_step(void *state, const struct lh_sender_view *view, struct lh_actions *actions);

#endif
