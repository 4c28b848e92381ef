/*
 * predictor.h - how long a message takes by selective repeat (model/repeat.h), after a timeout or after a
 * report.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_SR_PREDICTOR_H
#define LH_SCHEMES_SR_PREDICTOR_H

#include "model/parameter.h"
#include "model/predictor.h"

extern const struct model_predictor sr_nack_predictor;
extern const struct model_predictor sr_rto_predictor;

/* sr-rto's alpha: the timeout is 1 + alpha round trips (scheme_entry.h). */
bool sr_rto_take(const struct model_parameter *parameter, struct lh_model_scheme *scheme, int *failed);
void sr_rto_format(const struct lh_model_scheme *scheme, struct model_text *text);

#endif
