/*
 * predictor.h - how the completion time of a scheme is predicted: one struct of functions for each scheme,
 * and what is common to all of them.
 *
 * A *prediction* is one message on one path by one scheme, made ready. Its predictor keeps what it has
 * computed in `state`, which the caller owns: nothing is allocated. All times are seconds from the
 * injection of the first chunk. Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_PREDICTOR_H
#define LH_MODEL_PREDICTOR_H

#include <longhaul/model.h>

#include "base/prng.h"
#include "model/message.h"

#define MODEL_STATE_BYTES ((size_t)80 << 10)
#define MODEL_RTTS_MAX    1e6 /* of a timeout */

struct model_predictor;

struct model_prediction {
    const struct model_predictor *predictor;
    struct lh_model_scheme scheme;
    struct model_message message;
    double log_loss; /* of a chunk */
    size_t cells;    /* bytes of scratch that a thread needs to draw */
    _Alignas(64) unsigned char state[MODEL_STATE_BYTES];
};

struct model_predictor {
    /* Parameters other than the timeout: 0, -LH_EINVAL or -LH_ERANGE. NULL: the scheme has none. */
    int (*check)(const struct lh_model_scheme *scheme);
    /* Timeout of a scheme that does not set one, in RTT. NULL: the scheme has no timeout. */
    double (*rto_rtts)(const struct lh_model_scheme *scheme);
    /* Changes the message's times to those of Longhaul's machines. NULL: they are the paper's. */
    void (*longhaul)(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                     struct model_message *message);
    /* Computes the state, and cells; the rest of the prediction is set. NULL: there is no state. */
    int (*start)(struct model_prediction *prediction, const struct lh_model_path *path);
    double (*mean)(const struct model_prediction *prediction);
    double (*quantile)(const struct model_prediction *prediction, double share); /* 0 to below 1 */
    double (*cdf)(const struct model_prediction *prediction, double seconds);
    /* Mean of the bytes beyond the message sent once. */
    double (*overhead_bytes)(const struct model_prediction *prediction);
    /* The mean by the formula that the paper prints. NULL: it is the mean by the paper's timing. */
    double (*paper_mean)(const struct model_prediction *prediction);
    /* Erasure codes, else NULL: chunks of parity that are sent unasked, chance of a fallback. */
    double (*parity_chunks)(const struct model_prediction *prediction);
    double (*p_fallback)(const struct model_prediction *prediction);
    /* Mean share of the message that is delivered. NULL: all of it. */
    double (*delivered)(const struct model_prediction *prediction);
    /* One completion time. cells: prediction->cells bytes, aligned for uint32_t, zero before the first draw
     * and unchanged between two. */
    double (*draw)(const struct model_prediction *prediction, struct lh_prng *prng, uint8_t *cells);
};

/* Checks path and scheme, and fills in the message. -LH_EINVAL, -LH_ERANGE. */
int model_predictor_message(const struct model_predictor *predictor, const struct lh_model_path *path,
                            const struct lh_model_scheme *scheme, struct model_message *message);
/* The same, and starts the prediction. */
int model_predictor_start(const struct model_predictor *predictor, const struct lh_model_path *path,
                          const struct lh_model_scheme *scheme, struct model_prediction *prediction);
/* The timeout in RTT: the scheme's own, or the predictor's. */
double model_predictor_rto(const struct model_predictor *predictor, const struct lh_model_scheme *scheme);
int model_predictor_times(const struct model_predictor *predictor, const struct lh_model_path *path,
                          const struct lh_model_scheme *scheme, struct lh_model_times *times);

/* Range and timing of a scheme, whoever its predictor is. -LH_EINVAL, -LH_ERANGE. */
int model_predictor_check(const struct model_predictor *predictor, const struct lh_model_scheme *scheme);

#endif
