/*
 * rto.h - the timeouts of sr-rto: each chunk has one, RTO after its injection (SDR-RDMA paper, 4.1.1).
 *
 * Chunks injected within RTO / 64 of each other share a group, which expires RTO after its last injection:
 * no chunk expires early, and none more than RTO / 64 late. Groups are numbered; the number is the stamp of
 * their chunks (ledger.h).
 *
 * One timer:
 *   RTO   of the oldest group: (1 + alpha) round trips, at least overdue_ns, in which what waits for the pace
 *         is counted, and the time between two ACKs. What of it is still under way is lost.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_SR_RTO_H
#define LH_SCHEMES_SR_RTO_H

#include "schemes/sr/ledger.h"
#include "schemes/sr/timing.h"

#define SR_RTO_GROUPS                                                                                      \
    128u /* 65 can be alive while the round trip stays the same; when full, the newest grows */

struct sr_rto_group {
    lh_time first_ns;
    lh_time last_ns;
    uint32_t low; /* lowest and highest chunk */
    uint32_t high;
};

struct sr_rto {
    uint32_t oldest; /* number of the oldest group alive; groups are numbered from 1 */
    uint32_t next;   /* number of the next group */
    uint32_t alpha_hundredths;
    struct sr_rto_group groups[SR_RTO_GROUPS];
};

void sr_rto_init(struct sr_rto *rto, uint32_t alpha_hundredths);
lh_time sr_rto_span(const struct sr_rto *rto, const struct sr_timing *timing);
/* The group of what is injected now. */
uint32_t sr_rto_stamp(struct sr_rto *rto, const struct sr_timing *timing, lh_time now);
void sr_rto_on_injection(struct sr_rto *rto, struct sr_run run, lh_time now);
lh_time sr_rto_expiry(const struct sr_rto *rto, const struct sr_timing *timing);
/* Moves what has expired at `now` to the lost; returns how many chunks. */
uint32_t sr_rto_on_expired(struct sr_rto *rto, struct sr_ledger *ledger, const struct sr_timing *timing,
                           lh_time now);

#endif
