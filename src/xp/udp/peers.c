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
                                   .users = calloc(room, sizeof *peers->users),
                                   .mask = buckets - 1,
                                   .room = room};
    if (!peers->addresses || !peers->buckets || !peers->users) {
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
    free(peers->users);
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

/* All of them anew, but for one. Rare: only when a place changes its peer. */
static void leave_out(struct xp_udp_peers *peers, uint32_t number)
{
    memset(peers->buckets, 0xFF, ((size_t)peers->mask + 1) * sizeof *peers->buckets);
    for (uint32_t i = 0; i < peers->count; i++)
        if (i != number)
            peers->buckets[bucket_of(peers, &peers->addresses[i])] = i;
}

/* A place; XP_PEER_NONE. */
static uint32_t take_place(struct xp_udp_peers *peers, bool (*busy)(const void *of, uint32_t number),
                           const void *of)
{
    if (peers->count < peers->room)
        return peers->count++;
    for (uint32_t i = 0; i < peers->count; i++) {
        if (peers->users[i] == 0 && !busy(of, i)) {
            leave_out(peers, i);
            return i;
        }
    }
    return XP_PEER_NONE;
}

uint32_t xp_udp_peers_add(struct xp_udp_peers *peers, const union udp_address *address,
                          bool (*busy)(const void *of, uint32_t number), const void *of)
{
    uint32_t number = xp_udp_peers_find(peers, address);
    if (number != XP_PEER_NONE)
        return number;
    number = take_place(peers, busy, of);
    if (number == XP_PEER_NONE)
        return number;
    peers->addresses[number] = *address;
    peers->buckets[bucket_of(peers, address)] = number;
    return number;
}
