/*
 * ec_missing.h - the chunks that submessages miss after each chunk was sent once: distribution and samples.
 *
 * A message of M chunks is ceil(M / k) submessages whose sizes differ by at most one. Each has `rows`
 * chunks of parity: m, but at most one more than data (mds) or as many (xor); a message of one chunk is
 * sent up to three times instead. (Where M is a multiple of k this is the paper's M / k and M m / k.)
 *
 * A submessage that cannot be decoded falls back (SDR-RDMA paper, appendix B: more than m of its chunks are
 * lost, mds; more than one of a class, xor). It then lacks all of its data (fallback sr), or as many chunks
 * as are needed until it can be decoded (ir).
 *
 * Its generating function is E[z^lack] = 1 - (1 - z) * sum over y of P(lack > y) z^y: without cancellation.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_EC_MISSING_H
#define LH_SCHEMES_EC_MISSING_H

#include <longhaul/model.h>

#include "base/prng.h"
#include "model/loss_model.h"

struct ec_missing_kind {
    double count;                      /* submessages of this kind */
    unsigned size;                     /* their data chunks */
    unsigned maximum;                  /* chunks that one may lack */
    double above[MODEL_COUNT_MAX + 1]; /* P(lack > y) for y < most; [0]: the chance of a fallback */
};

struct ec_missing {
    double submessages;
    double parity_chunks;           /* of the message */
    unsigned rows;                  /* of a submessage */
    struct ec_missing_kind kind[2]; /* the larger ones, and those of one chunk less; the second may be 0 */
    double mean;                    /* E[N], N: the chunks that all lack together */
    double variance;                /* of N */
    double log_none;                /* log P(N = 0) */
    double stride;                  /* submessages of a block, which share it chunk by chunk */
};

/* How many independent submessages one counts for, at most 1. Where a row of lost chunks hits all
 * submessages of a block, they fail together: of G, a row of B chunks in the mean makes (G / B) / (1 - (1 -
 * 1 / B)^G). That is the chance that one of them gets more than m of a row, over the chance that a certain
 * one does, rows having geometric lengths. */
double ec_missing_apart(const struct ec_missing *missing, const struct model_loss *loss);

void ec_missing_of(const struct lh_model_scheme *scheme, const struct model_loss *loss, double chunks,
                   struct ec_missing *missing);
/* The chance that one of k + m chunks falls back (appendix B), for independent loss. */
double ec_missing_paper(const struct lh_model_scheme *scheme, double chunk_loss);

/* log E[z^N] and the derivative of E[z^N], at z = 1 - w. */
double ec_missing_log(const struct ec_missing *missing, double w);
double ec_missing_slope(const struct ec_missing *missing, double w);

/* ---- missing sampler ------------------------------------------------------------------------------- */

/*
 * What a message lacks when all chunks were sent once, by drawing only losses.
 */

struct ec_missing_sample {
    double chunks; /* that are missing */
    double data;   /* data chunks that are missing in submessages that failed (bursts only) */
    double
        parity; /* chunks of it until the last submessage that did not fail was decodable (bursts only) */
};

/* With bursts each burst of lost packets is put into the submessages it hits, in the order of the wire;
 * that takes cells: so many bytes, aligned for uint32_t, zero before the first draw and unchanged between
 * two. missing: of the message, or of one of its segments. */
struct ec_missing_sample ec_missing_sample_one(const struct ec_missing *missing,
                                               const struct lh_model_scheme *scheme,
                                               const struct model_loss *loss, struct lh_prng *prng,
                                               uint8_t *cells);
size_t ec_missing_cells(const struct ec_missing *missing, const struct lh_model_scheme *scheme);
/* Rounds that `chunks` take, on a link that loses in bursts; at least 1. */
double ec_rounds_sample(const struct model_loss *loss, double chunks, struct lh_prng *prng);

#endif
