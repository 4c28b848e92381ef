/*
 * healing.h - how long it may take until everything has ended, from the moment at which the network is well.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_HEALING_H
#define LH_TESTS_WORLD_HEALING_H

#include "world/world.h"

/* What users of a pair still wait for. */
struct work_left {
    uint64_t bytes;
    uint64_t rounds;    /* round trips, when nothing is lost any more */
    lh_time waiting_ns; /* that the users themselves take */
};

/* Now, with everything as it is when the network heals: ten times what the bytes that are left take on the
 * healed network, and the longest timer that runs. Also sets when each pair has to be over, by what it has to
 * do itself. */
lh_time healing_bound(struct world *world);
/* Round trips in which these bytes leave by the first window of a controller: faults, and lies, may have
 * brought it down to that, and where all packets come late to closed receives it learns of no delay by which
 * to grow. */
uint64_t healing_window_rounds(const struct world *world, const struct pair *pair, uint32_t from,
                               uint64_t bytes);

#endif
