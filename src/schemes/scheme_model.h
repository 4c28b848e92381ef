/*
 * scheme_model.h - the calls of the model that need a scheme: each finds the scheme's predictor in the
 * table.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_SCHEME_MODEL_H
#define LH_SCHEMES_SCHEME_MODEL_H

#include "model/predictor.h"

/* -LH_EINVAL, -LH_ERANGE: there is no such scheme, or as model_predictor_start(). */
int scheme_model_start(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                       struct model_prediction *prediction);

#endif
