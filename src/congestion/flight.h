/*
 * flight.h - what is in flight: sends, set against what the receiver reports. Pure.
 *
 * Each batch of packets that left is one entry: consecutive keys (which message, which packet of it), when it
 * left, and the totals at that moment. A report of the receiver names the newest packet that arrived and the
 * totals of packets that arrived, were marked and were dropped by its socket. So a lost report costs nothing,
 * and a report is matched with its entry without a sequence number in the data packets: what is in a RoCE
 * packet anyway, the immediate, is the key.
 *
 * What was sent a reordering window or more before the newest packet that arrived, and has not arrived, is
 * lost. Packets that come late after all are taken from the count again.
 *
 * Everything in a report is hostile: totals that fall, or exceed what was sent, are ignored or bounded; a
 * round trip is never below the least one given.
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
    /* Totals before it. */
    uint64_t packets_before;
    uint64_t bytes_before;
    /* As of the last feedback before it was sent. */
    uint64_t arrived_packets;
    uint64_t arrived_bytes;
    uint64_t lost_bytes;
    uint64_t in_flight_bytes;
    lh_time arrived_peer_ns; /* receiver's clock at that feedback; 0: none yet */
    lh_time window_sent_ns;  /* when the newest packet of that feedback had been sent */
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
};

struct flight {
    struct flight_entry *ring; /* `size` entries, a power of two, owned by the caller */
    uint32_t size;
    uint32_t head; /* next to write */
    uint32_t tail; /* the oldest that may still be in flight */
    uint64_t sent_packets, sent_bytes;
    uint64_t arrived_packets, arrived_bytes; /* bytes: in proportion to what was sent */
    uint64_t marked_packets, dropped_packets;
    uint64_t lost_packets, lost_bytes;
    uint64_t
        limited_until_packets; /* a sample is limited until this many have arrived or are lost; 0: none */
    lh_time newest_sent_ns;    /* send time of the newest packet that is known to have arrived */
    lh_time newest_peer_ns;    /* receiver's clock at the last report */
    lh_time reordering_ns;     /* set by the owner */
};

void flight_init(struct flight *flight, struct flight_entry *ring, uint32_t size);
/* `packets` with keys from `key` on, `bytes` in all, left now. When the ring is full, entries are merged: the
 * accuracy of samples falls, no count is lost. */
void flight_on_sent(struct flight *flight, uint64_t key, uint32_t packets, uint64_t bytes, lh_time now);
/* The sender has nothing (or is not allowed by something else than its controller) to send now. */
void flight_on_limited(struct flight *flight);
/* False: the report says nothing new. least_rtt_ns: the shortest round trip that was measured otherwise. */
bool flight_on_report(struct flight *flight, const struct flight_report *report, lh_time least_rtt_ns,
                      lh_time now, struct lh_congestion_feedback *feedback);
/* Everything that was sent more than overdue_ns ago and is still in flight is lost. False: nothing is. */
bool flight_on_timer(struct flight *flight, lh_time overdue_ns, lh_time now,
                     struct lh_congestion_feedback *feedback);
/* When flight_on_timer() finds something; LH_TIME_NEVER. */
lh_time flight_next(const struct flight *flight, lh_time overdue_ns);
uint64_t flight_in_flight_bytes(const struct flight *flight);

#endif
