/*
 * settle.h - what was known a reordering window ago: a ring of samples, of which the old ones settle.
 *
 * A sample says that at this moment chunks before `through` had been sent, and MARK `mark` as well: seen
 * from the arrival of a later chunk, or said by a MARK. What was sent before is either here one window
 * later, or lost.
 *
 * One timer:
 *   settle   of the oldest sample: one reordering window after it was taken.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_SR_SETTLE_H
#define LH_SCHEMES_SR_SETTLE_H

#include "schemes/sr/timing.h"

/* Samples closer than a sixteenth of a window share an entry, so 17 suffice while the window stays the
 * same. When all are taken the newest entry grows, which delays it. */
#define SR_SAMPLES 32u

struct sr_sample {
    lh_time at_ns;
    uint32_t through;
    uint32_t mark;
};

struct sr_settle {
    struct sr_sample settled; /* the newest that has settled */
    struct sr_sample newest;  /* the newest at all */
    lh_time opened_ns;        /* when the newest entry of the ring was begun */
    uint32_t first;
    uint32_t count;
    struct sr_sample ring[SR_SAMPLES];
};

void sr_settle_init(struct sr_settle *settle);
/* Both numbers only grow; a sample that says nothing new is passed over. */
void sr_settle_add(struct sr_settle *settle, uint32_t through, uint32_t mark,
                   const struct sr_timing *timing, lh_time now);
/* LH_TIME_NEVER: no sample waits. */
lh_time sr_settle_expiry(const struct sr_settle *settle, const struct sr_timing *timing);
/* The oldest sample that waits; there must be one. */
const struct sr_sample *sr_settle_oldest(const struct sr_settle *settle);
/* The oldest sample has settled. */
void sr_settle_on_expired(struct sr_settle *settle);

#endif
