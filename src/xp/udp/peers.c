/*
 * peers.c - open addressing. Only those whom this host has connected to are in it, so its length is the
 * caller's.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "xp/udp/peers.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

int xp_udp_peers_init(struct xp_udp_peers *peers, uint32_t room)
{
    uint32_t buckets = 4;
    while (buckets < 2 * (uint64_t)room)
        buckets *= 2;
    *peers = (struct xp_udp_peers){.addresses = calloc(room, sizeof *peers->addresses),
                                   .buckets = malloc(buckets * sizeof *peers->buckets),
                                   .mask = buckets - 1,
                                   .room = room};
    if (!peers->addresses || !peers->buckets) {
        xp_udp_peers_free(peers);
        return lh_fail(LH_ENOMEM, "no memory for the addresses of %u peers", room);
    }
    memset(peers->buckets, 0xFF, buckets * sizeof *peers->buckets);
    return 0;
}

void xp_udp_peers_free(struct xp_udp_peers *peers)
{
    free(peers->addresses);
    free(peers->buckets);
    *peers = (struct xp_udp_peers){.room = 0};
}

/* Fowler, Noll, Vo. */
static uint32_t hash(const union udp_address *address)
{
    uint8_t bytes[16];
    uint32_t value = 2166136261u ^ udp_address_port(address);
    udp_address_bytes(address, bytes);
    for (unsigned i = 0; i < sizeof bytes; i++)
        value = (value ^ bytes[i]) * 16777619u;
    return value;
}

static bool same(const union udp_address *a, const union udp_address *b)
{
    return udp_address_port(a) == udp_address_port(b) && udp_address_same_host(a, b);
}

/* Where it is, or would be: at least half are empty. */
static uint32_t bucket_of(const struct xp_udp_peers *peers, const union udp_address *address)
{
    uint32_t at = hash(address) & peers->mask;
    while (peers->buckets[at] != XP_PEER_NONE && !same(&peers->addresses[peers->buckets[at]], address))
        at = (at + 1) & peers->mask;
    return at;
}

uint32_t xp_udp_peers_find(const struct xp_udp_peers *peers, const union udp_address *address)
{
    return peers->buckets[bucket_of(peers, address)];
}

uint32_t xp_udp_peers_add(struct xp_udp_peers *peers, const union udp_address *address)
{
    uint32_t at = bucket_of(peers, address);
    if (peers->buckets[at] == XP_PEER_NONE && peers->count < peers->room) {
        peers->addresses[peers->count] = *address;
        peers->buckets[at] = peers->count++;
    }
    return peers->buckets[at];
}
