/*
 * held.h - the memory of packets that an emulated link holds. No fabric knows it: it lends them.
 *
 * A faster or longer link needs more of it: then a new one is used from there on, and the old one goes when
 * its last packet does.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_LINK_HELD_H
#define LH_LINK_HELD_H

#include <longhaul/link.h>

#include "fabric/fabric.h"
#include "link/ring_store.h"

struct link_held {
    struct ring_store store;
    bool retired; /* goes with its last packet */
};

/* One packet in flight: a write, or a control datagram. The payload follows it. */
struct link_packet {
    struct link_held *held;
    lh_time due_ns; /* of its last copy */
    uint64_t va;
    uint32_t rkey;
    uint32_t immediate;
    uint32_t corrupt_bit;
    uint16_t bytes;
    uint8_t generation;
    _Alignas(RING_STORE_ALIGN) uint8_t payload[];
};

/* How much a link of that spec may hold. */
uint64_t link_held_bytes(const struct lh_link_spec *spec);
/* -LH_ENOMEM */
int link_held_create(uint64_t bytes, struct link_held **held);
/* Frees it now when it is empty, else with its last packet. NULL is allowed. */
void link_held_retire(struct link_held *held);
/* NULL when there is no room. */
struct link_packet *link_packet_take(struct link_held *held, uint32_t payload_bytes);
void link_packet_give_back(struct link_packet *packet);

#endif
