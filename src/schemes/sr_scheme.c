/* SPDX-License-Identifier: BSD-3-Clause */
#include <longhaul/model.h>

#include <assert.h>
#include <math.h>

#include "base/error.h"
#include "model/binomial.h"
#include "model/repeat.h"
#include "schemes/sr/bounded_missing.h"
#include "schemes/sr/predictor.h"

/* A deadline is found to this share of a T_inj, or as well as a double tells it. */
#define CLOSE    1e-6
#define HALVINGS 100

struct prepared {
    struct model_message message;
    struct model_repeat repeat;
    double overhead; /* O, in T_inj */
};

static int prepare(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                   struct prepared *prepared)
{
    if (scheme->kind != LH_MODEL_SR_RTO && scheme->kind != LH_MODEL_SR_NACK)
        return lh_fail(LH_EINVAL,
                       "the model knows deadlines of selective repeat only; use sr-rto or sr-nack");
    if (scheme->timing != LH_MODEL_TIMING_PAPER)
        return lh_fail(LH_EINVAL,
                       "a deadline is known by the paper's timing only; use LH_MODEL_TIMING_PAPER");
    const struct model_predictor *predictor =
        scheme->kind == LH_MODEL_SR_RTO ? &sr_rto_predictor : &sr_nack_predictor;
    int failed = model_predictor_message(predictor, path, scheme, &prepared->message);
    if (failed)
        return failed;
    const struct model_message *message = &prepared->message;
    prepared->overhead = model_message_overhead(message);
    model_repeat_start(&prepared->repeat, &message->loss, prepared->overhead, message->chunks);
    return 0;
}

static double missing_at(const struct prepared *prepared, double s)
{
    const struct model_message *message = &prepared->message;
    return sr_bounded_missing(message->loss.chunk, prepared->overhead, message->chunks, s);
}

/* As a share; 0: in the mean. */
static double missing_of(const struct prepared *prepared, double mean, double share)
{
    const struct model_message *message = &prepared->message;
    if (share > 0 && message->loss.bursty)
        return NAN;
    return (share > 0 ? model_binomial_quantile(mean, message->chunks, share) : mean) / message->chunks;
}

int lh_model_bounded(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                     double deadline_s, struct lh_model_bounded *bounded)
{
    struct prepared prepared;
    int failed = prepare(path, scheme, &prepared);
    if (failed)
        return failed;
    const struct model_message *message = &prepared.message;
    if (!(deadline_s >= message->ideal_s) || !isfinite(deadline_s))
        return lh_fail(
            LH_ERANGE,
            "deadline %g s: out of range (the last chunk is acknowledged after %g s at the earliest)",
            deadline_s, message->ideal_s);
    double s = (deadline_s - message->ideal_s) / message->inject_s;
    double mean = missing_at(&prepared, s);
    struct lh_model_bounded of = {
        .mean_s = message->ideal_s +
                  model_repeat_excess_until(&prepared.repeat, message->chunks, s) * message->inject_s,
        .missing = missing_of(&prepared, mean, 0),
        .missing_p99 = missing_of(&prepared, mean, 0.99),
        .missing_p999 = missing_of(&prepared, mean, 0.999),
        .whole = model_repeat_cdf(&prepared.repeat, message->chunks, s),
    };
    double *const times[] = {&of.p50_s, &of.p99_s, &of.p999_s};
    static const double shares[] = {0.5, 0.99, 0.999};
    for (unsigned i = 0; i < 3; i++)
        *times[i] = message->ideal_s +
                    fmin(s, model_repeat_quantile(&prepared.repeat, message->chunks, shares[i])) *
                        message->inject_s;
    /* A chunk that is sent until it came, or n times: (1 - p^n) / (1 - p) in the mean. */
    double chunks_sent = (message->chunks - mean) / (1 - message->loss.chunk);
    of.overhead_bytes = fmax(0, chunks_sent / message->chunks - 1) * message->message_wire_bytes;
    *bounded = of;
    return 0;
}

int lh_model_deadline(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                      double missing, double share, double *deadline_s)
{
    struct prepared prepared;
    if (!(missing > 0) || !(missing < 1))
        return lh_fail(LH_ERANGE, "%g of a message cannot be missing; it is a share above 0 and below 1",
                       missing);
    if (!(share >= 0) || !(share < 1))
        return lh_fail(LH_ERANGE, "share of messages %g: out of range (0 to below 1; 0: the mean)", share);
    int failed = prepare(path, scheme, &prepared);
    if (failed)
        return failed;
    const struct model_message *message = &prepared.message;
    if (share > 0 && message->loss.bursty)
        return lh_fail(LH_EINVAL,
                       "how much is missing where losses come in bursts is known in the mean only; "
                       "ask for the mean, or leave the bursts out");
    double low = 0, high = 0;
    /* Behind a repeat more of everything, p times as much is missing: as many rounds as levels. */
    while (missing_of(&prepared, missing_at(&prepared, high), share) > missing) {
        low = high;
        high += prepared.overhead;
    }
    for (int i = 0; i < HALVINGS && high - low > CLOSE; i++) {
        double middle = (low + high) / 2;
        *(missing_of(&prepared, missing_at(&prepared, middle), share) > missing ? &low : &high) = middle;
    }
    *deadline_s = message->ideal_s + high * message->inject_s;
    return 0;
}
