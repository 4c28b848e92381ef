/*
 * congestion.h - the interface of congestion controllers: events in, a rate and a window out.
 *
 * A controller belongs to the sending side of one connection, with any reliability scheme. It learns only of
 * packets that arrived: loss alone yields no feedback (OptiNIC, section 3.1.3), so losses are inferred from
 * later arrivals. A controller is pure: it depends only on its state and its arguments. The connection
 * reports events with times that do not decrease, then calls decide(), after every event and at next_ns.
 *
 * A controller that takes feedback must keep the bottleneck busy and its queue short: below half of the queue
 * that windows of lh_congestion_path.window_max_bytes would build. Tests measure these bounds:
 * docs/CONTRIBUTING.md, "Add a congestion controller". A controller must never stop sending for good,
 * whatever is lost and whatever a peer reports.
 *
 * Bytes are payload bytes. Rates are payload bits per second. Times are on the sender's clock. Delays exclude
 * waiting in the sender's own injection queue.
 *
 * The connection validates the peer's reports first. A controller may rely on three facts: no more bytes
 * arrived than were sent; no round trip is shorter than the shortest that the connection measured itself; no
 * delivery rate exceeds the rate at which those packets were sent. It must not trust the peer beyond them.
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

/* The path as known when a controller starts. */
struct lh_congestion_path {
    uint32_t mtu_bytes;        /* payload of a full packet */
    uint64_t rate_bps;         /* given by the user, for a circuit; 0: unknown */
    uint64_t rate_max_bps;     /* limit; LH_RATE_NONE: none */
    uint64_t window_max_bytes; /* limit of payload in flight */
    lh_time rtt_ns;            /* shortest round trip so far, of control messages; 0: none yet */
    /* Found by an earlier connection over this path; 0: none. They may be out of date. */
    uint64_t remembered_rate_bps;
    lh_time remembered_rtt_ns;
    lh_time remembered_age_ns;
};

/* One report of the receiver, compared with the sender's records. "Newly": since the previous report. */
struct lh_congestion_feedback {
    lh_time now;
    uint64_t arrived_bytes; /* newly; read by the receiver, not only received by its host */
    uint64_t lost_bytes;    /* newly; later ones arrived, and the reordering window has passed */
    uint64_t marked_bytes;  /* newly, part of arrived_bytes: congestion experienced (RFC 3168) */
    uint64_t dropped_bytes; /* newly, part of lost_bytes: dropped by the receiver's socket, as the receiver
                               reports */
    uint32_t notifications; /* newly: CNP packets */
    uint64_t in_flight_bytes;     /* after this report */
    uint64_t arrived_total_bytes; /* since the start */
    uint64_t lost_total_bytes;    /* falls when packets counted as lost arrive */
    uint64_t passed_total_bytes;  /* sent up to the newest packet that arrived or is overdue: what of it did
                                     not arrive is lost or late, before the reordering window has passed */
    /* Of the newest packet that arrived. All are 0 when the report names no packet in flight. */
    lh_time rtt_ns; /* without the time that the receiver delayed the report */
    lh_time sent_ns;
    /* Totals at sent_ns. A round trip has passed when the first of them reaches the arrived_total_bytes of
     * its beginning. */
    uint64_t arrived_at_send_bytes;
    uint64_t lost_at_send_bytes;
    uint64_t in_flight_at_send_bytes;
    /* Delivery rate since sent_ns: the bytes that arrived, divided by the longer of the time in which they
     * were sent and the time in which they arrived (on the receiver's clock). 0: unknown. */
    uint64_t rate_bps;
    /* Send rate of those bytes, with the bytes lost meanwhile. Above rate_bps when the path was the limit. */
    uint64_t sends_bps;
    bool rate_is_limited; /* by the application or the user's window: the path may carry more */
    /* Arrival rate of the newly arrived bytes, on the receiver's clock alone: the spacing of a packet train.
     * May exceed the send rate. 0: unknown (a single arrival). */
    uint64_t train_bps;
    uint64_t train_bytes;
    /* Credits (see receiver_credit): limit of all bytes sent; UINT64_MAX: no limit. */
    uint64_t credit_bytes;
};

struct lh_congestion_decision {
    uint64_t rate_bps;     /* pace of injection; LH_RATE_NONE: none */
    uint64_t window_bytes; /* limit of bytes in flight; UINT64_MAX: none */
    uint64_t total_bytes;  /* limit of all bytes sent (credits); UINT64_MAX: none */
    uint64_t burst_bytes;  /* limit of back-to-back bytes; 0: derived from the rate */
    lh_time next_ns;       /* latest time of the next on_timer(); LH_TIME_NEVER: none */
    bool
        window_is_exact; /* a packet train whose spacing is measured: the window gets no allowance for bytes
                              sent while the receiver delays a report */
};

/* A controller's estimate of the path, for display; 0: unknown. */
struct lh_congestion_view {
    uint64_t bandwidth_bps; /* of the bottleneck */
    lh_time rtt_minimum_ns;
    const char *state;         /* "startup", "cruise": a literal */
    bool tells_loss;           /* the controller tells random loss from its own: */
    double random_loss;        /* share of packets lost at random, 0 to 1 */
    uint64_t policed_rate_bps; /* of a policer, which drops what exceeds it; 0: none found */
};

struct lh_congestion {
    const char *name; /* "bbr": the part of lh_attr.congestion before the first comma */
    const char *help; /* its parameters in one line */

    /* Parses the part after the first comma ("" without one) into params. 0 or -LH_EINVAL. */
    int (*parse)(const char *text, uint8_t params[LH_CONGESTION_PARAMS]);

    size_t state_bytes; /* of the sender's half, aligned to 64 */
    /* Starts, or restarts. Called again with a shorter round trip: with any before the first packet has been
     * timed, later with one below half of the previous. */
    void (*start)(void *state, const struct lh_congestion_path *path,
                  const uint8_t params[LH_CONGESTION_PARAMS], lh_time now);
    /* Bytes were sent. in_flight_bytes: includes them. NULL: the controller needs no such events. */
    void (*on_sent)(void *state, uint64_t bytes, uint64_t in_flight_bytes, lh_time now);
    void (*on_feedback)(void *state, const struct lh_congestion_feedback *feedback);
    void (*on_timer)(void *state, lh_time now);
    void (*decide)(const void *state, lh_time now, struct lh_congestion_decision *decision);
    void (*view)(const void *state, struct lh_congestion_view *view);

    /* The receiver's half of credit-based controllers; NULL and 0 for others. */
    size_t receiver_bytes;
    void (*receiver_start)(void *state, const struct lh_congestion_path *path,
                           const uint8_t params[LH_CONGESTION_PARAMS], lh_time now);
    /* Bytes were read: newly arrived, and how much of them was marked. */
    void (*receiver_on_arrived)(void *state, uint64_t arrived_bytes, uint64_t marked_bytes, lh_time now);
    /* Returns the limit of all bytes sent by the sender. *next_ns: latest time of the next call. */
    uint64_t (*receiver_credit)(void *state, lh_time now, lh_time *next_ns);
};

/* The limit of a sender. */
enum lh_limit {
    LH_LIMIT_IDLE,        /* nothing to send */
    LH_LIMIT_HOST,        /* this host's speed, including pacing timers that fire late */
    LH_LIMIT_RATE,        /* the controller's rate, or the given rate */
    LH_LIMIT_WINDOW,      /* the controller's window */
    LH_LIMIT_USER_WINDOW, /* lh_attr.window_bytes */
    LH_LIMIT_RECEIVER,    /* capacity of the peer's sockets */
    LH_LIMIT_CREDIT,      /* credits of the receiver */
    LH_LIMIT_FABRIC,      /* this host's socket or device, or an emulated link, is full */
    LH_LIMITS,
};

/* Congestion control of a connection's sending side. */
struct lh_congestion_report {
    char controller[32]; /* its name */
    char state[32];      /* of the controller; "": none */
    bool feedback;     /* it takes feedback; else all members from here to limited_ns are 0, except rate_bps
                          */
    uint64_t rate_bps; /* current pace of injection; LH_RATE_NONE: none */
    uint64_t window_bytes; /* current limit of bytes in flight; UINT64_MAX: none */
    uint64_t in_flight_bytes;
    uint64_t bandwidth_bps;        /* the controller's estimate of the path; 0: unknown */
    lh_time rtt_minimum_ns;        /* shortest round trip of a data packet; 0: none yet */
    lh_time queueing_delay_ns;     /* above rtt_minimum_ns, smoothed */
    lh_time queueing_delay_p99_ns; /* 99th percentile of the reports; exact to a quarter of an octave */
    lh_time queueing_delay_min_ns; /* minimum of the last 32 to 64 reports: the standing queue; 0 before */
    uint64_t sent_bytes;           /* total */
    uint64_t arrived_bytes;
    uint64_t lost_bytes;
    uint64_t marked_bytes;
    uint64_t dropped_packets;      /* part of the losses: by the peer's sockets */
    uint64_t receiver_rate_bps;    /* its read rate when they dropped, not exceeded since; 0: unknown */
    uint64_t best_rate_bps;        /* highest arrival rate over at least 8 round trips and 0.1 s */
    uint64_t remembered_rate_bps;  /* from an earlier connection, given to the controller; 0: none */
    lh_time limited_ns[LH_LIMITS]; /* time per limit since sending began; mean of all channels */
    uint32_t
        packet_bytes; /* current payload of data packets: the MTU, or less where the path MTU demands it (RFC
                         8899) */
    bool tells_loss;  /* the controller tells random loss from its own: */
    double random_loss;        /* share of packets lost at random, 0 to 1 */
    uint64_t policed_rate_bps; /* of a policer, which drops what exceeds it; 0: none found */
};

/* Returns the controllers of this build, then those that were added, ended by NULL. */
LH_API const struct lh_congestion *const *lh_congestions(void);
/* Adds a controller of the program, which stays in place until the process ends. From then on its name works
 * in lh_attr.congestion, in groups, and in scenarios of the simulator. It has no receiver's half. Call it
 * before connections are opened by other threads. -LH_EINVAL: incomplete, or its name is taken; -LH_ERANGE:
 * more than 16. */
LH_API int lh_congestion_add(const struct lh_congestion *controller);
/* Validates a text for lh_attr.congestion: "bbr", "swift,target=200us". -LH_EINVAL, with the reason. */
LH_API int lh_congestion_check(const char *text);

#ifdef __cplusplus
}
#endif
#endif
