/*
 * udp.h - the fabric of RoCEv2 packets from plain UDP sockets, from inside.
 *
 * Each channel of an endpoint has a data socket: its packets leave from it and the peer's come to it. All
 * generations of a channel share that socket and are distinguished by QPN. One socket more for the whole
 * fabric, the front, is bound to the RoCE port (4791) when that is free: control datagrams of all endpoints
 * come there, and so do the data packets of RoCE hardware, which knows no other port. See tx.c, rx.c and
 * demux.c.
 *
 * Threads: everything in udp_channel belongs to the thread that holds the channel; fields behind
 * udp_fabric.lock are marked.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_UDP_H
#define LH_FABRIC_UDP_UDP_H

#include <pthread.h>
#include <sys/socket.h>

#include "fabric/fabric.h"
#include "fabric/rx_check.h"
#include "fabric/udp/inbox.h"
#include "fabric/udp/placement.h"
#include "fabric/udp/prefix.h"
#include "fabric/udp/qpn_table.h"
#include "fabric/udp/scatter.h"
#include "fabric/udp/socket.h"

/* Bytes of a GSO burst: below the 65,507 of a datagram, with room for headers. */
#define UDP_GSO_BYTES_MAX 65000u
/* Before a packet in tx memory: pad (at most 3) and iCRC of the one before it, right aligned. */
#define UDP_TRAILER_ROOM 8u
#define UDP_PACKET_MAX   (ROCE_WRITE_IMM_HEADER_BYTES + ROCE_MTU_MAX + ROCE_ICRC_BYTES)
/* Packets with immediate that one message can hold at most (each of them empty). */
#define UDP_ARRIVALS_MAX (UDP_MESSAGE_MAX / UDP_RECORD_BYTES)
/* IP IDs that a UDP peer's packets have: the place in their GSO burst, of 128 at most in any kernel. */
#define UDP_IP_ID_MAX 127u

struct udp_tx {
    bool gso; /* false once the kernel has refused it */
    union udp_address to;
    struct icrc_flow flow;
    struct udp_prefix prefix;
    uint32_t psn[QP_INFO_GENERATIONS_MAX];
    uint32_t messages;
    uint32_t iovs;
    uint8_t frames[FABRIC_BATCH_MAX + 1][UDP_TRAILER_ROOM + ROCE_WRITE_IMM_HEADER_BYTES];
    struct iovec iov[3 * FABRIC_BATCH_MAX];
    struct mmsghdr message[FABRIC_BATCH_MAX];
    uint32_t message_writes[FABRIC_BATCH_MAX];
    uint64_t message_wire_bytes[FABRIC_BATCH_MAX];
    _Alignas(struct cmsghdr) uint8_t segment[FABRIC_BATCH_MAX][CMSG_SPACE(sizeof(uint16_t))];
    uint8_t damaged[UDP_PACKET_MAX]; /* the one packet of a batch that is sent with a flipped bit */
};

/* A payload that lies elsewhere than where it belongs. */
struct udp_move {
    uint8_t *place;
    const uint8_t *bytes;
    uint32_t count;
};

struct udp_rx {
    struct placement placement;
    struct udp_scatter scatter;
    union udp_address from;
    struct icrc_flow flow;
    struct udp_prefix prefix;
    _Atomic uint32_t kernel_drops; /* of the socket, those that were counted */
    uint64_t dropped_since;        /* messages, by polls that found more behind them */
    uint32_t ready_next;           /* arrivals that wait to be returned: ready[next … count) */
    uint32_t ready_count;
    struct fabric_arrival ready[UDP_ARRIVALS_MAX];
    struct udp_move moves[UDP_ARRIVALS_MAX];
    uint32_t move_count;
    uint32_t aside_bytes;                        /* used of aside */
    uint32_t late;                               /* of the message at hand */
    uint32_t proven;                             /* of the last message: packets that are the peer's */
    lh_time cnp_ns[QP_INFO_GENERATIONS_MAX];     /* when the peer was notified of a mark last; 0: never */
    uint8_t header[ROCE_WRITE_IMM_HEADER_BYTES]; /* of a packet whose own lies in pieces */
    uint8_t staging[UDP_MESSAGE_MAX];
    uint8_t aside[UDP_MESSAGE_MAX]; /* payloads that landed in a place that another may need */
};

struct udp_channel {
    struct udp_endpoint *endpoint;
    uint32_t index;
    struct udp_socket socket;
    struct udp_inbox *inbox; /* of a hardware peer only; filled under udp_fabric.lock */
    struct udp_tx tx;
    struct udp_rx rx;
};

/* Control datagrams that wait; more are dropped. */
#define UDP_CONTROL_INBOX 64u

struct udp_control_waiting {
    union udp_address from;
    struct fabric_control_arrival arrival;
};

struct udp_endpoint {
    struct fabric_endpoint base;
    struct rx_table table;
    uint64_t *open; /* one bit a slot */
    struct udp_channel **channels;
    uint32_t qpn[QP_INFO_GENERATIONS_MAX][QP_INFO_CHANNELS_MAX];
    uint32_t control_qpn;
    bool connected;
    struct qp_info_endpoint peer;
    union udp_address peer_address; /* port 0 */
    union udp_address seen_address; /* of a peer that may be behind NAT, port 0; else as above */
    _Atomic uint16_t seen_port;     /* 0: its control packets come from its own address; else from there */
    _Atomic bool punching;          /* this side is behind NAT */
    uint32_t punch_proof;           /* set before that */
    lh_time punch_at;               /* the control worker's, as the next */
    lh_time punch_span;
    uint32_t control_psn;
    struct udp_control_waiting *control; /* ring, under udp_fabric.lock */
    uint32_t control_first;
    uint32_t control_count;
};

struct udp_fabric {
    struct fabric base;
    union udp_address local; /* port 0 */
    uint64_t receive_buffer_bytes;
    char warning[256];
    struct udp_socket front; /* reads under the lock; writes need none */
    pthread_mutex_t lock;
    struct qpn_table qps;    /* under the lock */
    struct udp_demux *demux; /* under the lock */
};

extern const struct fabric_ops fabric_udp_ops;

static inline struct udp_endpoint *udp_endpoint_of(struct fabric_endpoint *endpoint)
{
    return (struct udp_endpoint *)endpoint;
}

static inline struct udp_fabric *udp_fabric_of(const struct udp_endpoint *endpoint)
{
    return (struct udp_fabric *)endpoint->base.fabric;
}

#endif
