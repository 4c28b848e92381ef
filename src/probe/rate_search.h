/*
 * rate_search.h - which rate to try next, to find how much a path carries.
 *
 * Rates grow by four until packets are lost that slower ones did not lose, or arrive slower than they were
 * sent. What arrives then is what the narrowest place lets through. Where that costs packets, a little less
 * is tried, and less again, until it no longer does.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PROBE_RATE_SEARCH_H
#define LH_PROBE_RATE_SEARCH_H

#include <longhaul/probe.h>

/* Slow enough for any link worth probing, fast enough that a few packets take little time. */
#define RATE_SEARCH_FIRST_BPS ((uint64_t)20 * 1000 * 1000)
/* Faster than any NIC; growing by four, 15 rounds. */
#define RATE_SEARCH_MOST_BPS      ((uint64_t)20 * 1000 * 1000 * 1000 * 1000)
#define RATE_SEARCH_CONFIRM_MAX   5u
#define RATE_SEARCH_SATURATED_MAX 3u

struct rate_search {
    uint64_t cap_bps;
    uint64_t offered_bps; /* to try next */
    double rate_bps;      /* the best that was seen to work; 0: none */
    double base_loss;     /* at the first rate: what has nothing to do with the rate */
    enum lh_probe_limit limit;
    uint32_t rounds, confirmed, saturated;
    bool confirming, done;
    bool again; /* the last train lost much: is that so? */
};

struct rate_outcome {
    double sent_bps;
    double delivered_bps;
    double loss;
    bool pushed_back;    /* the sending host pushed back */
    bool endpoint_drops; /* the receiving host dropped packets */
};

/* cap_bps 0: none. */
void rate_search_init(struct rate_search *search, uint64_t cap_bps);
void rate_search_on_outcome(struct rate_search *search, const struct rate_outcome *outcome);

#endif
