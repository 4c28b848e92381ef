/*
 * sampler.h - one completion time after another, by drawing only what is lost.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_SAMPLER_H
#define LH_MODEL_SAMPLER_H

#include <longhaul/model.h>

#include "base/prng.h"
#include "model/coded.h"
#include "model/draw.h"
#include "model/segments.h"
#include "model/terms.h"

struct model_sampler {
    struct lh_model_scheme scheme;
    struct model_terms terms;
    double log_loss; /* of a chunk */
    size_t cells;    /* bytes of scratch that a thread needs, 0 but for bursts and codes */
    union {
        struct model_repeat repeat;
        struct model_coded coded;
        struct model_segments segments;
    } of;
};

/* -LH_EINVAL, -LH_ERANGE as lh_model_predict. */
int model_sampler_start(struct model_sampler *sampler, const struct lh_model_path *path,
                        const struct lh_model_scheme *scheme);
/* Seconds. cells: sampler->cells bytes, aligned for uint32_t, zero before the first draw and not touched
 * between two. */
double model_sampler_draw(const struct model_sampler *sampler, struct lh_prng *prng, uint8_t *cells);

/* ---- its parts, by scheme ---------------------------------------------------------------------------- */

/* Excess over M T_inj in T_inj (repeat.h). From the last chunk backwards: the later a chunk started, the
 * fewer losses make it the last to arrive. Only those chunks are looked for that have been lost often enough
 * to be later than the latest so far, so few are. */
double model_draw_repeat(const struct model_repeat *repeat, double log_loss, double chunks,
                         struct lh_prng *prng);
/* The same on a link that loses in bursts: rows of lost chunks, of these what is lost again, and so on. Each
 * transmission of the message meets bursts of its own. */
double model_draw_repeat_bursts(const struct model_repeat *repeat, const struct model_loss *loss,
                                double chunks, struct lh_prng *prng);
/* Of a message when all was sent once. */
struct model_lacking {
    double chunks; /* that are lacking */
    double data;   /* data chunks that are missing in submessages that failed (bursts only) */
    double
        parity; /* chunks of it until the last submessage that did not fail was decodable (bursts only) */
};
/* With bursts each row of lost packets is put into the submessages it hits, in the order of the wire; that
 * takes cells. lacks: of the message, or of one of its segments. */
struct model_lacking model_draw_lacking(const struct model_sampler *sampler,
                                        const struct model_lacks *lacks, struct lh_prng *prng,
                                        uint8_t *cells);
size_t model_lacking_cells(const struct model_sampler *sampler);
/* Rounds that `chunks` take, on a link that loses in bursts; at least 1. */
double model_draw_rounds(const struct model_loss *loss, double chunks, struct lh_prng *prng);
/* Seconds of a message by go-back-N. */
double model_draw_go_back(const struct model_terms *terms, struct lh_prng *prng);

#endif
