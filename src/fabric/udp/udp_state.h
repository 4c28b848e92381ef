/*
 * udp_state.h - the fabric of RoCEv2 packets from plain UDP sockets, from inside.
 *
 * Each channel index of a fabric has a port of its own: packets of that channel of all endpoints leave from
 * it and arrive at it, told apart by QPN. The port has one socket that is shared by all, and direct ones,
 * each of which belongs to one channel of one endpoint at a time; the kernel sorts by QPN (udp_socket.h). A
 * direct socket is read by its owner; what comes to the shared one is put into inboxes. Which channels have
 * a direct socket changes with what they do (udp_port.c), and no peer sees it. One socket more for the
 * whole fabric, the front, is bound to the RoCE port (4791) when that is free: control datagrams of all
 * endpoints come there, and so do the data packets of RoCE hardware, which knows no other port. See
 * udp_tx.c, udp_rx.c and demux.c.
 *
 * Threads: everything in udp_channel, and in the direct socket that it has, belongs to the thread that holds
 * the channel; fields behind udp_fabric.lock are marked.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_UDP_STATE_H
#define LH_FABRIC_UDP_UDP_STATE_H

#include <pthread.h>
#include <sys/socket.h>

#include "fabric/fabric.h"
#include "fabric/rx_check.h"
#include "fabric/udp/udp_bypass.h"
#include "fabric/udp/udp_keys.h"
#include "fabric/udp/udp_queues.h"
#include "fabric/udp/udp_socket.h"

/* Bytes of a GSO burst: below the 65,507 of a datagram, with room for headers. */
#define UDP_GSO_BYTES_MAX 65000u
/* Before a packet in tx memory: pad (at most 3) and iCRC of the one before it, right aligned. */
#define UDP_TRAILER_ROOM 8u
#define UDP_PACKET_MAX   (SEAL_BYTES + ROCE_WRITE_IMM_HEADER_BYTES + ROCE_PAYLOAD_MAX)
#define UDP_MESSAGE_MAX  65535u /* no UDP datagram is longer, joined ones neither */
/* Packets with immediate that one message can hold at most (each of them empty). */
#define UDP_ARRIVALS_MAX (UDP_MESSAGE_MAX / (ROCE_WRITE_IMM_HEADER_BYTES + ROCE_ICRC_BYTES))
/* IP IDs that a UDP peer's packets have: the place in their GSO burst, of 128 at most in any kernel. */
#define UDP_IP_ID_MAX 127u

struct udp_tx {
    bool gso; /* false once the kernel has refused it */
    union udp_address to;
    struct icrc_flow flow;
    struct udp_prefix prefix;
    struct udp_next_hop hop; /* of a bypass */
};

struct udp_rx {
    union udp_address from;
    struct icrc_flow flow;
    struct udp_prefix prefix;
    uint64_t dropped_since; /* messages, by polls that found more behind them */
    struct udp_arrivals arrivals;
    uint32_t proven;         /* of the last message: packets that are the peer's */
    bool marked;             /* the message at hand is */
    uint32_t from_inbox;     /* packets since a direct socket was wanted last */
    uint32_t empty_polls;    /* of the direct socket */
    uint32_t idle_polls;     /* of it, while no slot is open */
    bool bypassed;           /* what came last came by the bypass */
    uint32_t bypass_empty;   /* polls of it since then */
    bool shared_unread;      /* packets from before the direct socket may wait in the shared one */
    bool leaving;            /* the direct socket gets no more, and is read to its end */
    _Atomic bool was_shared; /* a packet came by way of the shared socket since drops were counted last */
    _Atomic uint32_t shared_drops; /* of the shared socket, those that were counted */
};

struct udp_channel;

/* A socket of a port that one channel has for itself, and what it reads messages into. Its memory stays until
 * the fabric is closed. */
struct udp_direct {
    struct udp_socket socket;
    uint32_t socket_slot;
    struct udp_channel *channel;   /* under the lock; NULL: nobody's */
    _Atomic bool leave;            /* its owner is asked to give it up */
    _Atomic uint32_t kernel_drops; /* of the socket, those that were counted */
    uint64_t rate_bps;             /* that the kernel spaces it by */
    struct fabric_arrival waiting[UDP_ARRIVALS_MAX];
    uint8_t staging[UDP_MESSAGE_MAX];
};

/* The port of a channel index; under the lock, but for what never changes. */
struct udp_port {
    struct udp_socket shared;
    struct udp_socket_slots socket_slots;
    uint32_t slots_max; /* fewer than UDP_SOCKET_SLOTS_MAX where the system sets a limit */
    struct udp_direct *direct[UDP_SOCKET_SLOTS_MAX];
};

struct udp_generation {
    lh_time cnp_ns; /* when the peer was notified of a mark last; 0: never */
    uint32_t qpn;
    uint32_t peer_qpn;
    uint32_t psn; /* of the next packet to the peer */
};

/* In cache lines of its own: another thread works on the next channel. */
struct udp_channel {
    struct udp_endpoint *endpoint;
    uint32_t index;
    uint16_t peer_port;
    struct udp_port *port;
    _Atomic(struct udp_direct *) direct; /* changed by the owner only; NULL: it has none */
    struct udp_inbox inbox;
    struct udp_tx tx;
    struct udp_rx rx;
    struct udp_generation generations[]; /* attr.generations; the peer has no more */
};

/* Control datagrams that wait for an endpoint that is not connected yet, and for all of these. Its peer only
 * pings by then; anybody else may send as well. */
#define UDP_EARLY_INBOX 16u
#define UDP_EARLY_MAX   (UDP_POOL_PACKETS / 4)

/* What is the same for all channels of the peer. */
struct udp_peer {
    uint8_t fabric; /* enum qp_info_fabric */
    uint8_t generations;
    bool translated;
    uint16_t control_port;
    uint32_t control_qpn;
    uint32_t proof;
};

/* In one piece with its channels. */
struct udp_endpoint {
    struct fabric_endpoint base;
    struct rx_table table;
    struct udp_keys *keys; /* set under the lock, before it is connected; NULL: all is in clear text */
    uint32_t open_count;   /* slots */
    uint32_t control_qpn;
    bool connected;
    struct udp_peer peer;
    union udp_address peer_address; /* port 0 */
    union udp_address seen_address; /* of a peer that may be behind NAT, port 0; else as above */
    _Atomic uint16_t seen_port;     /* 0: its control packets come from its own address; else from there */
    _Atomic bool punching;          /* this side is behind NAT */
    uint32_t punch_proof;           /* set before that */
    lh_time punch_at;               /* the control worker's, as the next */
    lh_time punch_span;
    uint32_t control_psn;
    bool control_gso;          /* as udp_tx.gso */
    struct udp_inbox control;  /* under udp_fabric.lock */
    _Atomic uint64_t pace_bps; /* that the kernel is to space each channel by; UINT64_MAX: not */
    struct udp_channel *channels[];
};

struct udp_fabric {
    struct fabric base;
    union udp_address local; /* port 0 */
    uint64_t receive_buffer_bytes;
    struct udp_bypass *bypass;     /* NULL: all goes through the sockets */
    _Atomic uint32_t bypass_drops; /* those that were counted */
    char warning[256];
    struct udp_socket front; /* reads under the lock; writes need none */
    pthread_mutex_t lock;
    struct qpn_table qps;           /* under the lock */
    struct udp_demux *demux;        /* under the lock */
    struct udp_packet_pool packets; /* of data; see udp_queues.h; the lock is the writer's */
    struct udp_packet_pool control; /* of control messages */
    uint32_t early;                 /* of these, for endpoints that are not connected; under the lock */
    struct udp_port
        *ports[QP_INFO_CHANNELS_MAX]; /* under the lock; NULL: no endpoint had such a channel yet */
    uint32_t endpoints;               /* under the lock */
    int readable;                     /* epoll set of the front and all shared sockets */
    struct lh_stats strays;           /* packets without an owner that nobody's counters have yet */
};

extern const struct fabric_ops fabric_udp_ops;

static inline struct udp_endpoint *udp_endpoint_of(struct fabric_endpoint *endpoint)
{
    return (struct udp_endpoint *)endpoint;
}

static inline struct udp_direct *udp_direct_of(const struct udp_channel *channel)
{
    return atomic_load_explicit(&channel->direct, memory_order_acquire);
}

/* That its packets leave from. */
static inline int udp_channel_fd(const struct udp_channel *channel)
{
    const struct udp_direct *direct = udp_direct_of(channel);
    return direct != NULL ? direct->socket.fd : channel->port->shared.fd;
}

static inline struct udp_fabric *udp_fabric_of(const struct udp_endpoint *endpoint)
{
    return (struct udp_fabric *)endpoint->base.fabric;
}

#endif
