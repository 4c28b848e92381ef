/*
 * request_rounds.h - how often Longhaul's receiver asks for what submessages lack.
 *
 * All that one round lacks is asked for together, and the next round begins when the one before is over. So
 * what counts is the chance that all is there after r rounds, again a product over submessages. What
 * arrives of a chunk stays, from the first round on:
 *
 *   mds, ir   is asked for with a margin: one round is enough
 *   xor, ir   a class asks for all of its data that is missing, and can do without one when its parity is
 *             there
 *   a message of one chunk is that chunk, once a round
 *   sr        a submessage that failed is asked for whole, but what of it had arrived is there already
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_EC_REQUEST_ROUNDS_H
#define LH_SCHEMES_EC_REQUEST_ROUNDS_H

#include "schemes/ec/missing.h"

struct ec_rounds {
    struct {
        double count;  /* submessages of this kind (missing.h) */
        unsigned size; /* their data chunks */
        /* P(one failed and lacks d of its data); fallback sr */
        double missing[MODEL_COUNT_MAX + 1];
    } of[2];
    unsigned rows;
    double apart;    /* ec_missing_apart() */
    double log_none; /* log P(nothing has to be asked for) */
    struct model_loss loss;
    bool copies; /* of the only chunk */
    enum lh_model_kind kind;
    enum lh_model_fallback fallback;
    double stride; /* submessages of a block */
    double log_factorial[MODEL_COUNT_MAX + 2];
};

/* missing: of the same. */
void ec_rounds_start(struct ec_rounds *rounds, const struct lh_model_scheme *scheme,
                     const struct model_loss *loss, double chunks, const struct ec_missing *missing);
/* log P(complete after so many rounds); 0 rounds: nothing has to be asked for. */
double ec_rounds_log(const struct ec_rounds *rounds, double count);
/* Mean number of rounds beyond the first. */
double ec_rounds_more(const struct ec_rounds *rounds);
/* The smallest number of rounds after which at least this share of messages is complete. */
double ec_rounds_quantile(const struct ec_rounds *rounds, double share);

#endif
