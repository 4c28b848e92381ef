/*
 * filter.h - what the kernel checks of a data packet: a classic BPF program on the socket, which needs no
 * privilege.
 *
 * A packet that is not the peer's is not dropped but cut down to its header: it costs no copy, and is counted
 * under the name of what is wrong with it, like any other. The filter is there before the socket has a port;
 * until the peer is known, everything is cut.
 *
 * Its view is that of one kernel message. Packets that the kernel joined (GRO) come from one address and
 * port, and are filtered by the first one's header.
 *
 * Another such program, of a port that has several sockets, steers: it chooses the socket by queue pair
 * number. Not by source, as connect() would: all connections between two fabrics have the same addresses and
 * ports, and a peer's may change (NAT).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_FILTER_H
#define LH_FABRIC_UDP_FILTER_H

#include <linux/filter.h>

#include "fabric/udp/address.h"
#include "wire/qp_info.h"

#define UDP_FILTER_STEPS_MAX 64u

/* Whose data packets pass whole. */
struct udp_filter_peer {
    union udp_address address; /* with the port that they come from */
    bool translated;           /* they may as well come from any port of the next */
    union udp_address seen_address;
    uint32_t mtu_bytes;
    uint32_t generations;
    uint32_t qpn[QP_INFO_GENERATIONS_MAX]; /* ours, one a generation */
};

/* Writes the program for this peer, or for NULL the one that cuts everything; returns its length. */
uint16_t udp_filter_make(const struct udp_filter_peer *peer,
                         struct sock_filter steps[UDP_FILTER_STEPS_MAX]);
/* Puts it in the place of the one before. -LH_ESYSTEM. */
int udp_filter_attach(int fd, const struct udp_filter_peer *peer);

/* Packets for any of these QPs go to the socket of a port that was bound in this place; 0 is the first. */
struct udp_steer {
    uint32_t place;
    uint32_t qpns;
    uint32_t qpn[QP_INFO_GENERATIONS_MAX];
};

/* As many steps as a program for that many entries may have. */
#define UDP_STEER_BUCKETS        16u
#define UDP_STEER_STEPS(entries) (8u + (entries)*2u * QP_INFO_GENERATIONS_MAX + UDP_STEER_BUCKETS * 4u)

/* Writes the program; all other packets go to the first socket. Returns its length. */
uint16_t udp_steer_make(const struct udp_steer *entries, uint32_t count, struct sock_filter *steps);
/* Replaces the program of the port that the socket belongs to; there must be another socket on it, or must
 * have been. -LH_ESYSTEM, -LH_ENOMEM. */
int udp_steer_attach(int fd, const struct udp_steer *entries, uint32_t count);

#endif
