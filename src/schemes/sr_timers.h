/*
 * timing.h - the spans that selective repeat waits, all of them multiples of the measured round trip.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_SR_TIMING_H
#define LH_SCHEMES_SR_TIMING_H

#include <longhaul/scheme.h>

#include "base/earlier.h"

/* Stands for the round trip until one was measured; the only absolute time here. Too short, it costs a few
 * early probes (they back off by doubling); the connection measures before its first transfer as a rule. */
#define SR_INITIAL_RTT_NS LH_NS_PER_MS

struct sr_timing {
    lh_time rtt_ns;
    lh_time overdue_ns; /* at least rtt_ns */
    lh_time window_ns;  /* of reordering: at least 1, at most overdue_ns */
    bool measured;
};

struct sr_timing sr_timing_of(const struct lh_path_view *path);

/* What arrives steadily is acknowledged that often, at least. */
static inline lh_time sr_ack_spacing(const struct sr_timing *timing)
{
    return timing->rtt_ns / 4;
}

/* moment + span, where LH_TIME_NEVER stays what it is and nothing wraps. */
static inline lh_time sr_after(lh_time moment, lh_time span)
{
    return moment > LH_TIME_NEVER - span ? LH_TIME_NEVER : moment + span;
}

/* Until when arrivals have been looked at, for what does not come the way of the chunks. */
static inline lh_time sr_caught_up(const struct lh_receiver_view *view)
{
    return view->caught_up_ns == 0 ? view->now : lh_earlier(view->caught_up_ns, view->now);
}

/* Chunks of one word that lie before `limit`, as a mask. */
static inline uint64_t sr_word_below(uint32_t word, uint32_t limit)
{
    uint64_t first = (uint64_t)word * 64;
    if (limit >= first + 64)
        return UINT64_MAX;
    return limit <= first ? 0 : ((uint64_t)1 << (limit - first)) - 1;
}

/* Atomic because other threads read the counters meanwhile, and other transfers may count too. */
static inline void sr_count_many(uint64_t *counter, uint64_t many)
{
    if (many > 0)
        (void)__atomic_fetch_add(counter, many, __ATOMIC_RELAXED);
}

static inline void sr_count(uint64_t *counter)
{
    sr_count_many(counter, 1);
}

#endif
