/*
 * predictor.h - how long a message takes by an erasure code: by the paper's timing (paper_times.h), or by
 * that of Longhaul's machines (message_times.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_EC_PREDICTOR_H
#define LH_SCHEMES_EC_PREDICTOR_H

#include "model/predictor.h"

extern const struct model_predictor ec_predictor;

#endif
