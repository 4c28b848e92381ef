/*
 * eqds.h - credits from the receiver (Olteanu et al., "An edge-queued datagram service for all datacenter
 * traffic", NSDI 2022). Differences: docs/congestion.md.
 *
 * The receiver's half decides how much may be in flight. The sender's half sends what it has credits for, at
 * the pace at which they come, and bounds what a receiver can ask for by what has been delivered.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONGESTION_EQDS_H
#define LH_CONGESTION_EQDS_H

#include <longhaul/congestion.h>

#include "congestion/flight.h"

extern const struct lh_congestion eqds_congestion;

/* ---- eqds receiver --------------------------------------------------------------------------------- */

/*
 * The receiver's half of eqds: how many bytes the sender may have sent in all.
 *
 * Credits are what was read plus a window, and come at the pace at which the receiver reads. The window
 * follows the delay of the loop, which the receiver measures by itself: from the moment when it grants a
 * credit to that when the bytes arrive which use it up.
 */

#define EQDS_MARKS 8 /* credits whose loop is measured at the same time */

struct eqds_mark {
    uint64_t credit_bytes;  /* granted then */
    uint64_t arrived_bytes; /* until then */
    lh_time granted_ns;
};

struct eqds_receiver {
    struct lh_congestion_path path;
    struct round_trips rounds; /* of the loop */
    double window_bytes;
    double unproven_bytes; /* arrived since the last loop was measured */
    double pace_max_bps;
    uint64_t arrived_bytes;
    uint64_t credit_bytes; /* granted */
    double round_arrived, round_marked;
    lh_time paced_ns; /* credits were last granted */
    lh_time arrived_ns;
    uint32_t quiet_rounds;
    bool doubling; /* each round trip, until a queue forms */
    uint32_t first_mark, mark_count;
    struct eqds_mark marks[EQDS_MARKS];
};

/* pace_max_bps: of credits; first_bytes: before anything has arrived. */
void eqds_receiver_start(struct eqds_receiver *receiver, const struct lh_congestion_path *path,
                         double first_bytes, double pace_max_bps, lh_time now);
void eqds_receiver_on_arrived(struct eqds_receiver *receiver, uint64_t arrived_bytes, uint64_t marked_bytes,
                              lh_time now);
uint64_t eqds_receiver_credit(struct eqds_receiver *receiver, lh_time now, lh_time *next_ns);

#endif
