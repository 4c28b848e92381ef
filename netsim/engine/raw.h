/*
 * raw.h - packets that a user of the network puts in and takes out, one by one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_ENGINE_RAW_H
#define LH_NETSIM_ENGINE_RAW_H

#include "netsim/engine/network.h"

struct netsim_raw {
    netsim_time arrive_ps;
    uint64_t cookie;
    uint32_t source;
    uint32_t destination;
    uint32_t wire_bytes;
    uint32_t corrupt_bit; /* when corrupted: one bit flipped, this one modulo the packet's */
    bool corrupted;
    bool ecn_capable; /* may be marked */
    bool marked;      /* congestion experienced */
};

#define NETSIM_DROPPED UINT32_MAX

/* A packet to be queued at its source. NETSIM_NO_PACKET: the pool has none left but for the pauses and
 * resumes of switches. */
uint32_t netsim_raw_new(struct netsim_network *network, const struct netsim_raw *raw, uint32_t entropy,
                        uint8_t priority);
/* The packet arrived at its destination, or was dropped: keeps it for netsim_raw_next(). */
void netsim_raw_end(struct netsim_network *network, uint32_t packet, bool arrived);
/* The next packet that ended, in this order; a dropped one has destination NETSIM_DROPPED, so that the owner
 * of the cookie learns of its end. False: none. */
bool netsim_raw_next(struct netsim_network *network, struct netsim_raw *raw);

/* Drops a packet of any kind. */
static inline void netsim_packet_drop(struct netsim_network *network, uint32_t packet)
{
    if (network->pool.packets[packet].kind == LH_NETSIM_RAW)
        netsim_raw_end(network, packet, false);
    else
        netsim_packet_put(&network->pool, packet);
}

#endif
