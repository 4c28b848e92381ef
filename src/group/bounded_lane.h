/*
 * bounded_lane.h - whether the reliability of a hop is `bounded`, and what its connection gets in place of
 * it: the deadline is an operation's, not a message's.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_BOUNDED_LANE_H
#define LH_GROUP_BOUNDED_LANE_H

#include <longhaul/connection.h>

struct bounded_lane {
    bool exists;
    lh_time deadline_ns;   /* that was given; LH_DEADLINE_AUTO: is learned; LH_DEADLINE_NONE */
    char reliability[160]; /* of the connection: without it */
};

/* -LH_EINVAL: unknown, or a deadline that is not below the peer timeout. */
int bounded_lane_of(const struct lh_attr *attr, lh_time peer_timeout_ns, struct bounded_lane *lane);

#endif
