/*
 * model_params.h - the parameters of the erasure codes as the model and the planner use them
 * (scheme_entry.h and predictor.h of src/model say what each call does).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_EC_MODEL_PARAMS_H
#define LH_SCHEMES_EC_MODEL_PARAMS_H

#include "model/scheme_entry.h"

int ec_model_check(const struct lh_model_scheme *scheme);
double ec_model_rto(const struct lh_model_scheme *scheme);
void ec_model_longhaul(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                       struct model_message *message);

void ec_model_defaults(struct lh_model_scheme *scheme);
bool ec_model_take(const struct model_parameter *parameter, struct lh_model_scheme *scheme, int *failed);
void ec_model_format(const struct lh_model_scheme *scheme, struct model_text *text);

/* m is a power of two, and at most k. */
uint32_t ec_mds_candidates(bool unspread, struct lh_model_scheme *out);
uint32_t ec_xor_candidates(bool unspread, struct lh_model_scheme *out);
double ec_mds_encode_rate(const struct lh_plan_question *question, const struct lh_model_scheme *scheme);
double ec_xor_encode_rate(const struct lh_plan_question *question, const struct lh_model_scheme *scheme);

#endif
