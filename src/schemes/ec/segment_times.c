/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/segment_times.h"

#include <assert.h>
#include <math.h>

void ec_segment_start(struct ec_segment_times *code, const struct lh_model_scheme *scheme,
                      const struct model_message *message)
{
    struct ec_missing *missing = &code->missing;
    ec_missing_of(scheme, &message->loss, message->chunks, missing);
    ec_partial_start(&code->partial, scheme, &message->loss, message->chunks, missing);
    ec_rounds_start(&code->rounds, scheme, &message->loss, message->chunks, missing);
    code->inject_s = message->inject_s;
    code->sent_s = message->ideal_s;
    /* The parity of a submessage that is one chunk shorter than others may be fewer chunks (xor). */
    double parity = missing->submessages * missing->rows;
    double waits_s = fmax(scheme->beta * message->rtt_s, message->window_s);
    code->asked_s = message->ideal_s + parity * message->inject_s + waits_s + message->rtt_s;
    code->round_s = message->rto_s;
    code->p_fallback = -expm1(code->rounds.log_none);
    code->requested =
        code->p_fallback > 0 ? fmax(1, missing->mean / code->p_fallback) / (1 - message->loss.chunk) : 0;
    assert(code->asked_s >= code->sent_s && code->round_s > 0);
}

double ec_segment_mean(const struct ec_segment_times *code)
{
    double parity = code->missing.submessages * code->missing.rows;
    double mean = code->sent_s + ec_partial_mean(&code->partial) * code->inject_s;
    if (code->p_fallback <= 0)
        return mean;
    double whole_s = code->sent_s + parity * code->inject_s;
    double asked_s = code->asked_s - whole_s + code->requested * code->inject_s;
    return mean + code->p_fallback * asked_s + ec_rounds_more(&code->rounds) * code->round_s;
}

double ec_segment_cdf(const struct ec_segment_times *code, double seconds)
{
    if (seconds < code->sent_s)
        return 0;
    double parity = floor((seconds - code->sent_s) / code->inject_s);
    double first_s = code->asked_s + code->requested * code->inject_s;
    if (seconds < first_s || code->p_fallback <= 0)
        return exp(ec_partial_log(&code->partial, parity));
    if (code->round_s * MODEL_LEVELS_MAX <= seconds - first_s)
        return 1;
    return exp(ec_rounds_log(&code->rounds, 1 + floor((seconds - first_s) / code->round_s)));
}

double ec_segment_quantile(const struct ec_segment_times *code, double share)
{
    assert(share >= 0 && share < 1);
    double parity = ec_partial_quantile(&code->partial, share);
    if (isfinite(parity))
        return code->sent_s + parity * code->inject_s;
    double rounds = fmax(1, ec_rounds_quantile(&code->rounds, share));
    return code->asked_s + code->requested * code->inject_s + (rounds - 1) * code->round_s;
}
