/*
 * model_params.h - the parameters of bounded completion, as the model reads them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_BOUNDED_MODEL_PARAMS_H
#define LH_SCHEMES_BOUNDED_MODEL_PARAMS_H

#include "model/parameter.h"
#include "model/predictor.h"
#include "model/scheme_entry.h"

/* See struct scheme_entry. */
bool bounded_model_take(const struct model_parameter *parameter, struct lh_model_scheme *scheme,
                        int *failed);
void bounded_model_format(const struct lh_model_scheme *scheme, struct model_text *text);
/* See struct model_predictor. */
int bounded_model_check(const struct lh_model_scheme *scheme);

/* See struct scheme_entry; 0 without a code. */
double bounded_encode_rate(const struct lh_plan_question *question, const struct lh_model_scheme *scheme);

#endif
