/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/rate/delay_log.h"

#include "base/earlier.h"

#define QUARTERS_LOG 2u
#define SMOOTHING    8

/* Below 4 ns each value has a bucket; from there on four an octave. */
static uint32_t bucket_of(lh_time delay_ns)
{
    if (delay_ns < 1u << QUARTERS_LOG)
        return (uint32_t)delay_ns;
    uint32_t octave = 63u - (uint32_t)__builtin_clzll(delay_ns);
    uint32_t quarter = (uint32_t)(delay_ns >> (octave - QUARTERS_LOG)) & ((1u << QUARTERS_LOG) - 1);
    uint32_t bucket = ((octave - QUARTERS_LOG + 1) << QUARTERS_LOG) + quarter;
    return bucket < DELAY_LOG_BUCKETS ? bucket : DELAY_LOG_BUCKETS - 1;
}

/* The longest delay of a bucket. */
static lh_time end_of(uint32_t bucket)
{
    if (bucket < 1u << QUARTERS_LOG)
        return bucket;
    uint32_t shift = (bucket >> QUARTERS_LOG) - 1;
    lh_time first = (lh_time)((1u << QUARTERS_LOG) + (bucket & ((1u << QUARTERS_LOG) - 1))) << shift;
    return first + ((lh_time)1 << shift) - 1;
}

static void add_recent(struct delay_log *log, lh_time rtt_ns)
{
    bool first = log->samples % DELAY_LOG_RECENT == 0;
    if (first)
        log->recent_ns[0] = log->recent_ns[1];
    log->recent_ns[1] = first ? rtt_ns : lh_earlier(log->recent_ns[1], rtt_ns);
}

void delay_log_add(struct delay_log *log, lh_time rtt_ns)
{
    if (log->minimum_ns == 0 || rtt_ns < log->minimum_ns)
        log->minimum_ns = rtt_ns;
    lh_time delay_ns = rtt_ns - log->minimum_ns;
    log->smoothed_ns = log->samples == 0
                           ? delay_ns
                           : log->smoothed_ns - log->smoothed_ns / SMOOTHING + delay_ns / SMOOTHING;
    add_recent(log, rtt_ns);
    log->samples++;
    if (log->buckets != NULL) {
        log->buckets[bucket_of(delay_ns)]++;
        log->counted++;
    }
}

lh_time delay_log_standing(const struct delay_log *log)
{
    if (log->samples < DELAY_LOG_RECENT)
        return 0;
    /* The first of these are all there is. */
    bool whole = log->samples % DELAY_LOG_RECENT == 0;
    lh_time shortest_ns = whole ? log->recent_ns[1] : lh_earlier(log->recent_ns[0], log->recent_ns[1]);
    return shortest_ns - log->minimum_ns;
}

lh_time delay_log_quantile(const struct delay_log *log, double share)
{
    double wanted = share * (double)log->counted;
    uint64_t seen = 0;
    for (uint32_t i = 0; i < DELAY_LOG_BUCKETS && log->counted > 0; i++) {
        seen += log->buckets[i];
        if ((double)seen >= wanted)
            return end_of(i);
    }
    return 0;
}
