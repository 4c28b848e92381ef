/*
 * rounds.h - how often Longhaul's receiver asks for what submessages lack.
 *
 * All that one round lacks is asked for together, and the next round begins when the one before is over. So
 * what counts is the chance that all is there after r rounds, again a product over submessages. What arrives
 * of a chunk stays, from the first round on:
 *
 *   mds, ir   is asked for with a margin: one round is enough
 *   xor, ir   a class asks for all of its data that is missing, and can do without one when its parity is
 *             there
 *   a message of one chunk is that chunk, once a round
 *   sr        a submessage that failed is asked for whole, but what of it had arrived is there already
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_ROUNDS_H
#define LH_MODEL_ROUNDS_H

#include "model/lack.h"

struct model_rounds {
    struct {
        double count;  /* submessages of this kind (lack.h) */
        unsigned size; /* their data chunks */
        /* P(one failed and lacks d of its data); fallback sr */
        double missing[MODEL_COUNT_MAX + 1];
    } of[2];
    unsigned rows;
    double apart;    /* model_lacks_apart() */
    double log_none; /* log P(nothing has to be asked for) */
    struct model_loss loss;
    bool copies; /* of the only chunk */
    enum lh_model_kind kind;
    enum lh_model_fallback fallback;
    double stride; /* submessages of a block */
    double log_factorial[MODEL_COUNT_MAX + 2];
};

/* lacks: of the same. */
void model_rounds_start(struct model_rounds *rounds, const struct lh_model_scheme *scheme,
                        const struct model_loss *loss, double chunks, const struct model_lacks *lacks);
/* log P(complete after so many rounds); 0 rounds: nothing has to be asked for. */
double model_rounds_log(const struct model_rounds *rounds, double count);
/* Mean number of rounds beyond the first. */
double model_rounds_more(const struct model_rounds *rounds);
/* The smallest number of rounds after which at least this share of messages is complete. */
double model_rounds_quantile(const struct model_rounds *rounds, double share);

#endif
