/* SPDX-License-Identifier: BSD-3-Clause */
#include <longhaul/model.h>

#include <assert.h>
#include <math.h>

#include "base/error.h"
#include "model/coded.h"
#include "model/go_back.h"
#include "model/repeat.h"
#include "model/scheme.h"
#include "model/segments.h"
#include "model/terms.h"

/* One path and scheme, made ready: only the part of its scheme is used. */
struct prediction {
    const struct lh_model_scheme *scheme;
    struct model_terms terms;
    union {
        struct model_repeat repeat;
        struct model_coded coded;
        struct model_segments segments;
        struct model_go_back go_back;
    } of;
};

static bool runs_code(const struct prediction *prediction)
{
    return prediction->terms.longhaul && model_scheme_codes(prediction->scheme);
}

static int start(struct prediction *prediction, const struct lh_model_path *path,
                 const struct lh_model_scheme *scheme)
{
    struct model_terms *terms = &prediction->terms;
    int failed = model_terms_of(path, scheme, terms);
    if (failed)
        return failed;
    prediction->scheme = scheme;
    if (runs_code(prediction))
        return model_segments_start(&prediction->of.segments, path, scheme);
    if (model_scheme_codes(scheme))
        model_coded_start(&prediction->of.coded, scheme, terms);
    else if (scheme->kind == LH_MODEL_GBN)
        model_go_back_start(&prediction->of.go_back, terms);
    else if (scheme->kind != LH_MODEL_IDEAL)
        model_terms_repeat(terms, &prediction->of.repeat);
    return 0;
}

static double mean_of(const struct prediction *prediction)
{
    const struct model_terms *terms = &prediction->terms;
    if (runs_code(prediction))
        return model_segments_mean(&prediction->of.segments);
    if (model_scheme_codes(prediction->scheme))
        return model_coded_mean(&prediction->of.coded);
    if (prediction->scheme->kind == LH_MODEL_GBN)
        return model_go_back_mean(&prediction->of.go_back);
    if (prediction->scheme->kind == LH_MODEL_IDEAL)
        return terms->ideal_s;
    return model_terms_whole(terms) +
           model_repeat_excess(&prediction->of.repeat, terms->chunks) * terms->inject_s;
}

static double quantile_of(const struct prediction *prediction, double share)
{
    const struct model_terms *terms = &prediction->terms;
    if (runs_code(prediction))
        return model_segments_quantile(&prediction->of.segments, share);
    if (model_scheme_codes(prediction->scheme))
        return model_coded_quantile(&prediction->of.coded, share);
    if (prediction->scheme->kind == LH_MODEL_GBN)
        return model_go_back_quantile(&prediction->of.go_back, share);
    if (prediction->scheme->kind == LH_MODEL_IDEAL)
        return terms->ideal_s;
    return model_terms_whole(terms) +
           model_repeat_quantile(&prediction->of.repeat, terms->chunks, share) * terms->inject_s;
}

static double cdf_of(const struct prediction *prediction, double seconds)
{
    const struct model_terms *terms = &prediction->terms;
    if (runs_code(prediction))
        return model_segments_cdf(&prediction->of.segments, seconds);
    if (model_scheme_codes(prediction->scheme))
        return model_coded_cdf(&prediction->of.coded, seconds);
    if (prediction->scheme->kind == LH_MODEL_GBN)
        return model_go_back_cdf(&prediction->of.go_back, seconds);
    if (prediction->scheme->kind == LH_MODEL_IDEAL || seconds < model_terms_whole(terms))
        return seconds >= model_terms_whole(terms);
    return model_repeat_cdf(&prediction->of.repeat, terms->chunks,
                            (seconds - model_terms_whole(terms)) / terms->inject_s);
}

/* Chunks of parity, and mean number of those that fall back. */
static double parity_of(const struct prediction *prediction)
{
    return runs_code(prediction) ? model_segments_parity(&prediction->of.segments)
                                 : prediction->of.coded.lacks.parity_chunks;
}

static double lacking_of(const struct prediction *prediction)
{
    return runs_code(prediction) ? model_segments_lacking(&prediction->of.segments)
                                 : prediction->of.coded.lacks.mean;
}

/* Beyond the message sent once. */
static double overhead_bytes_of(const struct prediction *prediction)
{
    const struct model_terms *terms = &prediction->terms;
    double chunk_bytes = terms->message_wire_bytes / terms->chunks;
    double loss = terms->loss.chunk;
    if (model_scheme_codes(prediction->scheme)) {
        return (parity_of(prediction) + lacking_of(prediction) / (1 - loss)) * chunk_bytes;
    }
    if (prediction->scheme->kind == LH_MODEL_GBN)
        return model_go_back_repeated(&prediction->of.go_back) * terms->message_wire_bytes / terms->packets;
    return prediction->scheme->kind == LH_MODEL_IDEAL ? 0 : terms->message_wire_bytes * loss / (1 - loss);
}

/* The mean by what the paper prints. */
static double paper_mean(const struct lh_model_path *path, const struct prediction *prediction)
{
    if (model_scheme_codes(prediction->scheme))
        return model_coded_paper(prediction->scheme, &prediction->terms);
    struct lh_model_scheme scheme = *prediction->scheme;
    struct prediction paper;
    scheme.timing = LH_MODEL_TIMING_PAPER;
    int failed = start(&paper, path, &scheme);
    assert(!failed); /* the path was checked before */
    (void)failed;
    return mean_of(&paper);
}

int lh_model_predict(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                     struct lh_model_times *times)
{
    struct prediction prediction;
    int failed = start(&prediction, path, scheme);
    if (failed)
        return failed;
    const struct model_terms *terms = &prediction.terms;
    struct lh_model_times of = {
        .ideal_s = terms->ideal_s,
        .mean_s = mean_of(&prediction),
        .p50_s = quantile_of(&prediction, 0.5),
        .p99_s = quantile_of(&prediction, 0.99),
        .p999_s = quantile_of(&prediction, 0.999),
        .overhead_bytes = overhead_bytes_of(&prediction),
    };
    of.wire_bytes = terms->message_wire_bytes + of.overhead_bytes;
    of.paper_mean_s = scheme->timing == LH_MODEL_TIMING_PAPER && !model_scheme_codes(scheme)
                          ? of.mean_s
                          : paper_mean(path, &prediction);
    if (model_scheme_codes(scheme)) {
        of.p_fallback = runs_code(&prediction) ? model_segments_fallback(&prediction.of.segments)
                                               : prediction.of.coded.p_fallback;
        double bytes = (double)path->message_bytes;
        double sent_s = (terms->chunks + parity_of(&prediction)) * terms->inject_s;
        if (scheme->encode_bytes_per_s > 0) {
            of.encode_core_s = bytes / scheme->encode_bytes_per_s;
            of.encode_cores = of.encode_core_s / sent_s;
        }
    }
    *times = of;
    return 0;
}

int lh_model_quantile(const struct lh_model_path *path, const struct lh_model_scheme *scheme, double share,
                      double *seconds)
{
    struct prediction prediction;
    if (!(share >= 0) || !(share < 1))
        return lh_fail(LH_ERANGE, "a quantile of %g cannot be; it is a share from 0 to below 1", share);
    int failed = start(&prediction, path, scheme);
    if (failed)
        return failed;
    *seconds = quantile_of(&prediction, share);
    return 0;
}

int lh_model_cdf(const struct lh_model_path *path, const struct lh_model_scheme *scheme, double seconds,
                 double *share)
{
    struct prediction prediction;
    if (isnan(seconds))
        return lh_fail(LH_ERANGE, "the time to look at is not a number; give seconds");
    int failed = start(&prediction, path, scheme);
    if (failed)
        return failed;
    *share = cdf_of(&prediction, seconds);
    return 0;
}
