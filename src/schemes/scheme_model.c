/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/scheme_model.h"

#include <math.h>

#include "base/error.h"
#include "model/collective.h"
#include "schemes/scheme_table.h"

static int find(const struct lh_model_scheme *scheme, const struct model_predictor **predictor)
{
    const struct scheme_entry *entry = scheme_table_kind(scheme->kind);
    if (!entry)
        return lh_fail(LH_EINVAL, "scheme %d is none of enum lh_model_kind", (int)scheme->kind);
    *predictor = entry->predictor;
    return 0;
}

int scheme_model_start(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                       struct model_prediction *prediction)
{
    const struct model_predictor *predictor = NULL;
    int failed = find(scheme, &predictor);
    return failed ? failed : model_predictor_start(predictor, path, scheme, prediction);
}

int lh_model_predict(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                     struct lh_model_times *times)
{
    const struct model_predictor *predictor = NULL;
    int failed = find(scheme, &predictor);
    return failed ? failed : model_predictor_times(predictor, path, scheme, times);
}

int lh_model_quantile(const struct lh_model_path *path, const struct lh_model_scheme *scheme, double share,
                      double *seconds)
{
    struct model_prediction prediction;
    if (!(share >= 0) || !(share < 1))
        return lh_fail(LH_ERANGE, "quantile %g: out of range (0 to below 1)", share);
    int failed = scheme_model_start(path, scheme, &prediction);
    if (failed)
        return failed;
    *seconds = prediction.predictor->quantile(&prediction, share);
    return 0;
}

int lh_model_cdf(const struct lh_model_path *path, const struct lh_model_scheme *scheme, double seconds,
                 double *share)
{
    struct model_prediction prediction;
    if (isnan(seconds))
        return lh_fail(LH_ERANGE, "the time to look at is not a number; give seconds");
    int failed = scheme_model_start(path, scheme, &prediction);
    if (failed)
        return failed;
    *share = prediction.predictor->cdf(&prediction, seconds);
    return 0;
}

int lh_model_collective_bound(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                              enum lh_model_collective collective, uint32_t datacenters, double *ideal_s,
                              double *mean_s)
{
    struct lh_model_path one;
    struct lh_model_times times;
    int failed = model_collective_path(path, collective, datacenters, &one);
    if (!failed)
        failed = lh_model_predict(&one, scheme, &times);
    if (failed)
        return failed;
    uint32_t rounds = model_collective_rounds(collective, datacenters);
    *ideal_s = rounds * times.ideal_s;
    *mean_s = rounds * times.mean_s;
    return 0;
}
