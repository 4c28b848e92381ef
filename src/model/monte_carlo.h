/*
 * monte_carlo.h - many samples by several threads, the same for any number of them.
 *
 * The samples are cut into blocks, each with a generator of its own that depends on the seed and the
 * block's number only. Not pure: threads, and the scratch memory of each.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_MONTE_CARLO_H
#define LH_MODEL_MONTE_CARLO_H

#include <stddef.h>

#include "model/predictor.h"

#define MODEL_THREADS_MAX 256u
#define MODEL_BLOCK       128u

struct model_job {
    double (*draw)(const void *context, struct lh_prng *prng, void *scratch);
    const void *context;
    size_t scratch_bytes; /* of each thread, all zero at first; may be 0 */
};

/* -LH_EINVAL: no thread, or over MODEL_THREADS_MAX; or no room for results. -LH_ENOMEM. A thread that
 * cannot be started is done without. */
int model_monte_carlo(const struct model_job *job, uint64_t seed, uint32_t threads, double *results,
                      size_t count);
/* Completion times of a message; and of a collective, each of whose messages is the prediction's. */
int model_sample(const struct model_prediction *prediction, uint64_t seed, uint32_t threads,
                 double *seconds, size_t count);
int model_sample_collective(const struct model_prediction *prediction, enum lh_model_collective kind,
                            uint32_t datacenters, uint64_t seed, uint32_t threads, double *seconds,
                            size_t count);

#endif
