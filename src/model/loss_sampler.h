/*
 * loss_sampler.h - drawing only what is lost.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_LOSS_SAMPLER_H
#define LH_MODEL_LOSS_SAMPLER_H

#include "base/prng.h"
#include "model/loss.h"

/* How many pass before the first that does not, each with the chance exp(log_pass): infinite when it is 1.
 * */
double model_draw_gap(struct lh_prng *prng, double log_pass);
/* How many of n, each with the chance p. Takes time with their number while few are expected. */
double model_draw_binomial(struct lh_prng *prng, double n, double p);

/* A row of lost packets. */
struct model_burst {
    double first;
    double last;
};

/* The rows of lost packets on a link, which is looked at in stretches of packets, numbered in their order
 * in time. Between two stretches nothing is sent, but time passes. */
struct model_bursts {
    const struct model_loss *loss;
    double log_enter;
    double log_stay;
    double at;   /* the last packet that was decided; -1: none */
    bool lost;   /* it is lost */
    bool untold; /* and no row with it was told */
};

/* loss is kept by its address. */
void model_bursts_start(struct model_bursts *bursts, const struct model_loss *loss);
/* A stretch begins with packet `from`, which is behind the last one's end. */
void model_bursts_skip(struct model_bursts *bursts, struct lh_prng *prng, double from);
/* The next row of the stretch that ends before `end`; false: there is none. */
bool model_bursts_next(struct model_bursts *bursts, struct lh_prng *prng, double end,
                       struct model_burst *row);

#endif
