/*
 * strength.h - how much parity makes a submessage safe: pure arithmetic.
 *
 * Of `sent` chunks of one submessage, data and parity, any `needed` suffice. A chunk is lost with `loss`;
 * losses come in bursts whose lengths are geometric and of mean `burst` as far as they hit this
 * submessage (1: each by itself). Without bursts the number of losses is Binomial(sent, loss); with
 * bursts it is the geometric Poisson (Polya-Aeppli) distribution: bursts arrive as a Poisson process.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_HYBRID_STRENGTH_H
#define LH_SCHEMES_HYBRID_STRENGTH_H

#include <stdint.h>

struct hybrid_loss {
    double chunk; /* 0 to below 1 */
    double burst; /* at least 1 */
};

/* The chance that of `sent` chunks fewer than `needed` arrive. */
double hybrid_failure(const struct hybrid_loss *loss, uint32_t sent, uint32_t needed);
/* The least number of chunks that must follow `in_flight` others so that this chance is at most `failure`; at
 * most `most`. 0 when nothing is needed. */
uint32_t hybrid_strength(const struct hybrid_loss *loss, uint32_t in_flight, uint32_t needed,
                         double failure, uint32_t most);

#endif
