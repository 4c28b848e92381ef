/*
 * paper_times.h - erasure codes: the time of a message that is sent with parity, and falls back where that
 * is too little.
 *
 * SDR-RDMA paper, section 4.2.3. Data and parity take base_s to inject. When every submessage can be
 * decoded, a round trip follows. Else the sender hears of it (1 + beta) RTT after base_s, sends what is
 * lacking (missing.h) and repeats what of that is lost, as in repeat.h; and a round trip follows.
 *
 * The number N of chunks that are lacking is random. The mean is that over all N, exactly, by its
 * generating function, as long as N chunks are injected within O; beyond, N is cut into a few values. The
 * distribution takes each lacking chunk's place among the N for itself, evenly spread over the mean N; that
 * is wrong by some T_inj.
 *
 * What the paper prints puts the mean of N into the formula of selective repeat instead, and a last
 * round trip into that: ec_paper_formula.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_EC_PAPER_TIMES_H
#define LH_SCHEMES_EC_PAPER_TIMES_H

#include "schemes/ec/missing.h"
#include "model/repeat.h"
#include "model/message.h"

struct ec_paper_times {
    double inject_s; /* T_inj */
    double whole_s;  /* a message that decodes at once is complete */
    double asked_s;  /* asked_s + N T_inj: N chunks lacked, and were repaired in one round */
    double p_fallback;
    double requested; /* mean of N when there is a fallback */
    struct ec_missing missing;
    struct model_repeat repeat; /* of what is lacking */
};

void ec_paper_start(struct ec_paper_times *coded, const struct lh_model_scheme *scheme,
                    const struct model_message *message);
double ec_paper_mean(const struct ec_paper_times *coded);
double ec_paper_cdf(const struct ec_paper_times *coded, double seconds);
double ec_paper_quantile(const struct ec_paper_times *coded, double share);
/* Section 4.2.3 as printed: (M + ceil(M m / k)) T_inj + P_fallback (1 + beta) RTT + E[T_SR(L (1 - P) k)].
 * */
double ec_paper_formula(const struct lh_model_scheme *scheme, const struct model_message *message);

#endif
