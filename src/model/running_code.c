/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/running_code.h"

#include <assert.h>
#include <math.h>

void model_running_code_start(struct model_running_code *code, const struct lh_model_scheme *scheme,
                              const struct model_terms *terms)
{
    struct model_lacks *lacks = &code->lacks;
    model_lacks_of(scheme, &terms->loss, terms->chunks, lacks);
    model_early_start(&code->early, scheme, &terms->loss, terms->chunks, lacks);
    model_rounds_start(&code->rounds, scheme, &terms->loss, terms->chunks, lacks);
    code->inject_s = terms->inject_s;
    code->sent_s = terms->ideal_s;
    /* The parity of a submessage that is one chunk shorter than others may be fewer chunks (xor). */
    double parity = lacks->submessages * lacks->rows;
    double waits_s = fmax(scheme->beta * terms->rtt_s, terms->window_s);
    code->asked_s = terms->ideal_s + parity * terms->inject_s + waits_s + terms->rtt_s;
    code->round_s = terms->rto_s;
    code->p_fallback = -expm1(code->rounds.log_none);
    code->lacking =
        code->p_fallback > 0 ? fmax(1, lacks->mean / code->p_fallback) / (1 - terms->loss.chunk) : 0;
    assert(code->asked_s >= code->sent_s && code->round_s > 0);
}

double model_running_code_mean(const struct model_running_code *code)
{
    double parity = code->lacks.submessages * code->lacks.rows;
    double mean = code->sent_s + model_early_mean(&code->early) * code->inject_s;
    if (code->p_fallback <= 0)
        return mean;
    double whole_s = code->sent_s + parity * code->inject_s;
    double asked_s = code->asked_s - whole_s + code->lacking * code->inject_s;
    return mean + code->p_fallback * asked_s + model_rounds_more(&code->rounds) * code->round_s;
}

double model_running_code_cdf(const struct model_running_code *code, double seconds)
{
    if (seconds < code->sent_s)
        return 0;
    double parity = floor((seconds - code->sent_s) / code->inject_s);
    double first_s = code->asked_s + code->lacking * code->inject_s;
    if (seconds < first_s || code->p_fallback <= 0)
        return exp(model_early_log(&code->early, parity));
    if (code->round_s * MODEL_LEVELS_MAX <= seconds - first_s)
        return 1;
    return exp(model_rounds_log(&code->rounds, 1 + floor((seconds - first_s) / code->round_s)));
}

double model_running_code_quantile(const struct model_running_code *code, double share)
{
    assert(share >= 0 && share < 1);
    double parity = model_early_quantile(&code->early, share);
    if (isfinite(parity))
        return code->sent_s + parity * code->inject_s;
    double rounds = fmax(1, model_rounds_quantile(&code->rounds, share));
    return code->asked_s + code->lacking * code->inject_s + (rounds - 1) * code->round_s;
}
