/*
 * netsim_port.h - one directed link: queue, transmitter, wire, packets, clock drift and loss of signals.
 *
 * Links are numbered node by node, in the order of the nodes' ports.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_ENGINE_NETSIM_PORT_H
#define LH_NETSIM_ENGINE_NETSIM_PORT_H

#include <assert.h>

#include <longhaul/flowcontrol.h>
#include <longhaul/netsim.h>

#include "base/link_spec.h"
#include "netsim/base/netsim_config.h"
#include "netsim/base/netsim_time.h"

/* ---- packet ---------------------------------------------------------------------------------------- */

/*
 * Packets of the simulated network: one cache line each, in a pool, known by their number.
 *
 * A packet is on exactly one list at a time: free, in a port's queue, on a wire, or delivered.
 */

#define NETSIM_NO_PACKET UINT32_MAX
#define NETSIM_NO_FLOW   UINT32_MAX
#define NETSIM_HOLD      UINT32_MAX /* in place of quanta: until the resume */

enum netsim_packet_flag {
    NETSIM_MARKED = 1,    /* ECN: congestion experienced */
    NETSIM_REPEATED = 2,  /* not sent for the first time */
    NETSIM_CORRUPTED = 4, /* on a link */
    NETSIM_NACK = 8,      /* ack: the packet that it answers came too early and was not taken */
    NETSIM_COPY = 16,     /* made by a link: nobody had credit for it */
    NETSIM_CREDIT = 32,   /* ack: it answers no packet, and only tells of credit */
    NETSIM_CAPABLE = 64,  /* raw: may be marked; data always may */
    NETSIM_BEHIND = 128,  /* ack: messages of its queue pair before its own have come whole */
};

struct netsim_packet {
    uint32_t next;
    uint32_t flow;
    netsim_time arrive_ps; /* at the end of the wire it is on, or was on last */
    netsim_time sent_ps; /* data: when the host injected it; ack: the same of the packet that it answers */
    uint64_t cookie;     /* raw: whatever the sender gave; pause: quanta; credit: the limit */
    uint32_t source;     /* hosts */
    uint32_t destination;
    uint32_t sequence; /* data: number in the flow; ack: every packet before this one has arrived */
    uint32_t echo;     /* ack: number of the packet that it answers; raw and corrupted: which bit */
    uint32_t entropy;  /* what ECMP hashes */
    union {
        uint32_t ingress; /* in a switch: the link by which it came */
        uint32_t below;   /* on a wire, among the overtakers */
    };
    uint16_t wire_bytes;
    uint8_t kind; /* enum lh_netsim_kind */
    uint8_t priority;
    uint8_t flags;
    uint8_t unused[3];
};

struct netsim_packet_pool {
    struct netsim_packet *packets;
    uint32_t capacity;
    uint32_t fresh; /* packets from here on were never used, so their memory was never touched */
    uint32_t free;  /* head of the list of those that were */
    uint32_t alive;
    uint32_t alive_max;
};

static inline void netsim_packet_pool_init(struct netsim_packet_pool *pool, struct netsim_arena *arena,
                                           uint32_t capacity)
{
    *pool = (struct netsim_packet_pool){.capacity = capacity, .free = NETSIM_NO_PACKET};
    pool->packets = (struct netsim_packet *)netsim_arena_take(arena, capacity, sizeof *pool->packets);
}

/* NETSIM_NO_PACKET when all are alive. What is in it is left over from before. */
static inline uint32_t netsim_packet_get(struct netsim_packet_pool *pool)
{
    uint32_t number = pool->free;
    if (number != NETSIM_NO_PACKET)
        pool->free = pool->packets[number].next;
    else if (pool->fresh < pool->capacity)
        number = pool->fresh++;
    else
        return NETSIM_NO_PACKET;
    if (++pool->alive > pool->alive_max)
        pool->alive_max = pool->alive;
    return number;
}

static inline void netsim_packet_put(struct netsim_packet_pool *pool, uint32_t number)
{
    assert(pool->alive > 0);
    pool->packets[number].next = pool->free;
    pool->free = number;
    pool->alive--;
}

/* ---- drift ----------------------------------------------------------------------------------------- */

/*
 * A cable whose delay changes slowly: warmth makes fibre longer, another route is another length.
 *
 * The delay is shortest at time 0, goes up in a line for half a period, and down again as long: a triangle.
 * What sets out later arrives later, or at the same time: the slope is below 1.
 */

struct netsim_drift {
    netsim_time half_ps; /* of the period */
    double slope;        /* of the delay, per time; 0: it stays as it is */
};

/* The delay grows by up to max_ps (0: it does not drift) within a period. Both have passed
 * netsim_drift_check(). */
void netsim_drift_init(struct netsim_drift *drift, netsim_time max_ps, netsim_time period_ps);

/* -LH_EINVAL, with key and remedy: the delay would fall so fast that packets overtake. */
int netsim_drift_check(netsim_time max_ps, netsim_time period_ps);

/* What the delay of a packet whose last bit sets out then is longer than the shortest, rounded down. */
netsim_time netsim_drift_at(const struct netsim_drift *drift, netsim_time at_ps);

/* The most that is ever added. */
netsim_time netsim_drift_max(const struct netsim_drift *drift);

/* ---- signal loss ----------------------------------------------------------------------------------- */

/*
 * What becomes of pauses, resumes and credits on a long link: each may be lost, and in an
 * outage all are. Data is not touched.
 */

/* Of one direction of a link. */
struct netsim_signal_loss {
    struct lh_link_state link; /* which draws */
    netsim_time mute_from_ps;
    netsim_time mute_until_ps;
};

/* Whether signals can be lost at all. */
bool netsim_signals_suffer(const struct netsim_long_config *config);
/* 0; -LH_EINVAL, -LH_ERANGE with key, value and remedy. */
int netsim_signal_loss_check(const struct netsim_long_config *config);

/* The configuration has passed netsim_signal_loss_check(). */
void netsim_signal_loss_init(struct netsim_signal_loss *loss, const struct netsim_long_config *config,
                             uint64_t seed);
/* The fate of a signal that sets out now; one draw for each. */
bool netsim_signal_is_lost(struct netsim_signal_loss *loss, netsim_time now_ps);

/* ---- port ------------------------------------------------------------------------------------------ */

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
