/*
 * queue_pair.c - see queue_pair.h.
 *
 * Messages are linked in the order of their start. Those that are over for the sender, and all before them,
 * are taken off the front: pair_before of the oldest that is not is NETSIM_NO_FLOW. So a walk towards it
 * passes what is in flight, no more.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/transport/queue_pair.h"

static bool is_over(const struct netsim_flow *flow)
{
    return flow->done_ps != NETSIM_NEVER || flow->sender.failed;
}

static bool is_sent(const struct netsim_sender *sender)
{
    return sender->next == sender->packets || sender->failed;
}

static bool has_come(const struct netsim_flow *flow)
{
    return flow->received_ps != NETSIM_NEVER || flow->sender.failed;
}

/* ---- the sender -------------------------------------------------------------------------------------- */

void netsim_queue_pair_add(struct netsim_transport *transport, uint32_t number)
{
    struct netsim_flow *flow = &transport->flows[number];
    struct netsim_sender *sender = &flow->sender;
    flow->pair_before = flow->pair_after = NETSIM_NO_FLOW;
    if (!transport->config.one_queue_pair)
        return;
    size_t pair = (size_t)sender->source * transport->network->hosts_count + sender->destination;
    uint32_t *last = &transport->last_of_pair[pair];
    if (*last != 0) {
        struct netsim_flow *before = &transport->flows[*last - 1];
        sender->entropy = before->sender.entropy;
        before->pair_after = number;
        flow->pair_before = *last - 1;
        if (is_over(before) && before->pair_before == NETSIM_NO_FLOW)
            flow->pair_before = NETSIM_NO_FLOW;
    }
    *last = number + 1;
}

bool netsim_queue_pair_has_room(const struct netsim_transport *transport, uint32_t number)
{
    const struct netsim_flow *flow = &transport->flows[number];
    uint64_t in_flight = 0;
    while (transport->config.one_queue_pair && flow->pair_before != NETSIM_NO_FLOW) {
        in_flight += flow->sender.next;
        flow = &transport->flows[flow->pair_before];
        if (!is_sent(&flow->sender))
            return false;
    }
    in_flight += flow->sender.next - flow->sender.acknowledged;
    return in_flight < transport->flows[number].sender.window_packets;
}

bool netsim_queue_pair_has_few(const struct netsim_transport *transport, uint32_t number, uint32_t packets)
{
    const struct netsim_flow *flow = &transport->flows[number];
    uint64_t in_flight = flow->sender.next - flow->sender.acknowledged;
    while (in_flight <= packets && flow->pair_after != NETSIM_NO_FLOW) {
        flow = &transport->flows[flow->pair_after];
        if (flow->sender.next == 0)
            break;
        in_flight += flow->sender.next;
    }
    return in_flight <= packets;
}

uint32_t netsim_queue_pair_unsent(const struct netsim_transport *transport, uint32_t number)
{
    while (number != NETSIM_NO_FLOW && is_sent(&transport->flows[number].sender))
        number = transport->flows[number].pair_after;
    return number;
}

void netsim_queue_pair_go_back(struct netsim_transport *transport, uint32_t number)
{
    while ((number = transport->flows[number].pair_after) != NETSIM_NO_FLOW) {
        struct netsim_sender *sender = &transport->flows[number].sender;
        if (sender->next == sender->acknowledged)
            return; /* nor is anything of those behind it in flight */
        sender->next = sender->acknowledged;
    }
}

void netsim_queue_pair_on_acknowledged(struct netsim_transport *transport, uint32_t number)
{
    while (number != NETSIM_NO_FLOW && transport->flows[number].pair_before == NETSIM_NO_FLOW) {
        struct netsim_flow *flow = &transport->flows[number];
        if (!is_over(flow)) {
            if (flow->sender.acknowledged != flow->sender.packets)
                return;
            netsim_flow_done(transport, number, transport->network->now_ps);
        }
        number = flow->pair_after;
        if (number != NETSIM_NO_FLOW)
            transport->flows[number].pair_before = NETSIM_NO_FLOW;
    }
}

/* ---- the receiver ------------------------------------------------------------------------------------ */

uint32_t netsim_queue_pair_missing(const struct netsim_transport *transport, uint32_t number)
{
    uint32_t before;
    while ((before = transport->flows[number].pair_before) != NETSIM_NO_FLOW &&
           !has_come(&transport->flows[before]))
        number = before;
    return number;
}

void netsim_queue_pair_on_whole(struct netsim_transport *transport, uint32_t number)
{
    if (netsim_queue_pair_missing(transport, number) != number)
        return;
    while (number != NETSIM_NO_FLOW) {
        struct netsim_flow *flow = &transport->flows[number];
        if (!has_come(flow)) {
            if (flow->receiver.expected != flow->sender.packets)
                return;
            netsim_flow_received(transport, number, transport->network->now_ps);
        }
        number = flow->pair_after;
    }
}
