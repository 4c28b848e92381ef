/*
 * idle.h - when memory is given back: not used for STORE_IDLE_NS. Pure.
 *
 * Timer: at. Runs while memory may be out; each look moves it on while there were uses since the last one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_STORE_IDLE_H
#define LH_STORE_IDLE_H

#include <stdbool.h>

#include <longhaul/types.h>

/* How long an owner keeps what it does not use. */
#define STORE_IDLE_NS LH_NS_PER_S

struct idle {
    uint32_t uses;  /* wraps */
    uint32_t noted; /* uses when `at` was set */
    lh_time at;     /* LH_TIME_NEVER: nothing to be given back; 0: to be set */
};

static inline void idle_init(struct idle *idle)
{
    *idle = (struct idle){.at = LH_TIME_NEVER};
}

/* Whenever memory is taken, or is not needed any more. */
static inline void idle_note(struct idle *idle)
{
    idle->uses++;
    if (idle->at == LH_TIME_NEVER)
        idle->at = 0;
}

/* True when what is not in use is to be given back: no other look is due then before the next use. */
static inline bool idle_is_over(struct idle *idle, lh_time now)
{
    if (idle->at == 0 || (idle->at <= now && idle->uses != idle->noted)) {
        idle->noted = idle->uses;
        idle->at = now + STORE_IDLE_NS;
    }
    if (idle->at > now)
        return false;
    idle->at = LH_TIME_NEVER;
    return true;
}

#endif
