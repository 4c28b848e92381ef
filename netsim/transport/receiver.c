/*
 * receiver.c - see receiver.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/transport/receiver.h"

#include "netsim/transport/controller.h"
#include "netsim/transport/queue_pair.h"
#include "netsim/transport/xp.h"

static bool bit_take(uint64_t *bits, uint32_t number)
{
    uint64_t bit = (uint64_t)1 << (number % 64);
    bool was = (bits[number / 64] & bit) != 0;
    bits[number / 64] |= bit;
    return !was;
}

/* Whether it had not arrived before. */
static bool note(struct netsim_receiver *receiver, uint32_t sequence)
{
    if (sequence < receiver->expected)
        return false;
    if (sequence > receiver->expected) {
        if (!bit_take(receiver->arrived, sequence))
            return false;
        receiver->out_of_order++;
        return true;
    }
    receiver->expected++;
    while (receiver->out_of_order > 0 &&
           (receiver->arrived[receiver->expected / 64] >> (receiver->expected % 64) & 1) != 0) {
        receiver->expected++;
        receiver->out_of_order--;
    }
    return true;
}

static bool note_in_order(struct netsim_receiver *receiver, uint32_t sequence)
{
    if (sequence != receiver->expected)
        return false;
    receiver->expected++;
    return true;
}

/* Whether to report the gap in front of a packet now. Packet numbers are 31 bits: one more is never 0. */
static bool reports_gap(const struct netsim_transport *transport, struct netsim_receiver *receiver)
{
    bool again = receiver->reported == receiver->expected + 1;
    if (again && (transport->config.nack_ps == 0 || transport->network->now_ps < receiver->report_ps))
        return false;
    receiver->reported = receiver->expected + 1;
    receiver->report_ps = transport->network->now_ps + transport->config.nack_ps;
    return true;
}

/* Whether the sender is notified of a mark. */
static bool notifies(const struct netsim_transport *transport, struct netsim_receiver *receiver)
{
    if (transport->network->now_ps < receiver->notify_ps)
        return false;
    receiver->notify_ps = transport->network->now_ps + transport->config.cnp_ps;
    return true;
}

static void become_ack(const struct netsim_transport *transport, struct netsim_receiver *receiver,
                       struct netsim_packet *packet)
{
    uint32_t source = packet->source;
    packet->source = packet->destination;
    packet->destination = source;
    packet->echo = packet->sequence;
    packet->sequence = receiver->expected;
    packet->entropy = ~packet->entropy;
    packet->wire_bytes = (uint16_t)transport->config.ack_bytes;
    packet->kind = LH_NETSIM_ACK;
    packet->priority = transport->config.ack_priority;
    packet->flags &= NETSIM_MARKED; /* echoes congestion */
    if (packet->flags != 0 && !notifies(transport, receiver))
        packet->flags = 0;
    if (transport->config.kind == NETSIM_GBN && packet->echo > packet->sequence)
        packet->flags |= NETSIM_NACK;
    if (transport->config.one_queue_pair &&
        netsim_queue_pair_missing(transport, packet->flow) == packet->flow)
        packet->flags |= NETSIM_BEHIND;
}

/* Go-back-N: a packet came before an earlier message of its queue pair was whole. */
static bool on_early(struct netsim_transport *transport, struct netsim_packet *packet, uint32_t missing)
{
    struct netsim_flow *flow = &transport->flows[missing];
    if (!reports_gap(transport, &flow->receiver))
        return false;
    transport->network->totals.ack_packets++;
    packet->flow = missing;
    packet->sequence = flow->sender.packets - 1; /* it was sent before */
    become_ack(transport, &flow->receiver, packet);
    packet->flags |= NETSIM_NACK;
    return true;
}

/* What a packet carries that had not arrived before. */
static void count_payload(struct netsim_transport *transport, struct netsim_flow *flow, uint32_t sequence)
{
    bool last = sequence == flow->sender.packets - 1;
    uint32_t bytes = last ? flow->sender.last_bytes : transport->config.payload_bytes;
    transport->network->totals.delivered_bytes += bytes;
    if (transport->config.kind == NETSIM_XP)
        flow->missing_bytes -= bytes;
}

static void on_xp_data(struct netsim_transport *transport, const struct netsim_packet *packet)
{
    struct netsim_flow *flow = &transport->flows[packet->flow];
    if (!netsim_xp_on_arrival(transport, packet->flow))
        return;
    if (note(&flow->receiver, packet->sequence))
        count_payload(transport, flow, packet->sequence);
    if (packet->sequence == flow->sender.packets - 1)
        netsim_xp_on_last(transport, packet->flow);
}

bool netsim_receiver_on_data(struct netsim_transport *transport, struct netsim_packet *packet)
{
    struct netsim_flow *flow = &transport->flows[packet->flow];
    struct netsim_receiver *receiver = &flow->receiver;
    assert(packet->flow < transport->flows_count && packet->sequence < flow->sender.packets);
    if (transport->config.kind == NETSIM_XP) {
        on_xp_data(transport, packet);
        return false;
    }
    if (netsim_is_controlled(transport))
        netsim_controller_on_data(transport, packet);
    bool in_order_only = transport->config.kind == NETSIM_GBN;
    uint32_t missing = in_order_only ? netsim_queue_pair_missing(transport, packet->flow) : packet->flow;
    if (missing != packet->flow)
        return on_early(transport, packet, missing);
    if (in_order_only ? note_in_order(receiver, packet->sequence) : note(receiver, packet->sequence)) {
        count_payload(transport, flow, packet->sequence);
        if (receiver->expected == flow->sender.packets)
            netsim_queue_pair_on_whole(transport, packet->flow);
    }
    if (transport->config.ack_bytes == 0) {
        if (flow->received_ps == transport->network->now_ps && flow->done_ps == NETSIM_NEVER)
            netsim_flow_done(transport, packet->flow, transport->network->now_ps);
        return false;
    }
    if (in_order_only && packet->sequence > receiver->expected && !reports_gap(transport, receiver))
        return false;
    transport->network->totals.ack_packets++;
    become_ack(transport, receiver, packet);
    if (netsim_is_controlled(transport))
        netsim_controller_report(transport, packet);
    return true;
}
