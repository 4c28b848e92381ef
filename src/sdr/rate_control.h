/*
 * rate_control.h - what a queue pair may send now: its controller's decisions, what is in flight, the
 * pace, and what the peer's sockets hold. Pure.
 *
 * Without control (a controller that takes no feedback) only the pace counts.
 *
 * With it, what may leave is the least of
 *   - what the pace lets out,
 *   - the controller's window, and the user's, less what is in flight,
 *   - what the peer's sockets hold, less what is in flight and not on the path: all packets count as full
 *     ones, and half of the room is kept free. On a path longer than RATE_HOST_SHARE_NS, what the rate puts
 *     there meanwhile is beside that; on a host that is busy a round trip is as long without a path,
 *   - credits.
 *
 * After silence, when everything in flight is overdue, a single packet at a time leaves until a report comes:
 * what was sent may still wait in the peer's sockets.
 *
 * What a peer that lies can reach: it may report everything as arrived that was sent at least the shortest
 * round trip ago, so it gets at most window_max_bytes a round trip, and never more than rate_max_bps. It
 * may also make that round trip seem shorter, by the delay that it states in echoes: then rate_max_bps is the
 * bound.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_RATE_RATE_CONTROL_H
#define LH_SDR_RATE_RATE_CONTROL_H

#include "congestion/congestion_table.h"
#include "congestion/flight.h"
#include "congestion/pacer.h"
#include "sdr/rate/delay_log.h"
#include "sdr/rate/limits.h"
#include "sdr/rate/read_rate.h"

#define RATE_FLIGHT_ENTRIES 1024u
#define RATE_HOST_SHARE_NS  (500 * LH_NS_PER_US) /* of a round trip: two hosts that are not always running */
#define RATE_BURST_MAX      ((uint64_t)256 * 1024)
#define RATE_BURST_SPAN_NS  (250 * LH_NS_PER_US)
#define RATE_MAX_BPS        UINT64_C(100000000000000)

struct rate_control {
    struct pacer pacer;
    uint64_t burst_bytes;                   /* that a worker waits for, twice */
    const struct lh_congestion *controller; /* NULL: no control */
    void *state;                            /* of it */
    bool started;
    bool same_host;  /* set by the owner: no network in between, only the peer's sockets can be overrun */
    bool no_path;    /* likewise, and no link is emulated: all that is in flight is in these sockets */
    bool silent;     /* everything in flight was overdue, and nothing has been heard since */
    uint32_t probes; /* that left since: each waits twice as long, what left before does not */
    struct lh_congestion_path path;
    uint8_t params[LH_CONGESTION_PARAMS];
    struct lh_congestion_decision decision;
    struct flight flight;
    uint64_t passed_bytes;     /* let out, or dropped, of all that was ever to leave; wraps */
    uint64_t reserved_packets; /* being given to the fabric */
    uint64_t reserved_bytes;
    uint64_t receiver_packets; /* that the peer's sockets hold, with a reserve; UINT64_MAX: no limit */
    uint64_t receiver_most;    /* as it said; fewer are used once it had to drop */
    lh_time receiver_ns;       /* when receiver_packets changed last */
    uint64_t drain_bps;        /* what the receiver reads, once it had to drop; LH_RATE_NONE: no limit */
    lh_time drained_ns;        /* when that changed last */
    struct read_rate read;
    lh_time least_rtt_ns;
    lh_time overdue_ns;
    struct delay_log delays;
    uint64_t marked_bytes; /* in all */
};

/* What may leave now; and if that is too little, why. */
struct rate_room {
    uint64_t bytes;
    uint64_t packets;
    enum lh_limit limit;
};

/* Round trips that the connection measured by itself. */
struct rate_path {
    lh_time minimum_ns;
    lh_time overdue_ns;
    lh_time reordering_ns;
};

/* No control: at that pace; 0: none. */
void rate_control_init(struct rate_control *rate, uint64_t rate_bps, uint32_t mtu_bytes);
/* The controller's decisions are followed from rate_control_start() on; nothing may leave before. `state` has
 * controller->state_bytes, aligned to 64; `ring` RATE_FLIGHT_ENTRIES,
 * or none: then flight_move() comes before the first packet. */
void rate_control_init_controlled(struct rate_control *rate, const struct lh_congestion *controller,
                                  void *state, struct flight_entry *ring);
/* receiver_bytes: payload of full packets that one of the peer's sockets holds; 0: no limit. */
void rate_control_start(struct rate_control *rate, const struct lh_congestion_path *path,
                        const uint8_t params[LH_CONGESTION_PARAMS], uint64_t receiver_bytes,
                        const struct rate_path *measured, lh_time now);

static inline bool rate_control_is_on(const struct rate_control *rate)
{
    return rate->controller != NULL;
}

struct rate_room rate_control_room(const struct rate_control *rate, lh_time now);
/* How far the room reaches into all that was ever to leave, in the order of its posts. Who sends nothing
 * beyond that leaves to others what they have before it, whoever comes first: what they take moves the reach
 * no further. */
uint64_t rate_control_reach(const struct rate_control *rate, const struct rate_room *room);
/* When the pace lets enough out to be worth a call, after `ahead_bytes` of others: half a burst, or all that
 * is queued; LH_TIME_NEVER: only a report helps. */
lh_time rate_control_ready(const struct rate_control *rate, enum lh_limit limit, lh_time now,
                           uint64_t queued_bytes, uint64_t ahead_bytes);
/* When the pace lets out all that it ever does at once; LH_TIME_NEVER without a pace. */
lh_time rate_control_full(const struct rate_control *rate);
/* These are about to be given to the fabric. */
void rate_control_reserve(struct rate_control *rate, uint64_t packets, uint64_t bytes, lh_time now);
/* These will not leave at all. */
void rate_control_on_dropped(struct rate_control *rate, uint64_t bytes);
/* It did not take so many of them. */
void rate_control_on_refused(struct rate_control *rate, uint64_t packets, uint64_t bytes);
/* It took these, with keys that follow each other; rate_control_on_sent() once for all of them. Only with
 * control, these two. */
void rate_control_on_run(struct rate_control *rate, uint64_t key, uint32_t packets, uint64_t bytes,
                         lh_time now);
/* queued_bytes: what is left to be sent. */
void rate_control_on_sent(struct rate_control *rate, uint64_t bytes, uint64_t queued_bytes, lh_time now);
/* A report of the peer. Only after the start. Returns whether it was news: more may leave. */
bool rate_control_on_report(struct rate_control *rate, const struct flight_report *report,
                            uint32_t notifications, const struct rate_path *measured, lh_time now);
/* The path as it is measured now: what is in flight is overdue by that, also when no report comes. The first
 * round trip may have been long by chance: the controller starts anew by a shorter one as long as no packet
 * has been timed, and by one of less than half. */
bool rate_control_on_measured(struct rate_control *rate, const struct rate_path *measured, lh_time now);
/* What was sent so long ago, and was not heard of, is lost. */
lh_time rate_control_silence_ns(const struct rate_control *rate);
/* Everything that is due by now. Returns whether more may leave. */
bool rate_control_on_time(struct rate_control *rate, lh_time now);
/* When that is; LH_TIME_NEVER. */
lh_time rate_control_next(const struct rate_control *rate);

#endif
