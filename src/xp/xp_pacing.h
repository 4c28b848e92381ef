/*
 * xp_pacing.h - a queue pair's rate by DCQCN, in 32 bytes: what congestion/dcqcn.h keeps in 80, packed
 * between events.
 *
 * Rates are in kbit/s and times in units of 8 ns (of pacing: of 1 ns), both in 32 bits. No time of DCQCN
 * lies further ahead than its longest interval, and none of pacing further than a packet takes; so one that
 * seems to has wrapped and is long past.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_XP_XP_PACING_H
#define LH_XP_XP_PACING_H

#include <longhaul/types.h>

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

/* ---- wheel ----------------------------------------------------------------------------------------- */

/*
 * Timers in a hierarchical wheel (Varghese and Lauck, SOSP 1987): setting, canceling and expiry
 * cost the same for two timers and for two hundred thousand.
 *
 * Timers are numbers, 0 to count - 1, so that they take 12 bytes each and no pointer. One expires at the
 * first tick that is not before its time.
 */

#define WHEEL_NONE   UINT32_MAX
#define WHEEL_LEVELS 4u
#define WHEEL_SLOTS  256u

struct wheel_timer {
    uint32_t next, prev; /* of the same slot */
    uint32_t slot;       /* WHEEL_NONE: not set */
};

struct wheel {
    lh_time tick_ns;
    uint64_t tick; /* all before and including it have expired */
    uint32_t armed;
    uint32_t count;
    struct wheel_timer *timers; /* of the caller */
    uint32_t *due;              /* likewise: the tick of each, its low 32 bits */
    uint32_t heads[WHEEL_LEVELS * WHEEL_SLOTS];
    uint64_t used[WHEEL_LEVELS][WHEEL_SLOTS / 64];
    uint32_t expired; /* head of the list of timers that wheel_expired() has yet to tell */
};

void wheel_init(struct wheel *wheel, lh_time tick_ns, lh_time now, uint32_t count,
                struct wheel_timer *timers, uint32_t *due);
/* Sets a timer, whether it was set or not. now: for a wheel that was idle, and so was not asked for long. */
void wheel_set(struct wheel *wheel, uint32_t timer, lh_time at, lh_time now);
void wheel_cancel(struct wheel *wheel, uint32_t timer);
/* A timer that has expired by now, which is no longer set; WHEEL_NONE: there is none. */
uint32_t wheel_expired(struct wheel *wheel, lh_time now);
/* No timer expires before this time; LH_TIME_NEVER: none is set. It may be too early, not too late. */
lh_time wheel_next(const struct wheel *wheel);

#endif
