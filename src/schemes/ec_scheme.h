/*
 * ec_scheme.h - the erasure codes in the table of schemes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_EC_SCHEME_H
#define LH_SCHEMES_EC_SCHEME_H

#include "model/predictor.h"
#include "model/repeat_model.h"
#include "schemes/ec_arrival_model.h"
#include "schemes/ec_missing.h"

extern const struct lh_scheme ec_mds_scheme; /* "ec:mds" */
extern const struct lh_scheme ec_xor_scheme; /* "ec:xor" */
extern const struct scheme_entry ec_mds_entry;
extern const struct scheme_entry ec_xor_entry;

/* ---- predictor ------------------------------------------------------------------------------------- */

/*
 * How long a message takes by an erasure code: by the paper's timing, or by that of Longhaul's machines.
 */

extern const struct model_predictor ec_predictor;

/* ---- model params ---------------------------------------------------------------------------------- */

/*
 * The parameters of the erasure codes as the model and the planner use them
 * (predictor.h and ec_scheme.h of src/model say what each call does).
 */

int ec_model_check(const struct lh_model_scheme *scheme);

void ec_model_defaults(struct lh_model_scheme *scheme);
bool ec_model_take(const struct model_parameter *parameter, struct lh_model_scheme *scheme, int *failed);

/* m is a power of two, and at most k. */
uint32_t ec_mds_candidates(bool unspread, struct lh_model_scheme *out);
uint32_t ec_xor_candidates(bool unspread, struct lh_model_scheme *out);
double ec_mds_encode_rate(const struct lh_plan_question *question, const struct lh_model_scheme *scheme);
double ec_xor_encode_rate(const struct lh_plan_question *question, const struct lh_model_scheme *scheme);

/* ---- paper times ----------------------------------------------------------------------------------- */

/*
 * Erasure codes: the time of a message that is sent with parity, and falls back where that
 * is too little.
 *
 * SDR-RDMA paper, section 4.2.3. Data and parity take base_s to inject. When every submessage can be
 * decoded, a round trip follows. Else the sender hears of it (1 + beta) RTT after base_s, sends what is
 * lacking (ec_missing.h) and repeats what of that is lost, as in repeat_model.h; and a round trip follows.
 *
 * The number N of chunks that are lacking is random. The mean is that over all N, exactly, by its
 * generating function, as long as N chunks are injected within O; beyond, N is cut into a few values. The
 * distribution takes each lacking chunk's place among the N for itself, evenly spread over the mean N; that
 * is wrong by some T_inj.
 *
 * What the paper prints puts the mean of N into the formula of selective repeat instead, and a last
 * round trip into that: ec_paper_formula.
 */

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

/* ---- message times --------------------------------------------------------------------------------- */

/*
 * A message by an erasure code that is cut into segments, each with parity of its own.
 *
 * Segments follow each other on the wire, data and parity. Only of the last can parity come too late to be
 * of use: the parity of the others is ahead of its data. An earlier segment ends the message when it fell
 * back, and so late that its repairs take longer than what is left to send. As segments are independent,
 *
 *     log P(complete at t) = log P(the last is) + sum over r of n_r(t) (log D_r - log D_(r-1)),
 *
 * D_r the chance that a segment needs at most r rounds (ec_arrival_model.h) and n_r(t) the number of segments
 * whose round r would have ended by t: those that were sent long enough before.
 *
 * A message of one segment has its mean in closed form (ec_arrival_model.h), of several by quadrature.
 */

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
double ec_message_parity(const struct ec_message_times *segments);

#endif
