/*
 * sender.h - the sending machine of the hybrid scheme.
 *
 * While data is to be injected, of this transfer or of those behind it, it is that of sr-nack: what the
 * receiver reports lost is retransmitted first. When nothing else is left, it covers what has not been
 * acknowledged by parity, as much as the loss demands (groups.h, encoding.h), and goes on doing so as
 * reports come in. From then on a lost chunk of this transfer is retransmitted only where parity does not
 * suffice.
 *
 * Timers: cover, repeat (sr/marker.h), probe (sr/probe.h), ready (sr/backoff.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_HYBRID_SENDER_H
#define LH_SCHEMES_HYBRID_SENDER_H

#include <longhaul/scheme.h>

size_t hybrid_sender_bytes(uint32_t chunks_max);
void hybrid_sender_start(void *state, const struct lh_transfer *transfer, lh_time now);
void hybrid_sender_on_message(void *state, const uint8_t *data, size_t bytes,
                              const struct lh_sender_view *view);
void hybrid_sender_step(void *state, const struct lh_sender_view *view, struct lh_actions *actions);

#endif
