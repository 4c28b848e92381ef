/*
 * model_params.h - the parameters of the hybrid scheme as the model and the planner use them
 * (scheme_entry.h and predictor.h of src/model describe each call).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_HYBRID_MODEL_PARAMS_H
#define LH_SCHEMES_HYBRID_MODEL_PARAMS_H

#include "model/scheme_entry.h"

int hybrid_model_check(const struct lh_model_scheme *scheme);
void hybrid_model_defaults(struct lh_model_scheme *scheme);
bool hybrid_model_take(const struct model_parameter *parameter, struct lh_model_scheme *scheme,
                       int *failed);
void hybrid_model_format(const struct lh_model_scheme *scheme, struct model_text *text);
/* The one with the defaults. */
uint32_t hybrid_candidates(bool unspread, struct lh_model_scheme *out);
double hybrid_encode_rate(const struct lh_plan_question *question, const struct lh_model_scheme *scheme);

#endif
