/* SPDX-License-Identifier: BSD-3-Clause */
#include <longhaul/model.h>

#include <assert.h>
#include <math.h>

#include "base/error.h"
#include "model/bounded.h"
#include "model/repeat.h"
#include "model/scheme.h"
#include "model/terms.h"

/* A deadline is found to this share of a T_inj, or as well as a double tells it. */
#define CLOSE    1e-6
#define HALVINGS 100

struct prepared {
    struct model_terms terms;
    struct model_repeat repeat;
    double overhead; /* O, in T_inj */
};

static int prepare(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                   struct prepared *prepared)
{
    int failed = model_terms_of(path, scheme, &prepared->terms);
    if (failed)
        return failed;
    if (scheme->kind != LH_MODEL_SR_RTO && scheme->kind != LH_MODEL_SR_NACK)
        return lh_fail(LH_EINVAL,
                       "the model knows deadlines of selective repeat only; use sr-rto or sr-nack");
    if (scheme->timing != LH_MODEL_TIMING_PAPER)
        return lh_fail(LH_EINVAL,
                       "a deadline is known by the paper's timing only; use LH_MODEL_TIMING_PAPER");
    const struct model_terms *terms = &prepared->terms;
    prepared->overhead = model_terms_overhead(terms);
    model_repeat_start(&prepared->repeat, &terms->loss, prepared->overhead, terms->chunks);
    return 0;
}

static double missing_at(const struct prepared *prepared, double s)
{
    const struct model_terms *terms = &prepared->terms;
    return model_bounded_missing(terms->loss.chunk, prepared->overhead, terms->chunks, s);
}

/* As a share; 0: in the mean. */
static double missing_of(const struct prepared *prepared, double mean, double share)
{
    const struct model_terms *terms = &prepared->terms;
    if (share > 0 && terms->loss.bursty)
        return NAN;
    return (share > 0 ? model_bounded_quantile(mean, terms->chunks, share) : mean) / terms->chunks;
}

int lh_model_bounded(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                     double deadline_s, struct lh_model_bounded *bounded)
{
    struct prepared prepared;
    int failed = prepare(path, scheme, &prepared);
    if (failed)
        return failed;
    const struct model_terms *terms = &prepared.terms;
    if (!(deadline_s >= terms->ideal_s) || !isfinite(deadline_s))
        return lh_fail(LH_ERANGE,
                       "a deadline of %g s cannot be; the last chunk is not sent and answered before %g s",
                       deadline_s, terms->ideal_s);
    double s = (deadline_s - terms->ideal_s) / terms->inject_s;
    double mean = missing_at(&prepared, s);
    struct lh_model_bounded of = {
        .mean_s = terms->ideal_s +
                  model_repeat_excess_until(&prepared.repeat, terms->chunks, s) * terms->inject_s,
        .missing = missing_of(&prepared, mean, 0),
        .missing_p99 = missing_of(&prepared, mean, 0.99),
        .missing_p999 = missing_of(&prepared, mean, 0.999),
        .whole = model_repeat_cdf(&prepared.repeat, terms->chunks, s),
    };
    double *const times[] = {&of.p50_s, &of.p99_s, &of.p999_s};
    static const double shares[] = {0.5, 0.99, 0.999};
    for (unsigned i = 0; i < 3; i++)
        *times[i] =
            terms->ideal_s +
            fmin(s, model_repeat_quantile(&prepared.repeat, terms->chunks, shares[i])) * terms->inject_s;
    /* A chunk that is sent until it came, or n times: (1 - p^n) / (1 - p) in the mean. */
    double chunks_sent = (terms->chunks - mean) / (1 - terms->loss.chunk);
    of.overhead_bytes = fmax(0, chunks_sent / terms->chunks - 1) * terms->message_wire_bytes;
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
        return lh_fail(LH_ERANGE, "%g of the messages cannot be; it is 0 for the mean, or a share below 1",
                       share);
    int failed = prepare(path, scheme, &prepared);
    if (failed)
        return failed;
    const struct model_terms *terms = &prepared.terms;
    if (share > 0 && terms->loss.bursty)
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
    *deadline_s = terms->ideal_s + high * terms->inject_s;
    return 0;
}
