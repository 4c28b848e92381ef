/*
 * rtt.h - round-trip time from samples: smoothed, variance, minimum (RFC 6298 and RFC 8985).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_BASE_RTT_H
#define LH_BASE_RTT_H

#include <longhaul/types.h>

struct lh_rtt {
    lh_time smoothed_ns; /* 0: no sample yet */
    lh_time variance_ns;
    lh_time minimum_ns;
    lh_time latest_ns;
    uint64_t samples;
};

void lh_rtt_init(struct lh_rtt *rtt);
/* A sample of 0 counts as 1 ns. */
void lh_rtt_on_sample(struct lh_rtt *rtt, lh_time sample_ns);
/* smoothed + max(smoothed / 8, 4 * variance): after this long an answer is overdue. 0 without a sample. */
lh_time lh_rtt_overdue_ns(const struct lh_rtt *rtt);
/* How much later than its successors a packet may come and not count as lost: max(minimum / 8, 2 *
 * variance), at most smoothed / 2 (RFC 8985 section 6.2 takes minimum / 4 and adapts; we adapt by the
 * variance). 0 without a sample. */
lh_time lh_rtt_reorder_window_ns(const struct lh_rtt *rtt);

#endif
