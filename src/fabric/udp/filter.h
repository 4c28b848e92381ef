/*
 * filter.h - what the kernel checks of a data packet before it copies a byte of it to where the packet is
 * expected to belong: a classic BPF program on the socket, which needs no privilege.
 *
 * A packet that is not the peer's is not dropped but cut down to its header, of which no byte goes to a
 * user's buffer: so it is counted under the name of what is wrong with it, like any other. The filter is
 * there before the socket has a port; until the peer is known, everything is cut.
 *
 * Its view is that of one kernel message. Packets that the kernel joined (GRO) come from one address and
 * port, and are filtered by the first one's header.
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

#endif
