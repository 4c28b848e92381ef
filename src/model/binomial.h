/*
 * binomial.h - how many of n are lost: probabilities that keep their digits far out in the tails.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_BINOMIAL_H
#define LH_MODEL_BINOMIAL_H

#include "model/loss.h"

#define MODEL_COUNT_MAX 255u /* chunks of a submessage with its parity: a symbol of the code is a byte */

/* P(X = x) for x = 0 ... n of X ~ Binomial(n, p), into chance[n + 1]; n at most MODEL_COUNT_MAX. */
void model_binomial(unsigned n, double p, double *chance);
/* P(X = x) of one x, for any n: -infinity where it is 0. */
double model_binomial_log(double n, double x, double p);
/* That many or fewer of n, with the chance `share` (0 to below 1), where the mean is that. */
double model_binomial_quantile(double mean, double n, double share);

/* P(X = x), X of n chunks being lost that are sent `between` packets apart, into chance[n + 1]. With bursts,
 * exact: the state of the link after each chunk is followed. */
void model_lost_chunks(const struct model_loss *loss, unsigned n, double between, double *chance);

/* The same for one n after the other: with bursts, each costs as much as what it adds. */
struct model_lost {
    const struct model_loss *loss; /* the caller's: it stays */
    unsigned n;
    double next[2][2][2];                    /* with bursts: of a chunk, by the packet before it */
    double of_state[2][MODEL_COUNT_MAX + 1]; /* and by the last packet so far */
};
void model_lost_start(struct model_lost *lost, const struct model_loss *loss, double between);
/* One chunk more; at most MODEL_COUNT_MAX. */
void model_lost_more(struct model_lost *lost);
/* P(X = x), X of lost->n. */
void model_lost_chances(const struct model_lost *lost, double *chance);

#endif
