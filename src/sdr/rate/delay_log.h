/*
 * delay_log.h - how long packets wait in queues: smoothed, and as a histogram with buckets of a quarter of an
 * octave. Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_RATE_DELAY_LOG_H
#define LH_SDR_RATE_DELAY_LOG_H

#include <longhaul/types.h>

#define DELAY_LOG_BUCKETS 192u /* up to 2^48 ns */
/* Of so many round trips jitter, and reports that were held back, leave one short; a queue that stands does
 * not. */
#define DELAY_LOG_RECENT 32u

struct delay_log {
    lh_time minimum_ns; /* shortest round trip; 0: none yet */
    lh_time smoothed_ns;
    lh_time recent_ns[2]; /* shortest round trips of the last DELAY_LOG_RECENT samples, and since */
    uint64_t samples;
    uint64_t counted;  /* of them: in buckets, which may have come after the first ones */
    uint32_t *buckets; /* DELAY_LOG_BUCKETS, zeroed, of the owner; NULL: no quantiles yet */
};

/* A round trip: what is above the shortest one is delay. */
void delay_log_add(struct delay_log *log, lh_time rtt_ns);
/* The shortest delay of the last DELAY_LOG_RECENT samples or up to twice as many; 0 before so many. */
lh_time delay_log_standing(const struct delay_log *log);
/* The delay that this share of the samples in buckets (0 to 1) do not exceed, up to a quarter of an octave; 0
 * without any. */
lh_time delay_log_quantile(const struct delay_log *log, double share);

#endif
