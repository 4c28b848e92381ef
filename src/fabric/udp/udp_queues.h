/*
 * inbox.h - packets that somebody else read for an endpoint, and that wait for their owner.
 *
 * One writer at a time (the reader of the shared sockets holds the fabric's lock) puts packets into all
 * inboxes of a fabric; each inbox has one reader, its owner; no lock between them. Raw copies: the reader
 * validates them. The memory is a pool of the fabric's, bounded for all of them together: one for data, one
 * for control messages, so that these wait for nobody's data. How many packets an inbox may hold depends on
 * what is left of its pool (dynamic thresholds, Choudhury and Hahne 1998): a few owners that do not read
 * leave room for all others.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_INBOX_H
#define LH_FABRIC_UDP_INBOX_H

#include <stdatomic.h>
#include <stdbool.h>

#include "fabric/udp/address.h"
#include "wire/roce.h"

#define UDP_POOL_PACKETS       4096u /* of data or control about 17 MiB, taken as they are needed */
#define UDP_INBOX_SHARE        4u    /* an inbox holds at most a quarter of what is free */
#define UDP_INBOX_PACKET_BYTES (ROCE_WRITE_IMM_HEADER_BYTES + ROCE_MTU_MAX + ROCE_ICRC_BYTES)

struct udp_packet {
    struct udp_packet *next;
    union udp_address from;
    uint32_t bytes;
    uint32_t place; /* in the message of the kernel: 0, 1, 2 … */
    bool marked;    /* congestion experienced */
    uint8_t data[]; /* as many bytes as the pool's packets have */
};

struct udp_packet_slab;

/* All zero but packet_bytes is an empty one. */
struct udp_packet_pool {
    uint32_t packet_bytes;                 /* that a packet holds */
    _Atomic(struct udp_packet *) returned; /* by readers */
    _Atomic uint32_t in_use;
    struct udp_packet *spare; /* the writer's */
    struct udp_packet_slab *slabs;
    uint32_t made;
    uint32_t held_at;   /* the writer's: in use, when there was no room last; 0: there was */
    uint32_t held_asks; /* the writer's: since some were taken */
};

/* All zero is an empty one. */
struct udp_inbox {
    _Atomic(struct udp_packet *) fresh; /* newest first */
    _Atomic uint32_t waiting;
    struct udp_packet *oldest; /* the reader's, in order */
};

/* Every inbox is empty by now. */
void udp_pool_free(struct udp_packet_pool *pool);

/* A datagram, or a part of what the kernel joined. */
struct udp_part {
    const union udp_address *from;
    const uint8_t *data;
    uint32_t bytes; /* at most packet_bytes of the pool to go into an inbox */
    uint32_t place;
    bool marked;
};

enum udp_put {
    UDP_PUT_REFUSED, /* the inbox has its share, or there is no memory */
    UDP_PUT_FIRST,   /* the owner has taken all that was put before, and may be asleep */
    UDP_PUT_MORE,
};

/* Whether to read more, under the writer's lock. Above half of the pool what comes next waits in the socket,
 * as long as owners take some from time to time; those that do not hold nobody up: none was taken while this
 * was asked so often (at least 1). */
bool udp_pool_has_room(struct udp_packet_pool *pool, uint32_t patience);
/* Copies the data. */
enum udp_put udp_inbox_put(struct udp_packet_pool *pool, struct udp_inbox *inbox,
                           const struct udp_part *part);
/* Whether that many more would fit. */
bool udp_inbox_has_room(struct udp_packet_pool *pool, struct udp_inbox *inbox, uint32_t packets);
/* For the writer and the reader. */
static inline uint32_t udp_inbox_waiting(struct udp_inbox *inbox)
{
    return atomic_load_explicit(&inbox->waiting, memory_order_relaxed);
}
/* The oldest packet, or NULL. It is the reader's until udp_packet_return(). */
struct udp_packet *udp_inbox_take(struct udp_inbox *inbox);
void udp_packet_return(struct udp_packet_pool *pool, struct udp_packet *packet);
/* Of an endpoint that ends; nobody puts anything in any more. */
void udp_inbox_clear(struct udp_packet_pool *pool, struct udp_inbox *inbox);

#endif
