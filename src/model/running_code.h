/*
 * running_code.h - the time of a message by an erasure code as Longhaul's machines run it.
 *
 * Data and then parity are injected. The message is complete with the first chunk that is enough (early.h).
 * When all of them are not, the receiver asks beta round trips after the end, or a reordering window where
 * that is longer, and what is asked for follows; each further round (rounds.h) costs a round trip and a
 * window. What is asked for takes its mean time of the link, in the distribution as well.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_RUNNING_CODE_H
#define LH_MODEL_RUNNING_CODE_H

#include "model/early.h"
#include "model/rounds.h"
#include "model/terms.h"

struct model_running_code {
    double inject_s; /* T_inj */
    double sent_s;   /* a message that needs no parity is complete */
    double asked_s;  /* asked_s + N T_inj: N chunks were asked for, and one round was enough */
    double round_s;  /* each round beyond the first */
    double lacking;  /* mean of N when there is a fallback */
    double p_fallback;
    struct model_lacks lacks;
    struct model_early early;
    struct model_rounds rounds;
};

void model_running_code_start(struct model_running_code *code, const struct lh_model_scheme *scheme,
                              const struct model_terms *terms);
double model_running_code_mean(const struct model_running_code *code);
double model_running_code_cdf(const struct model_running_code *code, double seconds);
double model_running_code_quantile(const struct model_running_code *code, double share);

#endif
