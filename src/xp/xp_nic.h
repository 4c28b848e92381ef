/*
 * xp_nic.h - the XP transport of a NIC, as a pure machine (OptiNIC paper, section 3.1): packets, posted work
 * and time in; packets and completions out. It retransmits nothing, orders nothing, and ends every
 * operation by its deadline.
 *
 * A queue pair has one active message in each direction. A packet of the active one is placed where it
 * says; one of a later message ends the active one, with what has come (preemption); one of an earlier
 * message is dropped. It counts bytes and keeps no bitmap: which ones are missing, and whether some came
 * twice, it does not know.
 *
 * Its state is 52 bytes a queue pair: 20 of transport, 32 of rate control. The posted work lies in the
 * host's memory, as the work queue of a NIC does, and so do the timers' links and the address of the peer.
 *
 * Deadlines, by verb: SEND and RECV each end their own side; WRITE the sender's only; WRITE_IMM both; READ
 * carries what is left of it in the request, and the responder stops sending then. A receive's deadline
 * counts from when it is the queue pair's next, since only then can it be active; a send's likewise.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_XP_XP_NIC_H
#define LH_XP_XP_NIC_H

#include <longhaul/xp.h>

#include "wire/xp_header.h"
#include "xp/xp_pacing.h"

#define XP_NONE UINT32_MAX
/* A message further ahead of the expected one is no successor but forged, or of another life. A receiver
 * that stood still misses so many only in a second of the smallest messages; it is back when the number has
 * wrapped. */
#define XP_SEQ_WINDOW (UINT32_C(1) << 20)

/* ---- 52 bytes ---------------------------------------------------------------------------------------- */

struct xp_transport {
    uint32_t peer_qpn : 24;
    uint32_t open : 1;
    uint32_t connected : 1;
    uint32_t active : 1;   /* a message is being received */
    uint32_t receives : 1; /* it takes a receive */
    uint32_t notify : 1;   /* a packet of it was marked: a notification is due */
    uint32_t : 3;
    uint32_t tx_seq : 24;  /* of the message that is being sent, or the next one */
    uint32_t notified : 8; /* when the last notification of congestion left, in units of 2^14 ns */
    uint32_t rx_seq : 24;  /* of the active message, or the one that is expected */
    uint32_t : 8;
    uint32_t rx_bytes;   /* of the active message, placed */
    uint16_t tx_receive; /* receives of the peer that were taken by what was sent */
    uint16_t rx_receive; /* the next receive, counted from the start */
};

struct xp_qp {
    struct xp_transport transport;
    struct xp_rate rate;
};

/* ---- memory of the host ------------------------------------------------------------------------------- */

/* Posted work: an entry of a queue pair's send or receive queue, or a response to a READ. */
struct xp_work {
    uint64_t user;
    uint8_t *buffer; /* NULL: bytes are counted only (simulation) */
    uint64_t remote; /* WRITE, WRITE_IMM, READ: address at the peer */
    lh_time timeout_ns;
    lh_time due; /* once it is the first of its queue */
    uint32_t bytes;
    uint32_t done;   /* transmitted; READ: placed */
    uint32_t length; /* RECV: of the message */
    uint32_t key, immediate;
    uint32_t next;
    uint32_t seq; /* of a response: of its request */
    uint16_t stride;
    uint8_t verb;
    bool requested; /* READ: the request has left */
};

/* A list of work, by index. */
struct xp_queue {
    uint32_t first, last;
};

/* What belongs to a queue pair and is not of the NIC. */
struct xp_host_qp {
    struct xp_queue sends, receives;
    uint32_t response;   /* XP_NONE: none; one at a time */
    uint32_t peer;       /* the caller's name of where packets go */
    uint32_t ready_next; /* of the list of those with packets to send */
    bool ready;
};

struct xp_region {
    uint8_t *base;
    uint64_t bytes;
    uint32_t key; /* 0: free */
    uint32_t access;
};

struct xp_limits {
    uint32_t qps;       /* to 2^24 - 1 */
    uint32_t works;     /* posted and not yet polled as completed */
    uint32_t responses; /* to READs, at once */
    uint32_t regions;   /* to 65535 */
};

#define XP_TIMERS 3u /* of a queue pair */

/* All memory is the caller's, and zeroed. */
struct xp_memory {
    struct xp_qp *qps;
    struct xp_host_qp *host;
    struct wheel_timer *timers;           /* XP_TIMERS for each queue pair */
    uint32_t *due;                        /* likewise */
    struct xp_work *works;                /* works + responses */
    struct lh_xp_completion *completions; /* works */
    struct xp_region *regions;
};

struct xp_nic {
    struct xp_limits limits;
    struct xp_memory memory;
    struct xp_rate_config rate;
    uint32_t mtu_bytes; /* payload of a packet */
    uint32_t free_qp, free_work, free_response;
    uint32_t used_works; /* posted, or completed and not yet polled */
    uint32_t completed_first, completed;
    struct xp_queue ready; /* queue pairs with something to send */
    struct wheel wheel;    /* timer 3q: receives, 3q + 1: sends, 3q + 2: pace; q = qpn - 1 */
    struct lh_xp_counters counters;
};

/* ---- set-up ------------------------------------------------------------------------------------------ */

/* tick_ns: operations end within their deadline and one tick. */
void xp_nic_init(struct xp_nic *nic, const struct xp_limits *limits, const struct xp_memory *memory,
                 const struct xp_rate_config *rate, uint32_t mtu_bytes, lh_time tick_ns, lh_time now);
/* -LH_EAGAIN: all are open. */
int xp_nic_open(struct xp_nic *nic, uint32_t *qpn);

/* The other end. The first message of each direction has that number: both are exchanged, and drawn at
 * random, so that no packet of an earlier life is taken for one of this. */
struct xp_peer {
    uint32_t peer; /* the caller's name of where packets go and come from */
    uint32_t qpn;
    uint32_t tx_seq, rx_seq;
};

/* -LH_EINVAL: no such queue pair; -LH_ESTATE: connected already. */
int xp_nic_connect(struct xp_nic *nic, uint32_t qpn, const struct xp_peer *peer, lh_time now);
/* All that is posted completes as flushed. -LH_EINVAL: no such queue pair. */
int xp_nic_close(struct xp_nic *nic, uint32_t qpn);

/* Memory that peers may write or read by the key, which is not 0. random: 16 bits of it are in the key.
 * -LH_EAGAIN: there are as many regions as can be. */
int xp_nic_expose(struct xp_nic *nic, void *base, uint64_t bytes, uint32_t access, uint32_t random,
                  uint32_t *key);
/* No packet touches it any more, but for those that have left by xp_nic_transmit(). -LH_EKEY: no region has
 * that key. */
int xp_nic_withdraw(struct xp_nic *nic, uint32_t key, struct xp_region *was);

/* ---- work -------------------------------------------------------------------------------------------- */

/* -LH_EINVAL: no such queue pair, verb, size or timeout; -LH_ESTATE: not connected; -LH_EAGAIN: too much is
 * posted, or completed and not polled. */
int xp_nic_post(struct xp_nic *nic, uint32_t qpn, const struct lh_xp_request *request, lh_time now);
uint32_t xp_nic_poll(struct xp_nic *nic, struct lh_xp_completion *completions, uint32_t count);

/* ---- packets and time -------------------------------------------------------------------------------- */

/* One that has come from `peer`, its iCRC checked; marked: congestion experienced. */
void xp_nic_arrive(struct xp_nic *nic, uint32_t peer, const struct xp_packet *packet, bool marked,
                   lh_time now);

struct xp_departure {
    uint32_t peer;
    struct xp_packet
        packet; /* its payload lies in the buffer of the work, which may complete at the next call */
};

/* The next packet that may leave; false: none now. */
bool xp_nic_transmit(struct xp_nic *nic, lh_time now, struct xp_departure *departure);
/* Ends what is due. */
void xp_nic_expire(struct xp_nic *nic, lh_time now);
/* When xp_nic_expire() is to be called next, at the latest; LH_TIME_NEVER. */
lh_time xp_nic_next(const struct xp_nic *nic);

/* ---- work ------------------------------------------------------------------------------------------ */

/* Posted work: from the free list to a queue of a queue pair, and to its completion. */

/* Timers of a queue pair. */
enum {
    XP_TIMER_RECEIVE,
    XP_TIMER_SEND,
    XP_TIMER_PACE,
};

static inline uint32_t xp_timer(uint32_t qpn, uint32_t which)
{
    return (qpn - 1) * XP_TIMERS + which;
}

static inline struct xp_transport *xp_transport_of(struct xp_nic *nic, uint32_t qpn)
{
    return &nic->memory.qps[qpn - 1].transport;
}

static inline struct xp_host_qp *xp_host_of(struct xp_nic *nic, uint32_t qpn)
{
    return &nic->memory.host[qpn - 1];
}

/* The first of a queue; NULL: it is empty. */
static inline struct xp_work *xp_first(struct xp_nic *nic, const struct xp_queue *queue)
{
    return queue->first == XP_NONE ? NULL : &nic->memory.works[queue->first];
}

/* Puts it into the list of those that have something to send, if it is not there. */
void xp_ready(struct xp_nic *nic, uint32_t qpn);
/* The first of the queue has ended, and the next one begins. bytes: placed. */
void xp_end_receive(struct xp_nic *nic, uint32_t qpn, enum lh_xp_status status, uint32_t bytes,
                    lh_time now);
void xp_end_send(struct xp_nic *nic, uint32_t qpn, enum lh_xp_status status, lh_time now);

/* A response, or XP_NONE. */
uint32_t xp_take_response(struct xp_nic *nic);
void xp_give_response(struct xp_nic *nic, uint32_t qpn);

#endif
