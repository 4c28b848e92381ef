/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <math.h>

#include "model/sampler.h"

/* See go_back.h for what happens. */
double model_draw_go_back(const struct model_terms *terms, struct lh_prng *prng)
{
    const struct model_loss *loss = &terms->loss;
    const double t = terms->packet_inject_s;
    const double log_pass = log1p(-loss->enter);
    const double log_stay = log1p(-1 / loss->burst);
    double seconds = terms->ideal_s;
    if (loss->packet <= 0)
        return seconds;
    double at = lh_prng_chance(prng, loss->packet) ? 0 : 1 + model_draw_gap(prng, log_pass);
    for (; at < terms->packets;
         at += 1 + model_draw_gap(prng, log_pass)) { /* as often as there is a loss */
        double behind = terms->packets - 1 - at;
        double more = model_draw_gap(prng, log_stay);
        seconds += more < behind ? terms->rtt_s + (2 + more) * t : terms->rto_s + t;
        seconds += model_draw_gap(prng, log(loss->packet)) * (terms->rto_s + t); /* lost again */
    }
    assert(seconds >= terms->ideal_s);
    return seconds;
}
