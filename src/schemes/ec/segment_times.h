/*
 * segment_times.h - the time of a message by an erasure code as Longhaul's machines run it.
 *
 * Data and then parity are injected. The message is complete with the first chunk that is enough
 * (partial_arrival.h). When all of them are not, the receiver asks beta round trips after the end, or a
 * reordering window where that is longer, and what is asked for follows; each further round
 * (request_rounds.h) costs a round trip and a window. What is asked for takes its mean time of the link, in
 * the distribution as well.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_EC_SEGMENT_TIMES_H
#define LH_SCHEMES_EC_SEGMENT_TIMES_H

#include "schemes/ec/partial_arrival.h"
#include "schemes/ec/request_rounds.h"
#include "model/message.h"

struct ec_segment_times {
    double inject_s;  /* T_inj */
    double sent_s;    /* a message that needs no parity is complete */
    double asked_s;   /* asked_s + N T_inj: N chunks were asked for, and one round was enough */
    double round_s;   /* each round beyond the first */
    double requested; /* mean of N when there is a fallback */
    double p_fallback;
    struct ec_missing missing;
    struct ec_partial_arrival partial;
    struct ec_rounds rounds;
};

void ec_segment_start(struct ec_segment_times *code, const struct lh_model_scheme *scheme,
                      const struct model_message *message);
double ec_segment_mean(const struct ec_segment_times *code);
double ec_segment_cdf(const struct ec_segment_times *code, double seconds);
double ec_segment_quantile(const struct ec_segment_times *code, double share);

#endif
