/*
 * host.c - a host: one port, the flows that send through it, and what arrives.
 *
 * Flows are asked for a packet when the port is free, round robin, so a host never queues data.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/network.h"

/* ---- sending ----------------------------------------------------------------------------------------- */

void netsim_host_add_flow(struct netsim *net, uint32_t host, uint32_t flow)
{
    struct netsim_host *at = &net->hosts[host];
    struct netsim_sender *sender = &net->flows[flow].sender;
    assert(!sender->in_ring);
    sender->in_ring = 1;
    sender->ring_next = NETSIM_NO_FLOW;
    if (at->ring_last == NETSIM_NO_FLOW)
        at->ring_first = flow;
    else
        net->flows[at->ring_last].sender.ring_next = flow;
    at->ring_last = flow;
}

static uint32_t take_flow(struct netsim *net, struct netsim_host *at)
{
    uint32_t flow = at->ring_first;
    struct netsim_sender *sender = &net->flows[flow].sender;
    at->ring_first = sender->ring_next;
    if (at->ring_first == NETSIM_NO_FLOW)
        at->ring_last = NETSIM_NO_FLOW;
    sender->in_ring = 0;
    return flow;
}

/* After a packet: the flow stands at the end of the line again, or waits for its pace. */
static void flow_sent(struct netsim *net, uint32_t host, uint32_t flow)
{
    struct netsim_sender *sender = &net->flows[flow].sender;
    if (net->paced && sender->pace_ps > net->now_ps)
        netsim_event_schedule(&net->events, net->first_pace_event + flow, sender->pace_ps);
    else if (netsim_sender_may_send(net, sender))
        netsim_host_add_flow(net, host, flow);
}

uint32_t netsim_host_packet(struct netsim *net, uint32_t host)
{
    struct netsim_host *at = &net->hosts[host];
    /* Each round takes a flow out of the ring. */
    while (at->ring_first != NETSIM_NO_FLOW) {
        uint32_t flow = take_flow(net, at);
        if (!netsim_sender_may_send(net, &net->flows[flow].sender))
            continue; /* what it wanted to repeat has arrived meanwhile */
        uint32_t packet = netsim_packet_new(net);
        if (packet == NETSIM_NO_PACKET)
            return NETSIM_NO_PACKET;
        netsim_sender_fill(net, flow, &net->pool.packets[packet]);
        flow_sent(net, host, flow);
        return packet;
    }
    return NETSIM_NO_PACKET;
}

void netsim_on_flows_start(struct netsim *net)
{
    while (net->next_flow < net->flows_count && net->flows[net->next_flow].start_ps <= net->now_ps)
        netsim_sender_start(net, net->next_flow++);
    if (net->next_flow < net->flows_count)
        netsim_event_schedule(&net->events, net->start_event, net->flows[net->next_flow].start_ps);
}

/* ---- raw packets ------------------------------------------------------------------------------------- */

bool netsim_raw_send(struct netsim *net, const struct netsim_raw *raw, uint32_t entropy, uint8_t priority)
{
    if (net->pool.capacity - net->pool.alive <= net->reserved_packets)
        return false;
    uint32_t packet = netsim_packet_get(&net->pool);
    assert(packet != NETSIM_NO_PACKET);
    assert(raw->source < net->hosts_count && raw->destination < net->hosts_count);
    assert(raw->source != raw->destination && raw->wire_bytes <= UINT16_MAX && raw->wire_bytes > 0);
    net->pool.packets[packet] = (struct netsim_packet){
        .flow = NETSIM_NO_FLOW,
        .sent_ps = net->now_ps,
        .cookie = raw->cookie,
        .source = raw->source,
        .destination = raw->destination,
        .entropy = entropy,
        .wire_bytes = (uint16_t)raw->wire_bytes,
        .kind = LH_NETSIM_RAW,
        .priority = priority,
    };
    netsim_enqueue(net, net->hosts[raw->source].port, packet);
    return true;
}

void netsim_raw_end(struct netsim *net, uint32_t packet, bool arrived)
{
    struct netsim_packet *ended = &net->pool.packets[packet];
    ended->arrive_ps = net->now_ps;
    ended->next = NETSIM_NO_PACKET;
    if (!arrived)
        ended->destination = NETSIM_DROPPED;
    if (net->delivered_last == NETSIM_NO_PACKET)
        net->delivered_first = packet;
    else
        net->pool.packets[net->delivered_last].next = packet;
    net->delivered_last = packet;
}

bool netsim_raw_take(struct netsim *net, struct netsim_raw *raw)
{
    uint32_t packet = net->delivered_first;
    if (packet == NETSIM_NO_PACKET)
        return false;
    const struct netsim_packet *taken = &net->pool.packets[packet];
    net->delivered_first = taken->next;
    if (taken->next == NETSIM_NO_PACKET)
        net->delivered_last = NETSIM_NO_PACKET;
    *raw = (struct netsim_raw){
        .arrive_ps = taken->arrive_ps,
        .cookie = taken->cookie,
        .source = taken->source,
        .destination = taken->destination,
        .wire_bytes = taken->wire_bytes,
        .corrupt_bit = taken->echo,
        .corrupted = (taken->flags & NETSIM_CORRUPTED) != 0,
    };
    netsim_packet_put(&net->pool, packet);
    return true;
}

/* ---- arrival ----------------------------------------------------------------------------------------- */

void netsim_on_host_arrival(struct netsim *net, uint32_t host, uint32_t packet)
{
    struct netsim_packet *arrived = &net->pool.packets[packet];
    if (arrived->kind == LH_NETSIM_RAW) {
        netsim_raw_end(net, packet, true);
        return;
    }
    if ((arrived->flags & NETSIM_CORRUPTED) == 0) {
        if (arrived->kind == LH_NETSIM_DATA && netsim_receiver_on_data(net, arrived)) {
            netsim_enqueue(net, net->hosts[host].port, packet); /* it has become its acknowledgement */
            return;
        }
        if (arrived->kind == LH_NETSIM_ACK)
            netsim_sender_on_ack(net, arrived);
    }
    netsim_packet_put(&net->pool, packet);
}
