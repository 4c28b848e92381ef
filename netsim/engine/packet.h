/*
 * packet.h - packets of the simulated network: one cache line each, in a pool, known by their number.
 *
 * A packet is on exactly one list at a time: free, in a port's queue, on a wire, or delivered.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_ENGINE_PACKET_H
#define LH_NETSIM_ENGINE_PACKET_H

#include <assert.h>

#include <longhaul/netsim.h>

#include "netsim/base/arena.h"
#include "netsim/base/time.h"

#define NETSIM_NO_PACKET UINT32_MAX
#define NETSIM_NO_FLOW   UINT32_MAX
#define NETSIM_HOLD      UINT32_MAX /* in place of quanta: until the resume */

enum netsim_packet_flag {
    NETSIM_MARKED = 1,    /* ECN: congestion experienced */
    NETSIM_REPEATED = 2,  /* not sent for the first time */
    NETSIM_CORRUPTED = 4, /* on a link */
    NETSIM_NACK = 8,      /* ack: the packet that it answers came too early and was not taken */
    NETSIM_COPY = 16,     /* made by a link: nobody had credit for it */
    NETSIM_CREDIT = 32,   /* ack: it answers no packet, and only tells of credit */
    NETSIM_CAPABLE = 64,  /* raw: may be marked; data always may */
    NETSIM_BEHIND = 128,  /* ack: messages of its queue pair before its own have come whole */
};

struct netsim_packet {
    uint32_t next;
    uint32_t flow;
    netsim_time arrive_ps; /* at the end of the wire it is on, or was on last */
    netsim_time sent_ps; /* data: when the host injected it; ack: the same of the packet that it answers */
    uint64_t cookie;     /* raw: whatever the sender gave; pause: quanta; credit: the limit */
    uint32_t source;     /* hosts */
    uint32_t destination;
    uint32_t sequence; /* data: number in the flow; ack: every packet before this one has arrived */
    uint32_t echo;     /* ack: number of the packet that it answers; raw and corrupted: which bit */
    uint32_t entropy;  /* what ECMP hashes */
    union {
        uint32_t ingress; /* in a switch: the link by which it came */
        uint32_t below;   /* on a wire, among the overtakers */
    };
    uint16_t wire_bytes;
    uint8_t kind; /* enum lh_netsim_kind */
    uint8_t priority;
    uint8_t flags;
    uint8_t unused[3];
};
_Static_assert(sizeof(struct netsim_packet) == 64, "one cache line");

struct netsim_packet_pool {
    struct netsim_packet *packets;
    uint32_t capacity;
    uint32_t fresh; /* packets from here on were never used, so their memory was never touched */
    uint32_t free;  /* head of the list of those that were */
    uint32_t alive;
    uint32_t alive_max;
};

static inline void netsim_packet_pool_init(struct netsim_packet_pool *pool, struct netsim_arena *arena,
                                           uint32_t capacity)
{
    *pool = (struct netsim_packet_pool){.capacity = capacity, .free = NETSIM_NO_PACKET};
    pool->packets = (struct netsim_packet *)netsim_arena_take(arena, capacity, sizeof *pool->packets);
}

/* NETSIM_NO_PACKET when all are alive. What is in it is left over from before. */
static inline uint32_t netsim_packet_get(struct netsim_packet_pool *pool)
{
    uint32_t number = pool->free;
    if (number != NETSIM_NO_PACKET)
        pool->free = pool->packets[number].next;
    else if (pool->fresh < pool->capacity)
        number = pool->fresh++;
    else
        return NETSIM_NO_PACKET;
    if (++pool->alive > pool->alive_max)
        pool->alive_max = pool->alive;
    return number;
}

static inline void netsim_packet_put(struct netsim_packet_pool *pool, uint32_t number)
{
    assert(pool->alive > 0);
    pool->packets[number].next = pool->free;
    pool->free = number;
    pool->alive--;
}

#endif
