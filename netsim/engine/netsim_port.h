/*
 * port.h - one directed link: the queue in front of it, its transmitter, its wire, and what its packets
 * occupy at the far end.
 *
 * Links are numbered node by node, in the order of the nodes' ports.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_ENGINE_PORT_H
#define LH_NETSIM_ENGINE_PORT_H

#include <longhaul/flowcontrol.h>

#include "base/link_fate.h"
#include "netsim/base/config.h"
#include "netsim/engine/drift.h"
#include "netsim/engine/packet.h"
#include "netsim/engine/signal_loss.h"

/* How the far end of a link keeps its near end from overrunning it. */
enum netsim_control {
    NETSIM_CONTROL_NONE,
    NETSIM_CONTROL_PFC,
    NETSIM_CONTROL_CREDITS,
    NETSIM_CONTROL_BIFROST,
    NETSIM_CONTROL_RELAY, /* the far end is a relay of SWING */
};

enum netsim_port_flag {
    NETSIM_PORT_OF_HOST = 1, /* a host sends here: what its flows have counts as queued */
    NETSIM_PORT_TO_HOST = 2,
    NETSIM_PORT_FAULTY = 4, /* some of what it carries may be lost */
    NETSIM_PORT_WATCHED = 8,
    NETSIM_PORT_CREDITS = 16,  /* data needs credit from the far end */
    NETSIM_PORT_OF_RELAY = 32, /* a relay sends here: what stops it stops who sends to the relay */
    NETSIM_PORT_REPORTS = 64,  /* flow control of this link takes each departure at its far end */
    NETSIM_PORT_DRIFTS = 128,  /* its delay changes */
};

struct netsim_port {
    /* used for each packet */
    netsim_time free_ps; /* the transmitter is done with its packet */
    uint64_t ps_per_byte_q16;
    netsim_time delay_ps; /* the shortest, where it drifts */
    uint32_t wire_first;  /* packets on the wire, in the order of their arrival; but see overtakers */
    uint32_t wire_last;
    uint32_t far;     /* node at the far end */
    uint32_t reverse; /* the link back */
    uint64_t sent_bytes;
    uint32_t urgent_first; /* pause and resume frames: before everything else */
    uint32_t urgent_last;
    uint8_t ready;   /* bit p: the queue of priority p is not empty */
    uint8_t paused;  /* bit p: the far end has stopped priority p */
    uint8_t flags;   /* enum netsim_port_flag */
    uint8_t stopped; /* bit p: the switch at the far end has stopped priority p of this link */
    uint32_t owner;  /* node that sends here */
    uint32_t first[NETSIM_PRIORITIES];
    uint32_t last[NETSIM_PRIORITIES];
    uint64_t queue_bytes[NETSIM_PRIORITIES];
    uint64_t held_bytes[NETSIM_PRIORITIES]; /* of this link, in the switch at its far end */
    uint64_t sent_packets;
    uint64_t queued_bytes; /* all priorities */
    uint64_t queued_max_bytes;
    /* Of flow control, at the far end as held_bytes. */
    uint64_t own_bytes;         /* of buffer, each priority; 0: it shares the switch's */
    uint64_t pause_above_bytes; /* held of the data: from here on flow control takes each arrival */
    uint64_t held_max_bytes;
    uint64_t sent_payload_bytes;
    uint32_t long_link; /* number among those that have a state machine */
    uint8_t control;    /* enum netsim_control */
    uint8_t stalled;    /* bit p: its host pauses, and sends nothing of priority p */
    uint8_t unused[2];
};
_Static_assert(sizeof(struct netsim_port) == 320, "five cache lines");

/* Rarely used. */
struct netsim_port_more {
    uint64_t rate_bps;
    uint64_t dropped_packets;
    uint64_t lost_packets;
    uint64_t marked_packets;
    uint64_t ecn_min_bytes;
    uint64_t ecn_max_bytes;
    uint64_t pauses;
    struct lh_pfc_thresholds pfc; /* of what comes by this link */
    netsim_time paused_since_ps;  /* when `paused` became non-zero */
    netsim_time paused_ps;        /* before that */
    netsim_time down_until_ps;    /* what is sent before this is lost */
    uint32_t overtakers; /* on the wire: a heap, of those that arrive before what was sent before them */
    struct netsim_drift drift;
    struct lh_prng marking;
    struct lh_link_state *faults;       /* NULL: none */
    struct netsim_signal_loss *signals; /* NULL: none is lost */
};

#endif
