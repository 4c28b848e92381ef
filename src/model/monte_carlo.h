/*
 * monte_carlo.h - many samples by several threads, the same for any number of them; summaries of delays.
 *
 * The samples are cut into blocks, each with a generator of its own that depends on the seed and the
 * block's number only. Not pure: threads, and the scratch memory of each.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_MONTE_CARLO_H
#define LH_MODEL_MONTE_CARLO_H

#include <stddef.h>

#include <longhaul/types.h>

#include "model/predictor.h"

struct model_job {
    double (*sample)(const void *context, struct lh_prng *prng, void *scratch);
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

/* ---- delay summary --------------------------------------------------------------------------------- */

/* A row of times in a few numbers. */

struct model_delays {
    size_t samples;
    lh_time minimum_ns, p50_ns, p99_ns, maximum_ns; /* values that were measured: nearest rank */
    lh_time mean_ns;
    lh_time jitter_ns; /* mean distance of a sample from the one before (RFC 5481's IPDV, without sign) */
};

/* Of times of at most LH_LINK_TIME_MAX, in the order in which they were measured; sorts them. Without
 * samples all is zero. */
struct model_delays model_delays_of(lh_time *samples_ns, size_t count);

#endif
