/*
 * delay_summary.h - a row of times in a few numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_DELAY_SUMMARY_H
#define LH_MODEL_DELAY_SUMMARY_H

#include <longhaul/types.h>

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
