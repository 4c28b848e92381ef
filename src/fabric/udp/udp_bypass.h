/*
 * udp_bypass.h - kernel bypass: data packets of a udp fabric that do not pass its sockets.
 *
 * The sockets stay: they hold the ports, carry control datagrams, and data where the bypass does not reach.
 * The wire is the same. A bypass moves whole UDP datagrams; what is in them is built, validated and steered
 * by the code of the sockets. src/fabric/xdp is one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_UDP_BYPASS_H
#define LH_FABRIC_UDP_UDP_BYPASS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <longhaul/types.h>

#include "fabric/fabric.h"
#include "fabric/udp/udp_address.h"

/* The next hop to a destination, as a bypass found it. All zero: not asked yet. */
struct udp_next_hop {
    union udp_address to;
    lh_time ask_at; /* when the answer is too old */
    bool reached;   /* by the bypass; else by the socket */
    uint8_t mac[6];
};

/* Messages to one destination, as for sendmmsg(). */
struct udp_bypass_batch {
    const struct mmsghdr *messages;
    const uint32_t
        *segment_bytes; /* of each message: its datagrams are that long, but for a shorter last */
    uint32_t count;
    uint32_t queue; /* any number; the same for the packets of a flow */
    uint16_t source_port;
    bool ecn; /* the datagrams leave as ECT(0) */
};

/* A datagram that came by the bypass. Nothing of it is validated but that it is whole, and came to an open
 * port. */
struct udp_bypass_packet {
    union udp_address from;
    const uint8_t *data; /* until it is released */
    uint32_t bytes;
    uint32_t ip_id; /* IPv6: 0 */
    uint16_t port;  /* that it came to */
    bool marked;    /* congestion experienced */
    uint64_t frame; /* the bypass's own */
};

struct udp_bypass;

/* Any thread may call each at any time, but for close. */
struct udp_bypass_ops {
    /* From now on datagrams to that port of the local address come by the bypass. -LH_ESYSTEM */
    int (*open_port)(struct udp_bypass *bypass, uint16_t port);
    /* Whether it reaches the host of `to`; refreshes an answer that is too old. */
    bool (*reaches)(struct udp_bypass *bypass, const union udp_address *to, struct udp_next_hop *hop);
    /* Sends to a hop that is reached: copies the messages, whose k-th datagrams leave with IP ID k. Returns
     * the number of messages taken, 1 or more, or -1 with errno: EAGAIN when there is no room. */
    int (*send)(struct udp_bypass *bypass, const struct udp_next_hop *hop,
                const struct udp_bypass_batch *batch);
    /* Takes up to `count` datagrams, at most FABRIC_BATCH_MAX. Each is the caller's until release. Returns
     * 0 … count, or -LH_EDEVICE: the device is gone. */
    int (*receive)(struct udp_bypass *bypass, struct udp_bypass_packet *packets, uint32_t count);
    void (*release)(struct udp_bypass *bypass, const struct udp_bypass_packet *packets, uint32_t count);
    /* The number of packets that were dropped for lack of buffers; wraps. A system call or more. */
    uint32_t (*drops)(struct udp_bypass *bypass);
    /* What the user should know, or NULL. */
    const char *(*warning)(const struct udp_bypass *bypass);
    void (*close)(struct udp_bypass *bypass);
};

/* Every bypass starts with this. */
struct udp_bypass {
    const struct udp_bypass_ops *ops;
    int fd;                   /* readable when datagrams wait */
    uint32_t receive_packets; /* that its buffers hold */
    uint32_t payload_max;     /* of a packet */
};

/* Opens a udp fabric on a local address, whose data goes by the bypass where that reaches; NULL: there is
 * none. The fabric owns the bypass from then on; on an error the caller does. */
int udp_fabric_open(const union udp_address *local, uint64_t receive_buffer_bytes,
                    struct udp_bypass *bypass, struct fabric **made);

#endif
