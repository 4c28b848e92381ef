/*
 * partial_arrival.h - how much parity a message waits for.
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
#ifndef LH_SCHEMES_EC_PARTIAL_ARRIVAL_H
#define LH_SCHEMES_EC_PARTIAL_ARRIVAL_H

#include "schemes/ec/missing.h"

struct ec_partial_arrival {
    double submessages;
    double larger;       /* of them, which come first */
    double block_groups; /* submessages of a block */
    double apart;
    unsigned rows;
    double log_open[2][MODEL_COUNT_MAX + 1]; /* log P(decodable with so many rows), by kind (missing.h) */
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

#endif
