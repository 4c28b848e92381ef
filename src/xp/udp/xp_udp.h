/*
 * exchange.h - packets of an XP object to and from its socket, up to 64 for a system call.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_XP_UDP_EXCHANGE_H
#define LH_XP_UDP_EXCHANGE_H

#include <sys/uio.h>

#include "fabric/udp/socket.h"
#include "wire/icrc.h"
#include "xp/nic.h"
#include "xp/udp/peers.h"

#define XP_BATCH        64u
#define XP_PACKET_BYTES (XP_OVERHEAD + ROCE_MTU_MAX)

/* A packet on its way out: header, payload in the user's buffer, pad and iCRC. */
struct xp_udp_outgoing {
    uint8_t header[XP_HEADER_BYTES];
    uint8_t trailer[3 + ROCE_ICRC_BYTES];
    struct iovec parts[3];
    uint32_t peer;
};

struct lh_xp {
    struct xp_nic nic;
    struct xp_udp_peers peers;
    union udp_address local;
    struct udp_socket socket;
    uint64_t bad_packets;
    uint32_t outgoing_first, outgoing; /* of the batch: what the socket has not taken yet */
    struct xp_udp_outgoing batch[XP_BATCH];
    uint8_t received[XP_BATCH][XP_PACKET_BYTES];
};

/* Whether a packet for that peer waits for the socket. */
bool xp_udp_awaits(const void *xp, uint32_t peer);
/* Packets whose payload lies there do not leave any more: lost, as on the way. */
void xp_udp_forget(struct lh_xp *xp, const uint8_t *from, uint64_t bytes);
/* Whether anything came; -LH_ESYSTEM. */
int xp_udp_receive(struct lh_xp *xp, lh_time now);
/* Whether anything left; -LH_ESYSTEM. */
int xp_udp_transmit(struct lh_xp *xp, lh_time now);

#endif
