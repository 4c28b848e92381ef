/*
 * rtt.c - smoothed round-trip time and variance (RFC 6298 section 2, alpha = 1/8, beta = 1/4).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/rtt.h"

#include <assert.h>

#include "base/min_max.h"

/* Samples are made from a peer's clock echo, so any value may come: above this (36 years) sums would wrap.
 */
#define SAMPLE_MAX_NS (LH_TIME_NEVER / 16)

void lh_rtt_init(struct lh_rtt *rtt)
{
    *rtt = (struct lh_rtt){0};
}

void lh_rtt_on_sample(struct lh_rtt *rtt, lh_time sample_ns)
{
    lh_time sample = lh_min(lh_max(sample_ns, 1), SAMPLE_MAX_NS);
    rtt->latest_ns = sample;
    if (rtt->samples++ == 0) {
        rtt->smoothed_ns = sample;
        rtt->variance_ns = sample / 2;
        rtt->minimum_ns = sample;
        return;
    }
    lh_time distance = lh_max(rtt->smoothed_ns, sample) - lh_min(rtt->smoothed_ns, sample);
    rtt->variance_ns = (3 * rtt->variance_ns + distance) / 4;
    rtt->smoothed_ns = (7 * rtt->smoothed_ns + sample) / 8;
    rtt->minimum_ns = lh_min(rtt->minimum_ns, sample);
    assert(rtt->smoothed_ns >= rtt->minimum_ns && rtt->smoothed_ns <= SAMPLE_MAX_NS);
}

lh_time lh_rtt_overdue_ns(const struct lh_rtt *rtt)
{
    return rtt->smoothed_ns + lh_max(rtt->smoothed_ns / 8, 4 * rtt->variance_ns);
}

lh_time lh_rtt_reorder_window_ns(const struct lh_rtt *rtt)
{
    return lh_min(lh_max(rtt->minimum_ns / 8, 2 * rtt->variance_ns), rtt->smoothed_ns / 2);
}
