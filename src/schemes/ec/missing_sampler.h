/*
 * missing_sampler.h - what a message lacks when all chunks were sent once (missing.h), by drawing only
 * losses.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_EC_MISSING_SAMPLER_H
#define LH_SCHEMES_EC_MISSING_SAMPLER_H

#include "base/prng.h"
#include "schemes/ec/missing.h"

struct ec_missing_sample {
    double chunks; /* that are missing */
    double data;   /* data chunks that are missing in submessages that failed (bursts only) */
    double
        parity; /* chunks of it until the last submessage that did not fail was decodable (bursts only) */
};

/* With bursts each burst of lost packets is put into the submessages it hits, in the order of the wire;
 * that takes cells: so many bytes, aligned for uint32_t, zero before the first draw and unchanged between
 * two. missing: of the message, or of one of its segments. */
struct ec_missing_sample ec_missing_draw(const struct ec_missing *missing,
                                         const struct lh_model_scheme *scheme,
                                         const struct model_loss *loss, struct lh_prng *prng,
                                         uint8_t *cells);
size_t ec_missing_cells(const struct ec_missing *missing, const struct lh_model_scheme *scheme);
/* Rounds that `chunks` take, on a link that loses in bursts; at least 1. */
double ec_rounds_draw(const struct model_loss *loss, double chunks, struct lh_prng *prng);

#endif
