/*
 * round_trips.h - what controllers by delay or marks read from feedback: round trips, the delay above the
 * path's minimum, and whether more is lost than chance explains.
 *
 * The minimum is the shortest round trip seen. A path may become longer: when for 32 round trips every delay
 * is above twice what the controller aims at, whatever it does, the shortest of these is the new minimum; of
 * one that the delay slows down, with no more than a packet in flight, when every delay is above what it aims
 * at. That also keeps a controller by delay alive beside flows that fill the queue.
 *
 * Loss is judged in samples of 64 packets or more and a round trip or more. Up to a 16th is chance: no
 * reason to slow down.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONGESTION_ROUND_TRIPS_H
#define LH_CONGESTION_ROUND_TRIPS_H

#include <longhaul/congestion.h>

struct round_trips {
    uint32_t mtu_bytes;
    bool slowed_by_delay;      /* the controller is: set it after round_trips_init() */
    uint32_t delayed_rounds;   /* in a row */
    lh_time minimum_ns;        /* 0: none yet */
    lh_time delayed_lowest_ns; /* of these rounds */
    /* This round: it ends when what was sent at its beginning has arrived. */
    uint64_t end_bytes;
    lh_time lowest_ns;
    lh_time
        queue_ns; /* lowest delay above the minimum, of the last one that ended: what all packets waited */
    /* Loss since the last sample. */
    double arrived_bytes, lost_bytes;
    uint32_t unjudged_rounds;
};

void round_trips_init(struct round_trips *rounds, const struct lh_congestion_path *path);
/* True: with this feedback a round trip has ended. target_ns: the delay above the minimum that the
 * controller aims at. */
bool round_trips_on_feedback(struct round_trips *rounds, const struct lh_congestion_feedback *feedback,
                             lh_time target_ns);
/* Of the packet that the feedback is about. */
lh_time round_trips_queue_ns(const struct round_trips *rounds,
                             const struct lh_congestion_feedback *feedback);
/* The share lost, when that is more than chance, else 0. For the end of a round: takes the sample. */
double round_trips_excess_loss(struct round_trips *rounds);
/* The rate has been cut: what is lost of the packets that had left before says nothing new. */
void round_trips_on_cut(struct round_trips *rounds);

#endif
