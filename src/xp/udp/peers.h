/*
 * peers.h - addresses of peers, each with a number: a table that is searched for every packet.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_XP_UDP_PEERS_H
#define LH_XP_UDP_PEERS_H

#include "fabric/udp/address.h"

#define XP_PEER_NONE UINT32_MAX

struct xp_udp_peers {
    union udp_address *addresses;
    uint32_t *buckets; /* a power of two of them, twice the room or more: a number, or XP_PEER_NONE */
    uint32_t *users;   /* queue pairs of each that are connected to it */
    uint32_t mask;
    uint32_t count, room;
};

/* -LH_ENOMEM. */
int xp_udp_peers_init(struct xp_udp_peers *peers, uint32_t room);
void xp_udp_peers_free(struct xp_udp_peers *peers);
/* XP_PEER_NONE: not there. */
uint32_t xp_udp_peers_find(const struct xp_udp_peers *peers, const union udp_address *address);
/* Its number, new or not. One without users gives up its place when there is no other, unless busy(of,
 * number): its number is still needed. XP_PEER_NONE: there is no room. */
uint32_t xp_udp_peers_add(struct xp_udp_peers *peers, const union udp_address *address,
                          bool (*busy)(const void *of, uint32_t number), const void *of);

#endif
