/*
 * flow_ring.c - see flow_ring.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/transport/flow_ring.h"

static void append(struct netsim_transport *transport, struct netsim_flow_ring *ring, uint32_t flow)
{
    transport->flows[flow].sender.ring_next = NETSIM_NO_FLOW;
    if (ring->last == NETSIM_NO_FLOW)
        ring->first = flow;
    else
        transport->flows[ring->last].sender.ring_next = flow;
    ring->last = flow;
}

/* In front of the first with a higher number; there is one. Who has just sent is mostly the first. */
static void insert(struct netsim_transport *transport, struct netsim_flow_ring *ring, uint32_t flow)
{
    uint32_t *link = &ring->first;
    while (*link < flow)
        link = &transport->flows[*link].sender.ring_next;
    transport->flows[flow].sender.ring_next = *link;
    *link = flow;
}

void netsim_flow_ring_add(struct netsim_transport *transport, uint32_t flow)
{
    struct netsim_sender *sender = &transport->flows[flow].sender;
    struct netsim_flow_ring *ring = &transport->rings[sender->source];
    bool in_order = transport->starts.list->in_order;
    assert(!sender->in_ring);
    sender->in_ring = 1;
    if (in_order && ring->last != NETSIM_NO_FLOW && flow < ring->last)
        insert(transport, ring, flow);
    else
        append(transport, ring, flow);
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
