/*
 * xp_udp.h - <longhaul/xp.h>: the machine of xp_nic.h on a UDP socket.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_XP_UDP_XP_UDP_H
#define LH_XP_UDP_XP_UDP_H

#include <sys/uio.h>

#include "fabric/udp/udp_address.h"
#include "fabric/udp/udp_socket.h"
#include "wire/roce_packet.h"
#include "xp/xp_nic.h"

/* ---- peers ----------------------------------------------------------------------------------------- */

/* Addresses of peers, each with a number: a table that is searched for every packet. */

struct xp_udp_peers {
    union udp_address *addresses;
    uint32_t *buckets; /* a power of two of them, twice the room or more: a number, or XP_PEER_NONE */
    uint32_t *users;   /* queue pairs of each that are connected to it */
    uint32_t mask;
    uint32_t count, room;
};

/* ---- exchange -------------------------------------------------------------------------------------- */

/* Packets of an XP object to and from its socket, up to 64 for a system call. */

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

#endif
