/*
 * flight.h - what is in flight: sends, set against what the receiver reports. Pure.
 *
 * Each batch of packets that left is one entry: consecutive keys (which message, which packet of it), when it
 * left, and the totals at that moment. A report of the receiver names the newest packet that arrived and the
 * totals of packets that arrived, were marked and were dropped by its socket. So a lost report costs nothing,
 * and a report is matched with its entry without a sequence number in the data packets: what is in a RoCE
 * packet anyway, the immediate, is the key.
 *
 * What was sent before the newest packet that arrived, and has not arrived, is missing. Those that are
 * missing throughout a reordering window are lost; those of them that come late after all are taken from the
 * count again.
 *
 * Everything in a report is hostile. No more arrived than was sent a least round trip ago, no round trip is
 * shorter than that, and no delivery rate is above the rate of the sends. A total that falls is ignored in a
 * report that others have reordered. In the newest it says that a higher one was a lie: what is above it from
 * there on counts, or the sender would wait until the truth has caught up with the lie.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONGESTION_FLIGHT_H
#define LH_CONGESTION_FLIGHT_H

#include <longhaul/congestion.h>

struct flight_entry {
    uint64_t key; /* of its first packet; those of the others follow */
    uint32_t packets;
    bool limited; /* sent while the sender had too little to send */
    lh_time sent_ns;
    lh_time keys_ns; /* when those left that the keys name: later, where entries were merged over a pause */
    /* Totals before it. */
    uint64_t packets_before;
    uint64_t bytes_before;
    uint64_t arrived_bytes;
    uint64_t lost_bytes;
    /* Of the last report before it. */
    lh_time arrived_peer_ns; /* receiver's clock; 0: none since nothing was in flight */
    lh_time arrived_sent_ns; /* when its newest packet had been sent */
};

/* As read from the wire, or from a simulated receiver. */
struct flight_report {
    uint64_t key;             /* of the newest packet that arrived */
    uint64_t arrived_packets; /* in all; duplicates and late ones count: they crossed the path */
    uint64_t marked_packets;
    uint64_t dropped_packets;
    uint64_t credit_bytes; /* UINT64_MAX: no limit */
    lh_time arrived_ns;    /* receiver's clock, when the newest one arrived */
    lh_time held_ns;       /* from then until the report was written */
    bool newest;           /* none that the receiver wrote later has been read */
};

struct flight {
    struct flight_entry *ring; /* `size` entries, a power of two, owned by the caller; or none */
    uint32_t size;
    uint32_t first;     /* the oldest that is still there */
    uint32_t tail;      /* of the first packet that neither arrived nor is lost: the totals as a position */
    uint32_t head;      /* next to write */
    uint32_t reachable; /* the first that is too new to have arrived */
    lh_time reordering_ns; /* set by the owner */
    uint64_t sent_packets, sent_bytes;
    uint64_t arrived_packets, arrived_bytes; /* bytes: in proportion to what was sent */
    uint64_t lost_packets, lost_bytes;
    uint64_t marked_packets, dropped_packets, credit_bytes;
    /* The receiver's totals, as far as they counted. */
    uint64_t arrived_reported, marked_reported, dropped_reported;
    uint64_t overdue_packets; /* of these all that did not arrive are lost */
    uint64_t passed_bytes;    /* sent up to the newest packet that arrived or is overdue */
    /* The fewest packets that were missing, in this reordering window and in the one before. */
    uint64_t missing_now, missing_before;
    lh_time window_ns;              /* send time at which this window began */
    uint64_t limited_until_packets; /* samples are limited until more have arrived or are lost; 0: none */
    /* As of the last report. */
    lh_time arrived_sent_ns; /* send time of its newest packet */
    lh_time arrived_peer_ns; /* receiver's clock */
    lh_time rtt_ns;          /* the newest sample */
    /* Likewise as of the first report since nothing was in flight; base_peer_ns 0: none yet. */
    uint64_t base_arrived_bytes, base_lost_bytes;
    lh_time base_sent_ns, base_peer_ns;
};

/* Without a ring (NULL, 0) nothing may be sent before flight_move(). */
void flight_init(struct flight *flight, struct flight_entry *ring, uint32_t size);
/* Goes on with another ring, which is larger; or with none, when nothing is in flight: only the entries of
 * what is over are lost. */
void flight_move(struct flight *flight, struct flight_entry *ring, uint32_t size);
/* Everything that was sent has arrived or is lost. */
bool flight_is_settled(const struct flight *flight);
/* `packets` (at least 1) with keys from `key` on, `bytes` in all, left now. When the ring is full, entries
 * are merged: the accuracy of samples falls, no count is lost. */
void flight_on_sent(struct flight *flight, uint64_t key, uint32_t packets, uint64_t bytes, lh_time now);
/* The sender has nothing (or is not allowed by something else than its controller) to send now. */
void flight_on_limited(struct flight *flight);
/* False: the report says nothing new. min_rtt_ns: the shortest round trip that was measured otherwise. */
bool flight_on_report(struct flight *flight, const struct flight_report *report, lh_time min_rtt_ns,
                      lh_time now, struct lh_congestion_feedback *feedback);
/* Everything that was sent overdue_ns ago or earlier and is still in flight is lost. False: nothing is. */
bool flight_on_timer(struct flight *flight, lh_time overdue_ns, lh_time now,
                     struct lh_congestion_feedback *feedback);
/* When flight_on_timer() finds something; LH_TIME_NEVER. */
lh_time flight_next(const struct flight *flight, lh_time overdue_ns);
uint64_t flight_in_flight_bytes(const struct flight *flight);

/* ---- round trips ----------------------------------------------------------------------------------- */

/*
 * What controllers by delay or marks read from feedback: round trips, the delay above the
 * path's minimum, and whether more is lost than chance explains.
 *
 * The minimum is the shortest round trip seen. A path may become longer: when for 32 round trips every delay
 * is above twice what the controller aims at, whatever it does, the shortest of these is the new minimum; of
 * one that the delay slows down, with no more than a packet in flight, when every delay is above what it aims
 * at. That also keeps a controller by delay alive beside flows that fill the queue.
 *
 * Loss is judged in samples of 64 packets or more and a round trip or more. Up to a 16th is chance: no
 * reason to slow down.
 */

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

/* ---- share ----------------------------------------------------------------------------------------- */

/*
 * Amounts that let flows of one queue reach equal shares on every path, from 10 us to 300 ms and
 * from a packet in flight to a gigabyte. In doubles: bytes, nanoseconds, bits a second.
 *
 * Controllers of data centres grow by a packet a round trip, and want the same delay whatever a flow's
 * window: right for windows of some ten packets, while a long path holds tens of thousands. No flow knows the
 * path's whole rate, so no amount that all flows agree on suits every path. Two that depend on a flow's own
 * window do: a growth by its square root, which is relatively slower for the larger of two flows, and a delay
 * target that falls with its logarithm, so that the larger flow gives way first.
 */

#define SHARE_RATE_MAX_BPS 1e14 /* what any rate is bounded by: 100 Tbit/s */
#define SHARE_RATE_MIN_BPS 1e4

/* Growth a round trip: half the root of the window, both in packets, but a packet at least. */
double share_step_bytes(double window_bytes, uint32_t mtu_bytes);
/* 1 for a packet in flight, and less by a 20th with each doubling: 0 for 2^20 packets and more. */
double share_smallness(double window_bytes, uint32_t mtu_bytes);

/* Queueing delay that a flow aims at: base_ns for a large one, up to five times that for a packet in flight.
 * Swift's flow scaling (section 3.5 of its paper), by the logarithm instead of the inverse root, which is
 * flat above a hundred packets. */
double share_target_ns(double base_ns, double window_bytes, uint32_t mtu_bytes);

/* Before anything is known of the path, bytes: what its told rate fills, or half of what was found
 * earlier, or 10 packets (RFC 6928). */
double share_first_window_bytes(const struct lh_congestion_path *path);
/* Bytes that fill a time at a rate, and the rate that they need. rtt_ns above 0. */
double share_bytes_of(double rate_bps, double rtt_ns);
double share_rate_of(double bytes, double rtt_ns);

/* What the path delivered, if the feedback says it; else 0. What was sent slowly for another reason says
 * nothing about the path. */
double share_delivered_bps(const struct lh_congestion_feedback *feedback);

/* For decisions: as whole numbers, at most the path's. */
uint64_t share_rate_within(double rate_bps, const struct lh_congestion_path *path);
uint64_t share_window_within(double window_bytes, const struct lh_congestion_path *path);
/* At once leaves no more than a 16th of the window: on short paths the rate alone would let all of it. */
uint64_t share_burst_bytes(double window_bytes, const struct lh_congestion_path *path);

#endif
