/*
 * confidence.h - how sure a share is that was counted: 95 % intervals of a binomial proportion.
 *
 * Wilson's score interval (1927): unlike the normal approximation it is right when few or none were hit,
 * which is how packet loss usually looks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_CONFIDENCE_H
#define LH_MODEL_CONFIDENCE_H

struct model_confidence {
    double low, high;
};

/* Of a share of which `hits` of `draws` were seen, 0 <= hits <= draws. Both may be fractions: of draws that
 * depend on each other, the number of independent ones that tell as much. Without draws: 0 to 1. */
struct model_confidence model_confidence_of(double hits, double draws);

#endif
