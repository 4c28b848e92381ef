/*
 * predictor.h - how long a message takes by the hybrid scheme (docs/hybrid.md).
 *
 * The tail is what is injected in the last report time, a round trip and a reordering window, before the
 * end, or all of a message that is shorter. Losses before it are repaired while it is injected, and cost
 * their share of the link. Of the tail parity follows the data, block after block, row by row; the
 * message is complete with the first chunk that makes each submessage decodable (ec/partial_arrival.h).
 * Where parity does not suffice, a report time passes until more of it is there; that it suffices then is
 * assumed.
 *
 * What was lost before the tail and repaired in it is in flight at the end, too, and has its own parity,
 * which is sent first.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_HYBRID_PREDICTOR_H
#define LH_SCHEMES_HYBRID_PREDICTOR_H

#include "model/predictor.h"

extern const struct model_predictor hybrid_predictor;

#endif
