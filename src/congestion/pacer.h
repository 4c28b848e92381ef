/*
 * pacer.h - a token bucket: how many bytes may leave now, at a rate.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONGESTION_PACER_H
#define LH_CONGESTION_PACER_H

#include <longhaul/types.h>

struct pacer {
    uint64_t rate_bps;       /* 0: no limit */
    uint64_t burst_bytes;    /* that may leave at once after a pause */
    lh_time free_ns;         /* when the bucket is full again, and */
    uint64_t free_remainder; /* this much later, in 1 / rate_bps of a nanosecond */
};

void pacer_init(struct pacer *pacer, uint64_t rate_bps, uint64_t burst_bytes);
/* Another rate and burst from now on. What may leave at once stays, but for what exceeds the new burst. */
void pacer_change(struct pacer *pacer, lh_time now, uint64_t rate_bps, uint64_t burst_bytes);
/* Bytes that may leave at `now`; UINT64_MAX without a limit. */
uint64_t pacer_allowance(const struct pacer *pacer, lh_time now);
/* No more than that may leave at once now, whatever has passed before. */
void pacer_bound(struct pacer *pacer, lh_time now, uint64_t bytes);
/* Bytes left. May exceed the allowance by less than a packet: the next ones wait longer. */
void pacer_on_sent(struct pacer *pacer, lh_time now, uint64_t bytes);
/* Some of those bytes did not leave after all, because the fabric took no more. */
void pacer_on_refused(struct pacer *pacer, uint64_t bytes);
/* When that many bytes may leave; what exceeds burst_bytes after so much of it has left. */
lh_time pacer_ready(const struct pacer *pacer, lh_time now, uint64_t bytes);

#endif
