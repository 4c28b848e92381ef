/*
 * predictor.h - when a message is delivered by bounded completion, and how much of it.
 *
 * A whole message is delivered as it arrives; one with losses a reordering window after the last packet that
 * came, or after END; and none later than the deadline, which cuts off what has not arrived. Each chunk
 * is sent once, so of what arrives in time the share of its loss is missing, but for what parity
 * recovers.
 *
 * Times are those of the other schemes: to the sender's receipt of DONE, though its request is done before.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_BOUNDED_PREDICTOR_H
#define LH_SCHEMES_BOUNDED_PREDICTOR_H

#include "model/predictor.h"

extern const struct model_predictor bounded_predictor;

#endif
