/*
 * hybrid_scheme.h - the hybrid of retransmission and parity: its entry in the table of schemes, its machines.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_HYBRID_SCHEME_H
#define LH_SCHEMES_HYBRID_SCHEME_H

#include <longhaul/scheme.h>

#include "model/predictor.h"

extern const struct lh_scheme hybrid_scheme; /* "hybrid" */
extern const struct scheme_entry hybrid_entry;

/* ---- model params ---------------------------------------------------------------------------------- */

/*
 * The parameters of the hybrid scheme as the model and the planner use them
 * (predictor.h and hybrid_scheme.h of src/model describe each call).
 */

int hybrid_model_check(const struct lh_model_scheme *scheme);
void hybrid_model_defaults(struct lh_model_scheme *scheme);
/* The one with the defaults. */
uint32_t hybrid_candidates(bool unspread, struct lh_model_scheme *out);
double hybrid_encode_rate(const struct lh_plan_question *question, const struct lh_model_scheme *scheme);

/* ---- sender ---------------------------------------------------------------------------------------- */

/*
 * The machines of the hybrid scheme.
 *
 * While data is to be injected, of this transfer or of those behind it, it is that of sr-nack: what the
 * receiver reports lost is retransmitted first. When nothing else is left, it covers what has not been
 * acknowledged by parity, as much as the loss demands (hybrid_groups.h, hybrid_groups.h), and goes on
 * doing so as reports come in. From then on a lost chunk of this transfer is retransmitted only where
 * parity does not suffice.
 *
 * Timers: cover, repeat (sr_ledger.h), probe (sr_timers.h), ready (sr_timers.h).
 */

size_t hybrid_sender_bytes(uint32_t chunks_max);
void hybrid_sender_start(void *state, const struct lh_transfer *transfer, lh_time now);
void hybrid_sender_on_message(void *state, const uint8_t *data, size_t bytes,
                              const struct lh_sender_view *view);
void hybrid_sender_step(void *state, const struct lh_sender_view *view, struct lh_actions *actions);

/* ---- receiver -------------------------------------------------------------------------------------- */

/*
 * The receiving machine of the hybrid scheme.
 *
 * It acknowledges and reports data as that of sr-nack (sr_arrivals.h, sr_arrivals.h). Once it has
 * received that all data was injected, each report also has the parity of the submessages that cannot be
 * decoded yet (ROWS, wire/scheme_messages.h). It is complete as soon as all of them can.
 *
 * Timers: periodic and pause (sr_timers.h), settle and repeat (sr_arrivals.h).
 */

size_t hybrid_receiver_bytes(uint32_t chunks_max);
void hybrid_receiver_start(void *state, const struct lh_transfer *transfer, lh_time now);
void hybrid_receiver_on_message(void *state, const uint8_t *data, size_t bytes,
                                const struct lh_receiver_view *view);
void hybrid_receiver_step(void *state, const struct lh_receiver_view *view, struct lh_actions *actions);

#endif
