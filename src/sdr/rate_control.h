/*
 * rate_control.h - what a QP may send now: decisions of its controller, packets in flight, pace, credits,
 * shares of an engine's rate. Pure.
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
#ifndef LH_SDR_RATE_CONTROL_H
#define LH_SDR_RATE_CONTROL_H

#include <stdbool.h>

#include <longhaul/congestion.h>
#include <longhaul/types.h>

#include "congestion/flight.h"
#include "congestion/pacer.h"

/* ---- delay log ------------------------------------------------------------------------------------- */

/*
 * How long packets wait in queues: smoothed, and as a histogram with buckets of a quarter of an
 * octave. Pure.
 */

#define DELAY_LOG_BUCKETS 192u /* up to 2^48 ns */
/* Of so many round trips jitter, and reports that were held back, leave one short; a queue that stands does
 * not. */
#define DELAY_LOG_RECENT 32u

struct delay_log {
    lh_time minimum_ns; /* shortest round trip; 0: none yet */
    lh_time smoothed_ns;
    lh_time recent_ns[2]; /* shortest round trips of the last DELAY_LOG_RECENT samples, and since */
    uint64_t samples;
    uint64_t counted;  /* of them: in buckets, which may have come after the first ones */
    uint32_t *buckets; /* DELAY_LOG_BUCKETS, zeroed, of the owner; NULL: no quantiles yet */
};

/* A round trip: what is above the shortest one is delay. */
void delay_log_add(struct delay_log *log, lh_time rtt_ns);
/* The shortest delay of the last DELAY_LOG_RECENT samples or up to twice as many; 0 before so many. */
lh_time delay_log_standing(const struct delay_log *log);
/* The delay that this share of the samples in buckets (0 to 1) do not exceed, up to a quarter of an octave; 0
 * without any. */
lh_time delay_log_quantile(const struct delay_log *log, double share);

/* ---- limits ---------------------------------------------------------------------------------------- */

/* What kept a sender from sending more, and for how long. Pure. */

struct limits {
    enum lh_limit now;
    lh_time since_ns; /* 0: nothing noted yet */
    lh_time ns[LH_LIMITS];
};

/* From now on it is this one. Cheap when nothing changes. */
static inline void limits_note(struct limits *limits, enum lh_limit limit, lh_time now)
{
    if (limits->now == limit && limits->since_ns != 0)
        return;
    if (limits->since_ns != 0 && now > limits->since_ns)
        limits->ns[limits->now] += now - limits->since_ns;
    limits->now = limit;
    limits->since_ns = now;
}

/* The host came so late that the pace had let out all it ever does at once, at full_ns: since then it was
 * the host. To be called before limits_note(). */
static inline void limits_late(struct limits *limits, lh_time full_ns, lh_time now)
{
    if (limits->now == LH_LIMIT_RATE && limits->since_ns != 0 && full_ns < now)
        limits_note(limits, LH_LIMIT_HOST, full_ns > limits->since_ns ? full_ns : limits->since_ns);
}

/* How long it was this one, until now. */
static inline lh_time limits_ns(const struct limits *limits, enum lh_limit limit, lh_time now)
{
    bool is_now = limits->now == limit && limits->since_ns != 0 && now > limits->since_ns;
    return limits->ns[limit] + (is_now ? now - limits->since_ns : 0);
}

/* ---- read rate ------------------------------------------------------------------------------------- */

/*
 * What the receiver reads, over spans of some round trips: the most so far, and what it was
 * when its sockets had to drop. Pure.
 *
 * A receiver that is too slow shows itself by drops only once: then the controller takes its pace for the
 * path's. So what it read then stays its rate until it has read more.
 */

#define READ_RATE_ROUNDS 8u
#define READ_RATE_MIN_NS (100 * LH_NS_PER_MS) /* what hosts hold back for a while is little against it */

/* All zero: nothing noted yet. */
struct read_rate {
    lh_time since_ns; /* start of this span; 0: none yet */
    uint64_t since_bytes;
    uint64_t since_dropped;
    bool dropped_before;   /* in the last span */
    uint64_t best_bps;     /* of all spans that have ended; 0: none has */
    uint64_t receiver_bps; /* 0: it has dropped nothing, or has read more since */
};

/* In all so far, by the receiver's reports; rtt_ns: the shortest. */
void read_rate_note(struct read_rate *rate, uint64_t arrived_bytes, uint64_t dropped_packets,
                    lh_time rtt_ns, lh_time now);

/* ---- rate control ---------------------------------------------------------------------------------- */

#define RATE_FLIGHT_ENTRIES 1024u
#define RATE_MAX_BPS        UINT64_C(100000000000000)

struct rate_control {
    struct pacer pacer;
    uint64_t burst_bytes;                   /* that a worker waits for, twice */
    const struct lh_congestion *controller; /* NULL: no control */
    void *state;                            /* of it */
    bool started;
    bool same_host;  /* set by the owner: no network in between, only the peer's sockets can be overrun */
    bool no_path;    /* likewise, and no link is emulated: all that is in flight is in these sockets */
    bool idle;       /* nothing waited after the last send: time that passes is no delay to make up for */
    bool silent;     /* more was overdue than is lost at random, and nothing has been heard since */
    uint32_t probes; /* that left since: each waits twice as long, what left before does not */
    uint64_t vanished_packets; /* overdue since anything arrived */
    struct lh_congestion_path path;
    uint8_t params[LH_CONGESTION_PARAMS];
    struct lh_congestion_decision decision;
    struct flight flight;
    uint64_t passed_bytes;     /* let out, or dropped, of all that was ever to leave; wraps */
    uint64_t reserved_packets; /* being given to the fabric */
    uint64_t reserved_bytes;
    uint64_t receiver_packets; /* that the peer's sockets hold, with a reserve; UINT64_MAX: no limit */
    uint64_t receiver_max;     /* as it said; fewer are used once it had to drop */
    lh_time receiver_ns;       /* when receiver_packets changed last */
    uint64_t drain_bps;        /* what the receiver reads, once it had to drop; LH_RATE_NONE: no limit */
    lh_time drained_ns;        /* when that changed last */
    struct read_rate read;
    lh_time min_rtt_ns;
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
/* The controller's decisions are followed from rate_control_start() on; nothing may leave before. `state`
 * has controller->state_bytes, aligned to 64; `ring` RATE_FLIGHT_ENTRIES, or none: then flight_move() comes
 * before the first packet. */
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

/* ---- arrival report -------------------------------------------------------------------------------- */

/*
 * When a receiver reports what arrived. Pure.
 *
 * A report carries totals, so a lost one costs nothing but time. One is due when something new has arrived
 * and an eighth of a round trip has passed since the last one (at least ARRIVAL_REPORT_SPAN_NS), or at once
 * when what is not reported takes a good part of the socket buffer, for the sender counts it as waiting
 * there; and sooner while the first packets arrive, for their spacing is all that the sender knows of the
 * path's rate. The last one before a silence is sent twice, a round trip apart.
 */

#define ARRIVAL_REPORT_SPAN_NS (250 * LH_NS_PER_US)
#define ARRIVAL_REPORT_FIRST   128u  /* packets: each is reported at once, */
#define ARRIVAL_REPORT_EARLY   2048u /* and these after ARRIVAL_REPORT_SPAN_NS, whatever the round trip */

struct arrival_report {
    uint64_t packets_max; /* that may be unreported; 0: no limit */
    uint64_t packets;     /* the total that was last reported */
    lh_time sent_ns;      /* when that was */
    bool repeat;          /* it may have been the last one: once more */
};

/* The span between two reports; rtt_ns: smoothed, 0: unknown. */
lh_time arrival_report_span(lh_time rtt_ns);
bool arrival_report_due(const struct arrival_report *report, uint64_t packets, lh_time rtt_ns, lh_time now);
/* A report with that total was sent. */
void arrival_report_on_sent(struct arrival_report *report, uint64_t packets, lh_time now);
/* When the next one is due if nothing else arrives; LH_TIME_NEVER. */
lh_time arrival_report_next(const struct arrival_report *report, uint64_t packets, lh_time rtt_ns);

/* ---- credit grant ---------------------------------------------------------------------------------- */

/*
 * The receiver's half of a controller by credits: what the peer may have sent in all. Pure.
 *
 * The peer asks for it in its QP info, by number. Without one its credit has no limit.
 */

struct credit_grant {
    const struct lh_congestion *controller; /* NULL: no limit */
    void *state;
    uint32_t mtu_bytes;
    uint64_t arrived_packets; /* that the controller knows of */
    uint64_t marked_packets;
    lh_time next_ns; /* when it has more to grant; LH_TIME_NEVER */
};

/* The number of a controller in QP info; 0: it has no receiver's half. */
uint8_t credit_grant_number(const struct lh_congestion *controller);
/* The controller of a number, or NULL: there is none. Any number may come from the peer. */
const struct lh_congestion *credit_grant_of(uint8_t number);
/* state: receiver_bytes of the controller, aligned to 64, owned by the caller. */
void credit_grant_start(struct credit_grant *grant, const struct lh_congestion *controller, void *state,
                        const struct lh_congestion_path *path, lh_time now);
/* Totals of packets that arrived and were marked. Bytes that the peer may have sent in all; UINT64_MAX: no
 * limit. */
uint64_t credit_grant_renew(struct credit_grant *grant, uint64_t arrived_packets, uint64_t marked_packets,
                            lh_time now);

/* ---- shared rate ----------------------------------------------------------------------------------- */

/*
 * A rate that several senders have together. Pure.
 *
 * A sender reserves a *turn*: so many bytes, and the moment from which on the rate lets them out. It has
 * one at a time, and turns follow each other in the order in which they were reserved. So senders that
 * always have something to send get equal shares, in bytes, and what one leaves is the others'.
 *
 * A single small packet does not wait behind the turns of others, if its sender has used less than its
 * share: it leaves at once, and later turns are that much later.
 */

#define SHARED_RATE_TURN_MAX ((uint64_t)64 * 1024)
#define SHARED_RATE_TURN_MIN ((uint64_t)8 * 1024)

/* All zero: no rate. */
struct shared_rate {
    struct pacer pacer;
    uint64_t turn_bytes;
    uint64_t
        virtual_bytes; /* of each sender that always has something to send: the start of the latest turn */
};

/* Of one sender. All zero: it has none. */
struct rate_turn {
    lh_time at_ns;
    uint64_t bytes; /* reserved, and not sent yet */
    uint64_t ended; /* its last one, by virtual_bytes */
};

/* 0: no rate. */
void shared_rate_init(struct shared_rate *rate, uint64_t rate_bps);
static inline bool shared_rate_is_on(const struct shared_rate *rate)
{
    return rate->pacer.rate_bps != 0;
}
/* How many of the bytes that it has to send may leave now: 0, and then none before turn->at_ns, or at least
 * `first`, which is as much as its next packet can have. Reserves a turn for it where it has none. */
uint64_t shared_rate_room(struct shared_rate *rate, struct rate_turn *turn, uint64_t waiting,
                          uint64_t first, lh_time now);
/* So many of them left. */
void shared_rate_on_sent(struct rate_turn *turn, uint64_t bytes);

#endif
