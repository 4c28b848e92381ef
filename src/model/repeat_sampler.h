/*
 * repeat_sampler.h - completion times of selective repeat (repeat.h), one after another, by drawing only
 * what is lost.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_REPEAT_SAMPLER_H
#define LH_MODEL_REPEAT_SAMPLER_H

#include "base/prng.h"
#include "model/repeat.h"

/* Excess over M T_inj in T_inj (repeat.h). From the last chunk backwards: the later a chunk started, the
 * fewer losses make it the last to arrive. Only those chunks are looked for that have been lost often
 * enough to be later than the latest so far, so few are. */
double model_draw_repeat(const struct model_repeat *repeat, double log_loss, double chunks,
                         struct lh_prng *prng);
/* The same on a link that loses in bursts: bursts of lost chunks, of these what is lost again, and so on.
 * Each transmission of the message meets bursts of its own. */
double model_draw_repeat_bursts(const struct model_repeat *repeat, const struct model_loss *loss,
                                double chunks, struct lh_prng *prng);

#endif
