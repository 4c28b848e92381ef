/*
 * scheme_samples.c - Monte Carlo of a scheme.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/model.h>

#include "model/monte_carlo.h"
#include "model/predictor.h"
#include "schemes/scheme_table.h"

int lh_model_sample(const struct lh_model_path *path, const struct lh_model_scheme *scheme, uint64_t seed,
                    uint32_t threads, double *seconds, size_t count)
{
    struct model_prediction prediction;
    int failed = scheme_model_start(path, scheme, &prediction);
    return failed ? failed : model_sample(&prediction, seed, threads, seconds, count);
}

int lh_model_collective_sample(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                               enum lh_model_collective collective, uint32_t datacenters, uint64_t seed,
                               uint32_t threads, double *seconds, size_t count)
{
    struct lh_model_path one;
    struct model_prediction prediction;
    int failed = model_collective_path(path, collective, datacenters, &one);
    if (!failed)
        failed = scheme_model_start(&one, scheme, &prediction);
    return failed ? failed
                  : model_sample_collective(&prediction, collective, datacenters, seed, threads, seconds,
                                            count);
}
