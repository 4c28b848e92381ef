/*
 * ec_arrival_model.h - the time until enough rows of a message have arrived, and its rounds of requests.
 *
 * All data is sent first, then the parity of block after block; in a block row 0 of all its submessages,
 * row 1 and so on. The message is complete with the first chunk that makes each submessage decodable:
 * without a loss with the last data. So P(complete once j parity chunks were sent) is a product over
 * submessages, each of which has had a certain number of its rows by then, and from one j to the next one
 * of them has one more.
 *
 * A message of one chunk is that chunk and copies of it, of which what arrived stays.
 *
 * With bursts each submessage counts for less than one (ec_missing_apart()).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_EC_ARRIVAL_MODEL_H
#define LH_SCHEMES_EC_ARRIVAL_MODEL_H

#include "model/repeat_model.h"
#include "schemes/ec_missing.h"

struct ec_partial_arrival {
    double submessages;
    double larger;       /* of them, which come first */
    double block_groups; /* submessages of a block */
    double apart;
    unsigned rows;
    /* log P(decodable with so many rows), by kind (ec_missing.h) */
    double log_open[2][MODEL_COUNT_MAX + 1];
};

/* missing: of the same. */
void ec_partial_start(struct ec_partial_arrival *partial, const struct lh_model_scheme *scheme,
                      const struct model_loss *loss, double chunks, const struct ec_missing *missing);
/* log P(complete when so many parity chunks were sent). */
double ec_partial_log(const struct ec_partial_arrival *partial, double parity);
/* Mean number of parity chunks that are sent before the message is complete; all where it is not. */
double ec_partial_mean(const struct ec_partial_arrival *partial);
/* The smallest number with which at least this share of messages is complete; infinite: there is none. */
double ec_partial_quantile(const struct ec_partial_arrival *partial, double share);

/* ---- request rounds -------------------------------------------------------------------------------- */

/*
 * How often Longhaul's receiver asks for what submessages lack.
 *
 * All that one round lacks is asked for together, and the next round begins when the one before is over. So
 * what counts is the chance that all is there after r rounds, again a product over submessages. What
 * arrives of a chunk stays, from the first round on:
 *
 *   mds, ir   is asked for with a margin, so one round is enough, as long as there are fresh rows for it
 *             (ec_fresh_rows()); beyond them the missing data is asked for, each round
 *   xor, ir   a class asks for all of its data that is missing, and can do without one when its parity is
 *             there
 *   a message of one chunk is that chunk, once a round
 *   sr        a submessage that failed is asked for whole, but what of it had arrived is there already
 */

struct ec_rounds {
    struct {
        double count;  /* submessages of this kind (ec_missing.h) */
        unsigned size; /* their data chunks */
        /* Fallback sr: P(one failed and lacks d of its data). mds, ir: P(d of its data were lost at first) */
        double missing[MODEL_COUNT_MAX + 1];
    } of[2];
    unsigned rows;
    unsigned fresh;                           /* mds, ir: further rows, which the first round asks for */
    double fewer_parity[MODEL_COUNT_MAX + 2]; /* mds, ir: P(fewer than n of all these rows arrive) */
    double apart;                             /* ec_missing_apart() */
    double log_none;                          /* log P(nothing has to be asked for) */
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

/* ---- segment times --------------------------------------------------------------------------------- */

/*
 * The time of a message by an erasure code as Longhaul's machines run it.
 *
 * Data and then parity are injected. The message is complete with the first chunk that is enough
 *. When all of them are not, the receiver asks beta round trips after the end, or a
 * reordering window where that is longer, and what is asked for follows; each further round
 * costs a round trip and a window. What is asked for takes its mean time of the link, in
 * the distribution as well.
 */

struct ec_segment_times {
    double inject_s;  /* T_inj */
    double sent_s;    /* a message that needs no parity is complete */
    double asked_s;   /* asked_s + N T_inj: N chunks were asked for, and one round was enough */
    double round_s;   /* each round beyond the first */
    double requested; /* mean of N when there is a fallback */
    double p_fallback;
    struct ec_missing missing;
    struct ec_partial_arrival partial;
    struct ec_rounds rounds;
};

void ec_segment_start(struct ec_segment_times *code, const struct lh_model_scheme *scheme,
                      const struct model_message *message);
double ec_segment_mean(const struct ec_segment_times *code);
double ec_segment_cdf(const struct ec_segment_times *code, double seconds);
double ec_segment_quantile(const struct ec_segment_times *code, double share);

#endif
