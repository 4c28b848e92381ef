/*
 * rate.h - a queue pair's rate by DCQCN, in 32 bytes: what congestion/dcqcn.h keeps in 80, packed between
 * events.
 *
 * Rates are in kbit/s and times in units of 8 ns (of pacing: of 1 ns), both in 32 bits. No time of DCQCN
 * lies further ahead than its longest interval, and none of pacing further than a packet takes; so one that
 * seems to has wrapped and is long past.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_XP_RATE_H
#define LH_XP_RATE_H

#include "congestion/dcqcn.h"

struct xp_rate {
    uint32_t rate_kbps, target_kbps;
    float alpha;
    uint32_t alpha_at, decrease_at, increase_at; /* units of 8 ns */
    uint32_t pace_at;                            /* ns: when the next packet may leave */
    uint8_t time_stage;
    uint8_t flags;
    uint16_t reserved;
};

_Static_assert(sizeof(struct xp_rate) == 32, "as in the OptiNIC paper, section 5.3.4");

/* What all queue pairs of an engine share. No byte counter. line_bps: 1 Mbit/s to 4 Tbit/s. */
struct xp_rate_config {
    struct dcqcn_config dcqcn;
    uint64_t line_bps;
};

/* The constants of dcqcn.h. */
void xp_rate_config_init(struct xp_rate_config *config, uint64_t line_bps);
void xp_rate_start(struct xp_rate *rate, const struct xp_rate_config *config, lh_time now);
/* A notification of congestion has come. */
void xp_rate_on_notification(struct xp_rate *rate, const struct xp_rate_config *config, lh_time now);
/* Whether a packet may leave now; else *next is when. */
bool xp_rate_may_send(const struct xp_rate *rate, const struct xp_rate_config *config, lh_time now,
                      lh_time *next);
/* One of that many bytes on the wire has left. */
void xp_rate_on_sent(struct xp_rate *rate, const struct xp_rate_config *config, uint32_t bytes,
                     lh_time now);
uint64_t xp_rate_bps(const struct xp_rate *rate, const struct xp_rate_config *config, lh_time now);

#endif
