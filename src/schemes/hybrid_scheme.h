/*
 * hybrid_scheme.h - the hybrid of retransmission and parity in the table of schemes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_HYBRID_SCHEME_H
#define LH_SCHEMES_HYBRID_SCHEME_H

#include "model/predictor.h"

extern const struct lh_scheme hybrid_scheme; /* "hybrid" */
extern const struct scheme_entry hybrid_entry;

/* ---- model params ---------------------------------------------------------------------------------- */

/*
 * The parameters of the hybrid scheme as the model and the planner use them
 * (predictor.h and hybrid_scheme.h of src/model describe each call).
 */

int hybrid_model_check(const struct lh_model_scheme *scheme);
void hybrid_model_defaults(struct lh_model_scheme *scheme);
/* The one with the defaults. */
uint32_t hybrid_candidates(bool unspread, struct lh_model_scheme *out);
double hybrid_encode_rate(const struct lh_plan_question *question, const struct lh_model_scheme *scheme);

#endif
