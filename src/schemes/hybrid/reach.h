/*
 * reach.h - what was injected within the last so many eighths of a round trip: `tail=` limits parity to that.
 *
 * Each injection bears a stamp that only grows (sr/marker.h). The stamp of the moment is sampled every
 * eighth of a round trip, so the limit is met to an eighth.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_HYBRID_REACH_H
#define LH_SCHEMES_HYBRID_REACH_H

#include "schemes/hybrid/params.h"

struct hybrid_reach {
    lh_time next_ns; /* when the next sample is due */
    uint32_t count;  /* samples ever */
    uint32_t stamps[HYBRID_TAIL_MAX];
};

void hybrid_reach_init(struct hybrid_reach *reach);
/* Chunks are injected now, with this stamp. */
void hybrid_reach_on_injection(struct hybrid_reach *reach, uint32_t stamp, lh_time rtt_ns, lh_time now);
/* What has a stamp below this was injected more than `eighths` of a round trip ago, at the latest
 * injection. 0 for HYBRID_TAIL_ALL, UINT32_MAX for 0. */
uint32_t hybrid_reach_from(const struct hybrid_reach *reach, uint32_t eighths);

#endif
