/*
 * predictions.h - the predictor of a scheme, found by its kind, for tests of what lies below the table.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_SUPPORT_PREDICTIONS_H
#define LH_TESTS_SUPPORT_PREDICTIONS_H

#include <stddef.h>

#include "schemes/scheme_table.h"

static inline const struct model_predictor *predictor_of(const struct lh_model_scheme *scheme)
{
    return scheme_table_kind(scheme->kind)->predictor;
}

static inline int message_of(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                             struct model_message *message)
{
    return model_predictor_message(predictor_of(scheme), path, scheme, message);
}

static inline int prediction_of(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                                struct model_prediction *prediction)
{
    return model_predictor_start(predictor_of(scheme), path, scheme, prediction);
}

static inline double sample_one(const struct model_prediction *prediction, struct lh_prng *prng,
                                uint8_t *cells)
{
    return prediction->predictor->sample(prediction, prng, cells);
}

#endif
