/*
 * bottleneck.h - what limited a sender, from where its time went; warnings. Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_BOTTLENECK_H
#define LH_MESSAGE_BOTTLENECK_H

#include <longhaul/congestion.h>
#include <longhaul/connection.h>

#include "message/tx_state.h"

/* Times, all since the first message. */
struct bottleneck_times {
    lh_time message_ns;         /* no message was pending */
    lh_time acknowledgement_ns; /* all was sent, not all acknowledged */
    lh_time window_ns;          /* the user's window */
    lh_time slots_ns;
    lh_time receiver_ns; /* what the peer's sockets hold, or no receive was posted */
    lh_time pace_ns;     /* the controller's rate, window or credits */
    lh_time device_ns;   /* the fabric took no more */
    lh_time cpu_ns;      /* nothing but the speed of this host */
};

/* What limited the SDR layer; and where it had nothing to send, what the sending part above it waited for. */
struct bottleneck_times bottleneck_times_of(const lh_time limited_ns[LH_LIMITS],
                                            const struct tx_waits *waits);

/* What counts besides. */
struct bottleneck_facts {
    bool given;          /* rate_bps was given: no controller found it */
    bool at_most;        /* the pace is at lh_attr.rate_max_bps */
    bool emulated;       /* a link with a rate */
    bool queue_known;    /* the controller measures queueing delay */
    lh_time standing_ns; /* the shortest queueing delay of the last reports; 0: no queue stands */
    bool receiver_slow;  /* it dropped packets, and has read no faster since */
    bool loss_known;     /* the controller tells random loss from its own: */
    double random_loss;  /* share of packets */
};

/* Sets bottleneck, share, device and emulated of a report whose other members are set. */
void bottleneck_decide(const struct bottleneck_times *times, const struct bottleneck_facts *facts,
                       struct lh_bottleneck_report *report);

/* ---- warning --------------------------------------------------------------------------------------- */

/* What users should know of a connection that works: it will be slower than it could be. Pure. */

#define WARNING_MAX 512u

struct warning_facts {
    const char *fabric; /* its own warning, or NULL */
    lh_time rtt_ns;     /* 0: not known yet */
    uint32_t
        packet_bytes; /* of the packets that leave: below attr->mtu_bytes where the path takes no more */
};

/* Formats the warning of the fabric, that of a path which takes only smaller packets, and that of a window
 * below rate x round trip, where a rate was given and the round trip is known. NULL: there is none. */
const char *warning_format(const struct lh_attr *attr, const struct warning_facts *facts,
                           char out[WARNING_MAX]);

#endif
