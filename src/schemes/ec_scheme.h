/*
 * message_times.h - a message by an erasure code that is cut into segments, each with parity of its own.
 *
 * Segments follow each other on the wire, data and parity. Only of the last can parity come too late to be
 * of use: the parity of the others is ahead of its data. An earlier segment ends the message when it fell
 * back, and so late that its repairs take longer than what is left to send. As segments are independent,
 *
 *     log P(complete at t) = log P(the last is) + sum over r of n_r(t) (log D_r - log D_(r-1)),
 *
 * D_r the chance that a segment needs at most r rounds (request_rounds.h) and n_r(t) the number of segments
 * whose round r would have ended by t: those that were sent long enough before.
 *
 * A message of one segment has its mean in closed form (segment_times.h), of several by quadrature.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_EC_MESSAGE_TIMES_H
#define LH_SCHEMES_EC_MESSAGE_TIMES_H

#include "schemes/ec/segment_times.h"

#define MODEL_ROUNDS_MAX 64u /* what needs more is taken to need these */

struct ec_message_times {
    double before;                /* segments before the last */
    double apart_s;               /* from the first chunk of one to that of the next */
    struct ec_segment_times full; /* one that is not the last; the last where there is one only */
    struct ec_segment_times last;
    unsigned rounds;
    unsigned last_rounds;
    double log_done[MODEL_ROUNDS_MAX + 1]; /* log D_r of `full`, and of `last`; where there are several */
    double log_last[MODEL_ROUNDS_MAX + 1];
};

/* -LH_EINVAL, -LH_ERANGE as model_message_of(). */
int ec_message_start(struct ec_message_times *segments, const struct lh_model_path *path,
                     const struct lh_model_scheme *scheme);
double ec_message_mean(const struct ec_message_times *segments);
double ec_message_cdf(const struct ec_message_times *segments, double seconds);
double ec_message_quantile(const struct ec_message_times *segments, double share);
/* Chance that something has to be asked for in one of them, and the chunks that are sent beside the data:
 * parity, and in the mean what is asked for. */
double ec_message_fallback(const struct ec_message_times *segments);
double ec_message_parity(const struct ec_message_times *segments);
double ec_message_requested(const struct ec_message_times *segments);

#endif
