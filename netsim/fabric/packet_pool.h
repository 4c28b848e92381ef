/*
 * packet_pool.h - the packets of a simulated world, allocated in slabs and used again and again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_FABRIC_PACKET_POOL_H
#define LH_NETSIM_FABRIC_PACKET_POOL_H

#include "netsim/fabric/sim.h"

struct sim_packet {
    struct sim_packet *next; /* in the pool or in a receive queue */
    uint32_t bytes;          /* of data */
    uint16_t source_port;
    uint16_t destination_port;
    uint8_t from;
    uint8_t to;
    bool crosses_network; /* at the end of the link it enters the world's network, */
    bool ecn_capable;     /* which may mark it then, */
    bool marked;          /* and has: congestion experienced */
    lh_time arrived_ns;   /* at its host, by that one's clock */
    uint32_t
        last_bytes; /* of data, the iCRC if it has one: kept here for the trace, as data is cold by then */
    _Alignas(64) uint8_t data[SIM_DATAGRAM_MAX]; /* BTH to iCRC */
};

#define SIM_SLAB_BYTES ((size_t)2 * 1024 * 1024) /* a huge page */
/* The first is small: most simulated worlds are, and live for milliseconds. */
#define SIM_FIRST_PACKETS 32u
#define SIM_SLAB_PACKETS  (SIM_SLAB_BYTES / sizeof(struct sim_packet))
#define SIM_SLABS_MAX     (SIM_PACKETS_MAX / SIM_SLAB_PACKETS)

/* All zero is an empty pool. */
struct packet_pool {
    struct sim_packet *free; /* last in, first out: the warmest first */
    uint32_t slabs_count;
    bool is_small; /* one slab is all */
    struct sim_packet *slabs[SIM_SLABS_MAX];
};

/* NULL when SIM_SLABS_MAX slabs are in use or memory ran out. */
struct sim_packet *packet_pool_get(struct packet_pool *pool);
/* Whether one has been given back since. */
static inline bool packet_pool_has_room(const struct packet_pool *pool)
{
    return pool->free != NULL;
}
void packet_pool_put(struct packet_pool *pool, struct sim_packet *packet);
/* Frees every packet, used or not. */
void packet_pool_clear(struct packet_pool *pool);

/* The packet as tests see it. */
struct sim_datagram sim_packet_view(struct sim_packet *packet, lh_time at_ns);
/* Flips this bit of it, modulo its length; nothing when it has none: a tap left nothing. */
void sim_packet_flip(struct sim_packet *packet, uint32_t bit);

/* Packets that wait to be polled, in the order of arrival. */
struct sim_queue {
    struct sim_packet *first;
    struct sim_packet *last;
    uint64_t bytes;
    uint64_t bytes_max;
};

/* False when it is full. A queue takes one packet at least, however small its bound. */
bool sim_queue_push(struct sim_queue *queue, struct sim_packet *packet);
struct sim_packet *sim_queue_pop(struct sim_queue *queue);

#endif
