/*
 * segments.h - a message by an erasure code that is cut into segments, each with parity of its own.
 *
 * Segments follow each other on the wire, data and parity. Only of the last can parity come too late to be of
 * use: the parity of the others is ahead of its data. An earlier segment ends the message when it fell back,
 * and so late that its repairs take longer than what is left to send. As segments are independent,
 *
 *     log P(complete at t) = log P(the last is) + sum over r of n_r(t) (log D_r - log D_(r-1)),
 *
 * D_r the chance that a segment needs at most r rounds (rounds.h) and n_r(t) the number of segments whose
 * round r would have ended by t: those that were sent long enough before.
 *
 * A message of one segment has its mean in closed form (running_code.h), of several by quadrature.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_SEGMENTS_H
#define LH_MODEL_SEGMENTS_H

#include "model/running_code.h"

#define MODEL_ROUNDS_MAX 64u /* what needs more is taken to need these */

struct model_segments {
    double before;                  /* segments before the last */
    double apart_s;                 /* from the first chunk of one to that of the next */
    struct model_running_code full; /* one that is not the last; the last where there is one only */
    struct model_running_code last;
    unsigned rounds;
    unsigned last_rounds;
    double log_done[MODEL_ROUNDS_MAX + 1]; /* log D_r of `full`, and of `last`; where there are several */
    double log_last[MODEL_ROUNDS_MAX + 1];
};

/* -LH_EINVAL, -LH_ERANGE as model_terms_of(). */
int model_segments_start(struct model_segments *segments, const struct lh_model_path *path,
                         const struct lh_model_scheme *scheme);
double model_segments_mean(const struct model_segments *segments);
double model_segments_cdf(const struct model_segments *segments, double seconds);
double model_segments_quantile(const struct model_segments *segments, double share);
/* Chance that something has to be asked for in one of them, and the chunks that are sent beside the data:
 * parity, and in the mean what is asked for. */
double model_segments_fallback(const struct model_segments *segments);
double model_segments_parity(const struct model_segments *segments);
double model_segments_lacking(const struct model_segments *segments);

#endif
