/*
 * congestion.h - the interface of congestion controllers: events in, a rate and a window out.
 *
 * A controller belongs to the sending side of one connection, whatever its reliability scheme. It learns of
 * packets that arrived, and of nothing else: loss alone yields no feedback (OptiNIC, section 3.1.3), so what
 * was lost is inferred from what arrived after it. It is pure: it depends on nothing but its state and its
 * arguments. The connection reports events with times that do not decrease, then asks decide(); it does so
 * after every event, and at next_ns.
 *
 * Required of each that takes feedback: it keeps the queue of the bottleneck short, below half of what
 * windows of lh_congestion_path.window_max_bytes would make of it, and the bottleneck busy
 * (docs/CONTRIBUTING.md, "Add a congestion controller", has the bounds that tests measure). It sends on in
 * the end, whatever is lost, and whatever a peer reports.
 *
 * Bytes are payload. Rates are in bits of payload a second. Times are of the sender's clock; delays include
 * no waiting in the sender's own injection queue.
 *
 * What a peer reports is checked before it gets here: never more arrived than was sent, no round trip shorter
 * than the shortest that the connection itself has measured, and no delivery rate above the rate at which
 * those packets were sent. A controller may trust that, and need not trust the peer with anything else.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_CONGESTION_H
#define LONGHAUL_CONGESTION_H

#include <longhaul/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LH_CONGESTION_PARAMS 16 /* bytes of parameters of a controller */
#define LH_RATE_NONE         UINT64_MAX

/* What is known of the path when a controller starts. */
struct lh_congestion_path {
    uint32_t mtu_bytes;        /* payload of a full packet */
    uint64_t rate_bps;         /* told by the user: a circuit's; 0: unknown */
    uint64_t rate_max_bps;     /* never to be exceeded; LH_RATE_NONE: no bound */
    uint64_t window_max_bytes; /* payload in flight, never to be exceeded */
    lh_time rtt_ns;            /* shortest round trip so far, of control messages; 0: none yet */
    /* What an earlier connection over this path found; 0: nothing remembered. To be tried with care. */
    uint64_t remembered_rate_bps;
    lh_time remembered_rtt_ns;
    lh_time remembered_age_ns;
};

/* What one report of the receiver says, set against what was sent. "Newly": since the last one. */
struct lh_congestion_feedback {
    lh_time now;
    uint64_t arrived_bytes; /* newly; read by the receiver, not only received by its host */
    uint64_t lost_bytes;    /* newly; later ones arrived, and the reordering window has passed */
    uint64_t marked_bytes;  /* newly, of those that arrived: congestion experienced (RFC 3168) */
    uint64_t dropped_bytes; /* newly, of those lost: dropped by the receiver's socket, as it says itself */
    uint32_t notifications; /* newly: CNP packets */
    uint64_t in_flight_bytes;     /* after this report */
    uint64_t arrived_total_bytes; /* since the start */
    uint64_t lost_total_bytes;    /* falls when packets come late after all */
    /* Of the newest packet that arrived. All 0 when the report is of no packet that is known to be in
     * flight. */
    lh_time rtt_ns; /* without the time for which the receiver held the report back */
    lh_time sent_ns;
    /* Totals at sent_ns. A round trip has passed when the first of them reaches the arrived_total_bytes of
     * its beginning. */
    uint64_t arrived_at_send_bytes;
    uint64_t lost_at_send_bytes;
    uint64_t in_flight_at_send_bytes;
    /* What arrived since sent_ns, a second: over the time in which it was sent or, if longer, that in which
     * it arrived, by the receiver's clock. 0: unknown. */
    uint64_t rate_bps;
    /* The rate at which those bytes, and what was lost meanwhile, were sent: above rate_bps when it was the
     * path that limited it. */
    uint64_t sends_bps;
    bool rate_is_limited; /* by the application or the user's window: the path may take more */
    /* How fast the newly arrived bytes came in, by the receiver's clock alone: the spacing of a train. It may
     * be above the rate at which they were sent. 0: unknown (a single arrival). */
    uint64_t train_bps;
    uint64_t train_bytes;
    /* Credits (see receiver_credit): the sender may have sent this many bytes in all; UINT64_MAX: no
     * limit. */
    uint64_t credit_bytes;
};

struct lh_congestion_decision {
    uint64_t rate_bps;     /* pace of injection; LH_RATE_NONE: none */
    uint64_t window_bytes; /* in flight at most; UINT64_MAX: no bound */
    uint64_t total_bytes;  /* sent in all at most (credits); UINT64_MAX: no bound */
    uint64_t burst_bytes;  /* that may leave at once; 0: by the rate */
    lh_time next_ns;       /* of the next on_timer() at the latest; LH_TIME_NEVER */
    bool window_is_exact;  /* a train, whose spacing is measured: not even what leaves at that rate while a
                              report is held is in flight beside the window */
};

/* What a controller takes the path for, for the user; 0: unknown. */
struct lh_congestion_view {
    uint64_t bandwidth_bps; /* of the bottleneck */
    lh_time rtt_minimum_ns;
    const char *state; /* "startup", "cruise": a literal */
};

struct lh_congestion {
    const char *name; /* "bbr": the part of lh_attr.congestion before the first comma */
    const char *help; /* its parameters in one line */

    /* Parses the part after the first comma ("" without one) into params. 0 or -LH_EINVAL. */
    int (*parse)(const char *text, uint8_t params[LH_CONGESTION_PARAMS]);

    size_t state_bytes; /* of the sender's half, aligned to 64 */
    /* Called again when a shorter round trip is measured before a packet has been timed, or one of less
     * than half. */
    void (*start)(void *state, const struct lh_congestion_path *path,
                  const uint8_t params[LH_CONGESTION_PARAMS], lh_time now);
    /* Bytes left. in_flight_bytes: with them. NULL: nothing to do. */
    void (*on_sent)(void *state, uint64_t bytes, uint64_t in_flight_bytes, lh_time now);
    void (*on_feedback)(void *state, const struct lh_congestion_feedback *feedback);
    void (*on_timer)(void *state, lh_time now);
    void (*decide)(const void *state, lh_time now, struct lh_congestion_decision *decision);
    void (*view)(const void *state, struct lh_congestion_view *view);

    /* The receiver's half, of controllers by credits; all NULL and 0 without. */
    size_t receiver_bytes;
    void (*receiver_start)(void *state, const struct lh_congestion_path *path,
                           const uint8_t params[LH_CONGESTION_PARAMS], lh_time now);
    /* Newly read, and of these newly marked. */
    void (*receiver_on_arrived)(void *state, uint64_t arrived_bytes, uint64_t marked_bytes, lh_time now);
    /* Bytes that the sender may have sent in all; *next_ns: when to ask again at the latest. */
    uint64_t (*receiver_credit)(void *state, lh_time now, lh_time *next_ns);
};

/* What keeps a sender from sending more. */
enum lh_limit {
    LH_LIMIT_IDLE,        /* nothing to send */
    LH_LIMIT_HOST,        /* nothing but the speed of this host, also when it comes too late for the pace */
    LH_LIMIT_RATE,        /* the controller's rate, or the one that was told */
    LH_LIMIT_WINDOW,      /* the controller's window */
    LH_LIMIT_USER_WINDOW, /* lh_attr.window_bytes */
    LH_LIMIT_RECEIVER,    /* what the peer's sockets hold */
    LH_LIMIT_CREDIT,      /* credits of the receiver */
    LH_LIMIT_FABRIC,      /* it took no more: this host's socket or device, or an emulated link */
    LH_LIMITS,
};

/* How a connection's sending side is controlled. */
struct lh_congestion_report {
    char controller[32]; /* its name */
    char state[32];      /* of the controller; "": none */
    bool feedback;     /* it takes feedback: else the members from here to limited_ns are 0, but rate_bps */
    uint64_t rate_bps; /* pace of injection now; LH_RATE_NONE: none */
    uint64_t window_bytes; /* in flight at most now; UINT64_MAX: no bound */
    uint64_t in_flight_bytes;
    uint64_t bandwidth_bps;        /* that the controller takes the path to have; 0: unknown */
    lh_time rtt_minimum_ns;        /* shortest round trip of a data packet; 0: none yet */
    lh_time queueing_delay_ns;     /* above that, smoothed */
    lh_time queueing_delay_p99_ns; /* not exceeded by 99 % of the reports; a quarter of an octave exact */
    lh_time queueing_delay_min_ns; /* of the last reports, 32 to 64: a queue that stands; 0 before */
    uint64_t sent_bytes;           /* in all */
    uint64_t arrived_bytes;
    uint64_t lost_bytes;
    uint64_t marked_bytes;
    uint64_t dropped_packets;      /* of those lost: by the peer's sockets */
    uint64_t receiver_rate_bps;    /* that it read when they did, and no more since; 0: unknown */
    uint64_t best_rate_bps;        /* the most that arrived, over at least 8 round trips and 0.1 s */
    uint64_t remembered_rate_bps;  /* of an earlier connection, given to the controller; 0: none */
    lh_time limited_ns[LH_LIMITS]; /* since sending began: how long by each; the mean of all channels */
    uint32_t
        packet_bytes; /* payload of the data packets that leave now: the MTU, or less where the path takes
                              no more (path MTU discovery, RFC 8899) */
};

/* The controllers of this build, ended by NULL. */
LH_API const struct lh_congestion *const *lh_congestions(void);
/* Validates a text for lh_attr.congestion: "bbr", "swift,target=200us". -LH_EINVAL, with the reason. */
LH_API int lh_congestion_check(const char *text);

#ifdef __cplusplus
}
#endif
#endif
