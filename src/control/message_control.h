/*
 * keepalive.h - is the peer there? Its orderly close, its silence, the end of its process.
 *
 * Timers:
 *   silent_at    attr.peer_timeout_ns without a packet of the peer while something is pending
 *   closed_at    half a round trip after the peer closed by packets (and 10 ms where a control connection may
 *                bring a reason): what it acknowledged before may still be in flight
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_CONTROL_KEEPALIVE_H
#define LH_MESSAGE_CONTROL_KEEPALIVE_H

#include <longhaul/sdr_ext.h>

#include "wire/transfer.h"

#define KEEPALIVE_REASON_MAX 256u

#define LIFELINE_LOST 1

/* The peer's process seen another way than by its packets (src/launch: the TCP socket of the rendezvous).
 */
struct lifeline_ops {
    /* 0: it lives; -LH_ECLOSED: it closed, and its last message (*bytes of it, 0: none) is in `last`,
     * which holds TRANSFER_BYTES_MAX; -LH_EPATH: it refused, and `last` has *bytes of its reason, printable;
     * -LH_EPEER: it died; LIFELINE_LOST: nothing is known of it any more. Cheap; never
     * blocks. The connection is stepped when it changes. */
    int (*look)(void *lifeline, uint8_t *last, size_t *bytes);
    /* Signals the peer why this side ends the connection; its look() gives -LH_EPATH then. */
    void (*refuse)(void *lifeline, const char *reason);
    /* Closes with a last message, and frees the lifeline. */
    void (*close)(void *lifeline, const uint8_t *last, size_t bytes);
};

struct keepalive {
    struct sdr_qp *qp;
    lh_time timeout_ns;
    lh_time
        since_ns; /* silence counts from here at the earliest: nothing was pending, or nobody listened */
    lh_time stepped_ns; /* the last step */
    bool waits;         /* in the last step, as the next: an answer of the peer was waited for */
    bool listens;       /* and no other queue pair asks for this one */
    lh_time silent_at;
    lh_time closed_at;                       /* 0: the peer did not close */
    const struct lifeline_ops *lifeline_ops; /* or NULL */
    void *lifeline;
    bool lost; /* by the lifeline: the peer's packets alone show that it lives */
};

/* What the connection knows. */
struct keepalive_view {
    bool pending;    /* an answer of the peer is waited for */
    bool sends_open; /* messages to send are not over */
    lh_time rtt_ns;
};

/* The peer is gone. */
struct keepalive_end {
    enum lh_error error;
    char reason[KEEPALIVE_REASON_MAX];
    size_t last_bytes; /* of its last message, which counts before the error does; 0: none */
    uint8_t last[TRANSFER_BYTES_MAX];
};

/* timeout_ns: attr.peer_timeout_ns. Sets how often a silent peer is pinged. */
void keepalive_start(struct keepalive *keepalive, struct sdr_qp *qp, lh_time timeout_ns, lh_time now);
/* True when the peer is gone: *end says how. Else lowers *next. Cheap: called in each step. */
bool keepalive_step(struct keepalive *keepalive, const struct keepalive_view *view, lh_time now,
                    lh_time *next, struct keepalive_end *end);

#endif
