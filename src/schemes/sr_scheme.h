/*
 * sr_scheme.h - selective repeat in the table of schemes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_SR_SCHEME_H
#define LH_SCHEMES_SR_SCHEME_H

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

#endif
