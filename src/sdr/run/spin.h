/*
 * spin.h - whether a thread that has nothing to do spins for a while before it sleeps. Pure.
 *
 * Spinning saves a wake-up when work comes soon, and costs the CPU when it does not. What counts is how the
 * last pauses ended: where most were longer than the spin, as between the bursts of a paced sender, the next
 * is not spun through. A pause that was slept through seems longer by the wake-ups of both sides.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_SPIN_H
#define LH_SDR_SPIN_H

#include <stdbool.h>

#include <longhaul/types.h>

#define SPIN_NS       (50 * LH_NS_PER_US) /* default: about what a wake-up costs on both sides together */
#define SPIN_MAX_NS   LH_NS_PER_S
#define SPIN_PAUSE_NS (5 * LH_NS_PER_US) /* shorter ones are none */
#define SPIN_ALWAYS   256u

struct spin {
    lh_time spin_ns; /* 0: never */
    lh_time idle_since_ns;
    unsigned short_pauses; /* share of them, smoothed, of SPIN_ALWAYS */
    bool slept;            /* in this pause */
};

static inline void spin_init(struct spin *spin, lh_time spin_ns)
{
    *spin = (struct spin){.spin_ns = spin_ns, .short_pauses = SPIN_ALWAYS};
}

/* Of what a user asked for: 0 is the default, LH_NO_SPIN none. */
static inline lh_time spin_ns_of(lh_time wanted_ns)
{
    return wanted_ns == LH_NO_SPIN ? 0 : wanted_ns ? wanted_ns : SPIN_NS;
}

/* There was work in a round that ended now. */
static inline void spin_on_work(struct spin *spin, lh_time now)
{
    lh_time pause_ns = now > spin->idle_since_ns ? now - spin->idle_since_ns : 0;
    if (pause_ns >= SPIN_PAUSE_NS && spin->idle_since_ns != 0) {
        bool is_short = pause_ns < (spin->slept ? 2 : 1) * spin->spin_ns;
        spin->short_pauses = (7 * spin->short_pauses + (is_short ? SPIN_ALWAYS + 7 : 0)) / 8;
    }
    spin->idle_since_ns = now;
    spin->slept = false;
}

/* There was none. Whether to sleep now. */
static inline bool spin_is_over(const struct spin *spin, lh_time now)
{
    return spin->short_pauses < SPIN_ALWAYS / 4 * 3 || now - spin->idle_since_ns >= spin->spin_ns;
}

static inline void spin_on_sleep(struct spin *spin)
{
    spin->slept = true;
}

#endif
