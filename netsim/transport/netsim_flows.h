/*
 * flow.h - one flow: what its sender and its receiver know.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TRANSPORT_FLOW_H
#define LH_NETSIM_TRANSPORT_FLOW_H

#include <stdbool.h>

#include "netsim/base/time.h"

/* Packets are numbered 0 … packets - 1. Sent, not acknowledged: those from `acknowledged` to `next` whose
 * bit in `taken` is 0. */
struct netsim_sender {
    uint32_t source;
    uint32_t destination;
    uint32_t packets;
    uint32_t next;         /* not sent yet; with go-back-N also: to be retransmitted */
    uint32_t acknowledged; /* all before it have arrived */
    uint32_t highest;      /* one past the highest that is known to have arrived */
    uint32_t window_packets;
    uint32_t entropy;
    uint32_t ring_next;     /* in the host's ring of flows that may send */
    uint32_t last_bytes;    /* payload of the last packet */
    uint32_t recovery_end;  /* while recovering: over when acknowledged is here */
    uint32_t recovery_scan; /* while recovering: no gap before it is to be retransmitted */
    uint32_t sent_end;      /* never sent before */
    uint8_t in_ring;
    uint8_t recovering;
    uint8_t all_lost; /* recovering from a timeout: everything not acknowledged counts as lost */
    uint8_t backoff;  /* consecutive timeouts */
    uint8_t failed;   /* too many of them */
    uint8_t held;     /* by its congestion controller */
    uint32_t repeated_packets;
    uint64_t *taken; /* bit n: packet n has arrived out of order; NULL when nothing is retransmitted */
    netsim_time progress_ps; /* last acknowledgement, or transmission of the oldest unacknowledged packet */
    netsim_time base_rtt_ps;
    netsim_time smoothed_rtt_ps;
    netsim_time pace_ps; /* not before: when the next packet may leave */
    uint64_t sent_packets;
    uint32_t timeouts;
};

struct netsim_receiver {
    uint32_t expected;     /* all before it have arrived */
    uint32_t out_of_order; /* that arrived beyond it */
    uint32_t reported;     /* go-back-N: the gap here has been reported */
    uint64_t *arrived;     /* bit n, for n >= expected */
    netsim_time report_ps; /* go-back-N: when it is again */
    netsim_time notify_ps; /* when congestion may be notified again */
};

/* When it began and ended. */
struct netsim_flow {
    struct netsim_sender sender;
    struct netsim_receiver receiver;
    uint64_t bytes;
    uint64_t missing_bytes; /* that its receiver ended without, at a deadline; else 0 */
    netsim_time start_ps;
    netsim_time received_ps; /* NETSIM_NEVER: not yet */
    netsim_time done_ps;
    netsim_time ideal_ps; /* 0: not computed yet */
    uint32_t pair_before; /* of the same queue pair: the flow that started before, and */
    uint32_t pair_after;  /* the one that did after it; NETSIM_NO_FLOW */
};

#endif
