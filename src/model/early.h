/*
 * early.h - how much parity a message waits for.
 *
 * All data is sent first, then the parity of block after block; in a block row 0 of all its submessages, row
 * 1 and so on. The message is complete with the first chunk that makes each submessage decodable: without a
 * loss with the last data. So P(complete once j parity chunks were sent) is a product over submessages, each
 * of which has had a certain number of its rows by then, and from one j to the next one of them has one more.
 *
 * A message of one chunk is that chunk and copies of it, of which what arrived stays.
 *
 * With bursts each submessage counts for less than one (model_lacks_apart()).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_EARLY_H
#define LH_MODEL_EARLY_H

#include "model/lack.h"

struct model_early {
    double submessages;
    double larger;       /* of them, which come first */
    double block_groups; /* submessages of a block */
    double apart;
    unsigned rows;
    double log_open[2][MODEL_COUNT_MAX + 1]; /* log P(decodable with so many rows), by kind (lack.h) */
};

/* lacks: of the same. */
void model_early_start(struct model_early *early, const struct lh_model_scheme *scheme,
                       const struct model_loss *loss, double chunks, const struct model_lacks *lacks);
/* log P(complete when so many parity chunks were sent). */
double model_early_log(const struct model_early *early, double parity);
/* Mean number of parity chunks that are sent before the message is complete; all where it is not. */
double model_early_mean(const struct model_early *early);
/* The smallest number with which at least this share of messages is complete; infinite: there is none. */
double model_early_quantile(const struct model_early *early, double share);

#endif
