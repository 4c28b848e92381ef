/*
 * sr_scheme.h - selective repeat: its entries in the table of schemes, its predictor, its machines.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_SR_SCHEME_H
#define LH_SCHEMES_SR_SCHEME_H

#include <longhaul/scheme.h>

#include "model/predictor.h"

extern const struct lh_scheme sr_nack_scheme;
extern const struct lh_scheme sr_rto_scheme;
extern const struct scheme_entry sr_nack_entry;
extern const struct scheme_entry sr_rto_entry;

/* ---- predictor ------------------------------------------------------------------------------------- */

/*
 * How long a message takes by selective repeat (model/repeat_model.h), after a timeout or after a
 * report.
 */

extern const struct model_predictor sr_nack_predictor;
extern const struct model_predictor sr_rto_predictor;

/* sr-rto's alpha: the timeout is 1 + alpha round trips (predictor.h). */
bool sr_rto_take(const struct model_parameter *parameter, struct lh_model_scheme *scheme, int *failed);
void sr_rto_format(const struct lh_model_scheme *scheme, struct model_text *text);

/* ---- bounded missing ------------------------------------------------------------------------------- */

/*
 * Selective repeat that ends at a deadline: how many chunks are missing then.
 *
 * As in repeat_model.h the unit of time is T_inj, and s the time since the last chunk was first injected. The
 * k-th repeat of a chunk comes k O after its start, O = RTO + T_inj. C_k(s) chunks have theirs still to
 * come, so C_k - C_{k-1} were sent k times and are missing with the chance p^k each (C_0 = 0):
 *     mean = sum over k of (C_k - C_{k-1}) p^k.
 * That is exact, with bursts too where repeats do not meet the burst of what they repeat.
 *
 * Their number is a sum of independent draws with unequal chances. What is said of its tail is that of
 * Binomial(M, mean / M): the same where all were sent once, and never less far beyond the mean (W.
 * Hoeffding, On the distribution of the number of successes in independent trials, 1956). With bursts it
 * would be wrong.
 */

/* Mean number of chunks that are missing at s, of so many that are lost with `loss` each time. */
double sr_bounded_missing(double loss, double overhead, double chunks, double s);

/* ---- sender ---------------------------------------------------------------------------------------- */

/*
 * The machines of sr-rto and sr-nack.
 *
 * It injects what is lost, lowest first, then what was never sent. The two schemes differ in how they learn
 * of a loss: sr-rto by its own timeouts (sr_ledger.h), sr-nack from the receiver's reports (sr_ledger.h).
 *
 * Timers: RTO (sr-rto; sr_ledger.h), cover and repeat (sr-nack; sr_ledger.h), probe (both; sr_timers.h).
 */

/* Chunks of a transfer at most; a slot has at most 2^22 packets. */
#define SR_CHUNKS_MAX ((uint32_t)1 << 26)

size_t sr_sender_bytes(uint32_t chunks_max);
void sr_rto_sender_start(void *state, const struct lh_transfer *transfer, lh_time now);
void sr_nack_sender_start(void *state, const struct lh_transfer *transfer, lh_time now);
void sr_sender_on_message(void *state, const uint8_t *data, size_t bytes,
                          const struct lh_sender_view *view);
void sr_sender_step(void *state, const struct lh_sender_view *view, struct lh_actions *actions);

/* ---- receiver -------------------------------------------------------------------------------------- */

/*
 * The receiving machine of selective repeat, for sr-rto and sr-nack.
 *
 * It acknowledges what has arrived: at its own pace (sr_timers.h), when a probe asks, and in sr-nack as
 * soon as chunks are known to be lost (sr_arrivals.h). An acknowledgement is one message, or several when the
 * chunks between the first missing one and the highest do not fit one.
 *
 * Timers: periodic and pause (sr_timers.h), settle and repeat (sr_arrivals.h).
 */

size_t sr_receiver_bytes(uint32_t chunks_max);
void sr_rto_receiver_start(void *state, const struct lh_transfer *transfer, lh_time now);
void sr_nack_receiver_start(void *state, const struct lh_transfer *transfer, lh_time now);
void sr_receiver_on_message(void *state, const uint8_t *data, size_t bytes,
                            const struct lh_receiver_view *view);
void sr_receiver_step(void *state, const struct lh_receiver_view *view, struct lh_actions *actions);

/* ---- params ---------------------------------------------------------------------------------------- */

/*
 * The parameters of the selective repeat schemes: as text, and as the bytes that travel.
 *
 * sr-rto: bytes 0-1 alpha in hundredths, big-endian; the rest zero. sr-nack: all zero.
 */

/* "" or "alpha=NUMBER", 0.25 to 100. -LH_EINVAL. */
int sr_rto_parse(const char *text, uint8_t params[LH_SCHEME_PARAMS]);
bool sr_rto_params_valid(const uint8_t params[LH_SCHEME_PARAMS]);
uint32_t sr_rto_alpha_hundredths(const uint8_t params[LH_SCHEME_PARAMS]);

/* Only "". -LH_EINVAL. */
int sr_nack_parse(const char *text, uint8_t params[LH_SCHEME_PARAMS]);
bool sr_nack_params_valid(const uint8_t params[LH_SCHEME_PARAMS]);

#endif
