/*
 * wheel.h - timers in a hierarchical wheel (Varghese and Lauck, SOSP 1987): setting, canceling and expiry
 * cost the same for two timers and for two hundred thousand.
 *
 * Timers are numbers, 0 to count - 1, so that they take 12 bytes each and no pointer. One expires at the
 * first tick that is not before its time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_XP_WHEEL_H
#define LH_XP_WHEEL_H

#include <longhaul/types.h>

#define WHEEL_NONE   UINT32_MAX
#define WHEEL_LEVELS 4u
#define WHEEL_SLOTS  256u
/* Times further ahead than this many ticks are set to it: no timer of a deadline is. */
#define WHEEL_TICKS_MAX (UINT32_C(1) << 31)

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
