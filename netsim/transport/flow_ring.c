/*
 * flow_ring.c - see flow_ring.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/transport/flow_ring.h"

void netsim_flow_ring_add(struct netsim_transport *transport, uint32_t flow)
{
    struct netsim_sender *sender = &transport->flows[flow].sender;
    struct netsim_flow_ring *ring = &transport->rings[sender->source];
    assert(!sender->in_ring);
    sender->in_ring = 1;
    sender->ring_next = NETSIM_NO_FLOW;
    if (ring->last == NETSIM_NO_FLOW)
        ring->first = flow;
    else
        transport->flows[ring->last].sender.ring_next = flow;
    ring->last = flow;
}

uint32_t netsim_flow_ring_take(struct netsim_transport *transport, uint32_t host)
{
    struct netsim_flow_ring *ring = &transport->rings[host];
    uint32_t flow = ring->first;
    if (flow == NETSIM_NO_FLOW)
        return flow;
    struct netsim_sender *sender = &transport->flows[flow].sender;
    ring->first = sender->ring_next;
    if (ring->first == NETSIM_NO_FLOW)
        ring->last = NETSIM_NO_FLOW;
    sender->in_ring = 0;
    return flow;
}
