/*
 * receiver.c - the receiving end of a flow: notes what arrived, acknowledges each packet.
 *
 * An acknowledgement says up to where everything has arrived, and which packet it answers (so the sender
 * learns of each one that arrived out of order, as IRN does: Mittal et al. 2018, section 3.1).
 *
 * With go-back-N a packet that comes before its turn is not taken. The first one behind a gap is answered
 * with a negative acknowledgement, the others with nothing, as RoCE's responders do it (transport.nack
 * repeats it). One that comes again is acknowledged again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/network.h"

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
static bool reports_gap(const struct netsim *net, struct netsim_receiver *receiver)
{
    bool again = receiver->reported == receiver->expected + 1;
    if (again && (net->transport.nack_ps == 0 || net->now_ps < receiver->report_ps))
        return false;
    receiver->reported = receiver->expected + 1;
    receiver->report_ps = net->now_ps + net->transport.nack_ps;
    return true;
}

/* Whether a mark is told to the sender. */
static bool tells(const struct netsim *net, struct netsim_receiver *receiver)
{
    if (net->now_ps < receiver->tell_ps)
        return false;
    receiver->tell_ps = net->now_ps + net->transport.cnp_ps;
    return true;
}

static void become_ack(const struct netsim *net, struct netsim_receiver *receiver,
                       struct netsim_packet *packet)
{
    uint32_t source = packet->source;
    packet->source = packet->destination;
    packet->destination = source;
    packet->echo = packet->sequence;
    packet->sequence = receiver->expected;
    packet->entropy = ~packet->entropy;
    packet->wire_bytes = (uint16_t)net->transport.ack_bytes;
    packet->kind = LH_NETSIM_ACK;
    packet->priority = net->transport.ack_priority;
    packet->flags &= NETSIM_MARKED; /* echoes congestion */
    if (packet->flags != 0 && !tells(net, receiver))
        packet->flags = 0;
    if (net->transport.kind == NETSIM_GBN && packet->echo > packet->sequence)
        packet->flags |= NETSIM_NACK;
}

bool netsim_receiver_on_data(struct netsim *net, struct netsim_packet *packet)
{
    struct netsim_flow *flow = &net->flows[packet->flow];
    struct netsim_receiver *receiver = &flow->receiver;
    assert(packet->flow < net->flows_count && packet->sequence < flow->sender.packets);
    bool in_order_only = net->transport.kind == NETSIM_GBN;
    if (in_order_only ? note_in_order(receiver, packet->sequence) : note(receiver, packet->sequence)) {
        bool last = packet->sequence == flow->sender.packets - 1;
        net->totals.delivered_bytes += last ? flow->sender.last_bytes : net->transport.payload_bytes;
        if (receiver->expected == flow->sender.packets)
            flow->received_ps = net->now_ps;
    }
    if (net->transport.ack_bytes == 0) {
        if (flow->received_ps == net->now_ps && flow->done_ps == NETSIM_NEVER) {
            flow->done_ps = net->now_ps;
            net->totals.flows_done++;
        }
        return false;
    }
    if (in_order_only && packet->sequence > receiver->expected && !reports_gap(net, receiver))
        return false;
    net->totals.ack_packets++;
    become_ack(net, receiver, packet);
    return true;
}
