/*
 * host.c - see host.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/transport/host.h"

#include "netsim/transport/controller.h"
#include "netsim/transport/flow_ring.h"
#include "netsim/transport/receiver.h"
#include "netsim/transport/sender.h"
#include "netsim/transport/xp.h"

/* After a packet the flow goes to the end of the ring, or waits for its pace. */
static void flow_sent(struct netsim_transport *transport, uint32_t flow)
{
    struct netsim_sender *sender = &transport->flows[flow].sender;
    struct netsim_network *network = transport->network;
    if (transport->config.kind == NETSIM_XP && sender->next == sender->packets)
        netsim_xp_on_sent(transport, flow);
    else if (transport->config.one_queue_pair && sender->next == sender->packets &&
             !netsim_sender_may_send(transport, flow))
        netsim_sender_wake_next(transport, flow);
    else if (transport->paced && sender->pace_ps > network->now_ps)
        netsim_event_schedule(&network->events, transport->first_pace_event + flow, sender->pace_ps);
    else if (netsim_sender_may_send(transport, flow))
        netsim_flow_ring_add(transport, flow);
    else if (netsim_is_controlled(transport) && !sender->held)
        netsim_controller_on_limited(transport, flow);
}

uint32_t netsim_host_packet(struct netsim_transport *transport, uint32_t host)
{
    /* Each round takes a flow out of the ring. */
    for (uint32_t flow; (flow = netsim_flow_ring_take(transport, host)) != NETSIM_NO_FLOW;) {
        if (!netsim_sender_may_send(transport, flow))
            continue; /* what it was to retransmit has arrived meanwhile */
        uint32_t packet = netsim_packet_new(transport->network);
        if (packet == NETSIM_NO_PACKET)
            return NETSIM_NO_PACKET;
        netsim_sender_fill(transport, flow, &transport->network->pool.packets[packet]);
        flow_sent(transport, flow);
        return packet;
    }
    return NETSIM_NO_PACKET;
}

enum netsim_host_action netsim_host_on_arrival(struct netsim_transport *transport,
                                               struct netsim_packet *packet)
{
    if ((packet->flags & NETSIM_CORRUPTED) != 0 || packet->flow == NETSIM_NO_FLOW)
        return NETSIM_HOST_TAKES;
    if (packet->kind == LH_NETSIM_DATA)
        return netsim_receiver_on_data(transport, packet) ? NETSIM_HOST_ANSWERS : NETSIM_HOST_TAKES;
    assert(packet->kind == LH_NETSIM_ACK);
    return netsim_sender_on_ack(transport, packet) ? NETSIM_HOST_SENDS : NETSIM_HOST_TAKES;
}
