/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/predictor.h"

#include <assert.h>
#include <math.h>

#include "base/error.h"
#include "model/longhaul_timing.h"

int model_predictor_check(const struct model_predictor *predictor, const struct lh_model_scheme *scheme)
{
    if (scheme->timing != LH_MODEL_TIMING_PAPER && scheme->timing != LH_MODEL_TIMING_LONGHAUL)
        return lh_fail(LH_EINVAL,
                       "timing %d is none; use LH_MODEL_TIMING_PAPER or LH_MODEL_TIMING_LONGHAUL",
                       (int)scheme->timing);
    if (scheme->rto_rtts != 0 && !(scheme->rto_rtts >= 1 && scheme->rto_rtts <= MODEL_RTTS_MAX))
        return lh_fail(LH_ERANGE,
                       "timeout of %g round trips: out of range (at least 1, or 0 for the default)",
                       scheme->rto_rtts);
    return predictor->check ? predictor->check(scheme) : 0;
}

double model_predictor_rto(const struct model_predictor *predictor, const struct lh_model_scheme *scheme)
{
    if (scheme->rto_rtts > 0)
        return scheme->rto_rtts;
    return predictor->rto_rtts ? predictor->rto_rtts(scheme) : MODEL_RTO_DEFAULT;
}

int model_predictor_message(const struct model_predictor *predictor, const struct lh_model_path *path,
                            const struct lh_model_scheme *scheme, struct model_message *message)
{
    int failed = model_predictor_check(predictor, scheme);
    if (!failed)
        failed = model_message_of(path, model_predictor_rto(predictor, scheme), message);
    if (!failed && scheme->timing == LH_MODEL_TIMING_LONGHAUL && predictor->longhaul)
        predictor->longhaul(path, scheme, message);
    return failed;
}

int model_predictor_start(const struct model_predictor *predictor, const struct lh_model_path *path,
                          const struct lh_model_scheme *scheme, struct model_prediction *prediction)
{
    int failed = model_predictor_message(predictor, path, scheme, &prediction->message);
    if (failed)
        return failed;
    prediction->predictor = predictor;
    prediction->scheme = *scheme;
    prediction->log_loss = log(prediction->message.loss.chunk);
    prediction->cells = 0;
    return predictor->start ? predictor->start(prediction, path) : 0;
}

static double paper_mean(const struct lh_model_path *path, const struct model_prediction *prediction)
{
    const struct model_predictor *predictor = prediction->predictor;
    if (predictor->paper_mean)
        return predictor->paper_mean(prediction);
    struct lh_model_scheme scheme = prediction->scheme;
    struct model_prediction paper;
    scheme.timing = LH_MODEL_TIMING_PAPER;
    int failed = model_predictor_start(predictor, path, &scheme, &paper);
    assert(!failed); /* the path was checked before */
    (void)failed;
    return predictor->mean(&paper);
}

static void add_code(const struct lh_model_path *path, const struct model_prediction *prediction,
                     struct lh_model_times *times)
{
    const struct model_predictor *predictor = prediction->predictor;
    const struct model_message *message = &prediction->message;
    double sent_s = (message->chunks + predictor->parity_chunks(prediction)) * message->inject_s;
    times->p_fallback = predictor->p_fallback(prediction);
    if (prediction->scheme.encode_bytes_per_s > 0) {
        times->encode_core_s = (double)path->message_bytes / prediction->scheme.encode_bytes_per_s;
        times->encode_cores = times->encode_core_s / sent_s;
    }
}

int model_predictor_times(const struct model_predictor *predictor, const struct lh_model_path *path,
                          const struct lh_model_scheme *scheme, struct lh_model_times *times)
{
    struct model_prediction prediction;
    int failed = model_predictor_start(predictor, path, scheme, &prediction);
    if (failed)
        return failed;
    struct lh_model_times of = {
        .ideal_s = prediction.message.ideal_s,
        .mean_s = predictor->mean(&prediction),
        .p50_s = predictor->quantile(&prediction, 0.5),
        .p99_s = predictor->quantile(&prediction, 0.99),
        .p999_s = predictor->quantile(&prediction, 0.999),
        .overhead_bytes = predictor->overhead_bytes(&prediction),
        .delivered = predictor->delivered ? predictor->delivered(&prediction) : 1,
    };
    bool same = scheme->timing == LH_MODEL_TIMING_PAPER && !predictor->paper_mean;
    of.wire_bytes = prediction.message.message_wire_bytes + of.overhead_bytes;
    of.paper_mean_s = same ? of.mean_s : paper_mean(path, &prediction);
    if (predictor->parity_chunks)
        add_code(path, &prediction, &of);
    *times = of;
    return 0;
}
