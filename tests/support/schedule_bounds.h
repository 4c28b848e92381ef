/*
 * schedule_bounds.h - what each schedule of the table is known for: its steps, and what it sends at most.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef SUPPORT_SCHEDULE_BOUNDS_H
#define SUPPORT_SCHEDULE_BOUNDS_H

#include "support/schedule_check.h"

/* What an algorithm is known for; of n ranks, b blocks, sites. */
struct schedule_bounds {
    enum collective collective;
    const char *name;
    uint64_t (*steps)(const struct schedule_shape *shape); /* exactly */
    uint64_t (*sent)(const struct schedule_shape *shape);  /* most blocks that a rank sends */
    uint64_t (*link)(const struct schedule_shape *shape);  /* most blocks from a rank to another */
    uint32_t peers;                                       /* most in a step; 0: not bounded by a constant */
    uint64_t (*site)(const struct schedule_shape *shape); /* most blocks into a site; NULL: any */
};

#define SCHEDULE_MAP_RANKS 1000u

struct schedule_map {
    struct site_map map;
    uint32_t numbers[4 * SCHEDULE_MAP_RANKS + 1];
};

/* Sites of this many ranks, the last may have fewer; or as many, of ranks by chance. */
void schedule_map_of(struct schedule_map *map, uint32_t ranks, uint32_t site, bool scattered);
/* Whether the schedule has levels, so that sites change more than its order. */
bool schedule_of_sites(const struct schedule *schedule);

/* Fails the test when there is none. */
const struct schedule_bounds *schedule_bounds_of(const struct schedule *schedule);
/* Fails the test when the checker finds something, or when what it counts is beyond the bounds. */
struct schedule_counts schedule_check_bounds(const struct schedule *schedule,
                                             const struct schedule_shape *shape);
/* Likewise of many shapes: 1 to 64 ranks, up to 3 blocks per rank; up to 33 ranks each such number. */
void schedule_check_all(const struct schedule *schedule);

#endif
