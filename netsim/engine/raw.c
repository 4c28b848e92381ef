/*
 * raw.c - see raw.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/engine/raw.h"

uint32_t netsim_raw_new(struct netsim_network *network, const struct netsim_raw *raw, uint32_t entropy,
                        uint8_t priority)
{
    if (network->pool.capacity - network->pool.alive <= network->reserved_packets)
        return NETSIM_NO_PACKET;
    uint32_t packet = netsim_packet_get(&network->pool);
    assert(packet != NETSIM_NO_PACKET);
    assert(raw->source < network->hosts_count && raw->destination < network->hosts_count);
    assert(raw->source != raw->destination && raw->wire_bytes <= UINT16_MAX && raw->wire_bytes > 0);
    network->pool.packets[packet] = (struct netsim_packet){
        .flow = NETSIM_NO_FLOW,
        .sent_ps = network->now_ps,
        .cookie = raw->cookie,
        .source = raw->source,
        .destination = raw->destination,
        .entropy = entropy,
        .wire_bytes = (uint16_t)raw->wire_bytes,
        .kind = LH_NETSIM_RAW,
        .priority = priority,
        .flags = raw->ecn_capable ? NETSIM_CAPABLE : 0,
    };
    return packet;
}

void netsim_raw_end(struct netsim_network *network, uint32_t packet, bool arrived)
{
    struct netsim_packet *ended = &network->pool.packets[packet];
    ended->arrive_ps = network->now_ps;
    ended->next = NETSIM_NO_PACKET;
    if (!arrived)
        ended->destination = NETSIM_DROPPED;
    if (network->delivered_last == NETSIM_NO_PACKET)
        network->delivered_first = packet;
    else
        network->pool.packets[network->delivered_last].next = packet;
    network->delivered_last = packet;
}

bool netsim_raw_next(struct netsim_network *network, struct netsim_raw *raw)
{
    uint32_t packet = network->delivered_first;
    if (packet == NETSIM_NO_PACKET)
        return false;
    const struct netsim_packet *taken = &network->pool.packets[packet];
    network->delivered_first = taken->next;
    if (taken->next == NETSIM_NO_PACKET)
        network->delivered_last = NETSIM_NO_PACKET;
    *raw = (struct netsim_raw){
        .arrive_ps = taken->arrive_ps,
        .cookie = taken->cookie,
        .source = taken->source,
        .destination = taken->destination,
        .wire_bytes = taken->wire_bytes,
        .corrupt_bit = taken->echo,
        .corrupted = (taken->flags & NETSIM_CORRUPTED) != 0,
        .marked = (taken->flags & NETSIM_MARKED) != 0,
    };
    netsim_packet_put(&network->pool, packet);
    return true;
}
