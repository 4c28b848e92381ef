/*
 * xp.c - see xp.h.
 *
 * A timer a flow: its deadline, pending from its turn on until it ends. Flows of a pair have their turns, and
 * end, in the order of their start.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/transport/xp.h"

#include "netsim/transport/flow_ring.h"

static bool has_ended(const struct netsim_transport *transport, uint32_t flow)
{
    return transport->flows[flow].done_ps != NETSIM_NEVER;
}

static bool is_sent(const struct netsim_sender *sender)
{
    return sender->next == sender->packets;
}

#define DEADLINE_PS (10 * NETSIM_PS_PER_MS)

/* One that is shorter than the path would end each message before a byte of it can come. */
static netsim_time deadline_ps(const struct netsim_transport *transport, uint32_t flow)
{
    netsim_time alone_ps = transport->flows[flow].ideal_ps;
    if (transport->config.deadline_ps != NETSIM_NEVER)
        return transport->config.deadline_ps;
    return 2 * alone_ps > DEADLINE_PS ? 2 * alone_ps : DEADLINE_PS;
}

static void begin_turn(struct netsim_transport *transport, uint32_t flow)
{
    netsim_event_schedule(&transport->network->events, transport->first_timer_event + flow,
                          transport->network->now_ps + deadline_ps(transport, flow));
}

static void end(struct netsim_transport *transport, uint32_t number)
{
    struct netsim_event_queue *events = &transport->network->events;
    uint32_t after = transport->flows[number].pair_after;
    assert(!has_ended(transport, number));
    if (netsim_event_pending(events, transport->first_timer_event + number))
        netsim_event_cancel(events, transport->first_timer_event + number);
    netsim_flow_received(transport, number, transport->network->now_ps);
    netsim_flow_done(transport, number, transport->network->now_ps);
    if (after != NETSIM_NO_FLOW)
        begin_turn(transport, after);
}

bool netsim_xp_start(struct netsim_transport *transport, uint32_t number)
{
    struct netsim_flow *flow = &transport->flows[number];
    const struct netsim_sender *sender = &flow->sender;
    uint32_t *last =
        &transport
             ->last_of_pair[(size_t)sender->source * transport->network->hosts_count + sender->destination];
    uint32_t before = *last == 0 ? NETSIM_NO_FLOW : *last - 1;
    *last = number + 1;
    flow->pair_before = before;
    flow->pair_after = NETSIM_NO_FLOW;
    flow->missing_bytes = flow->bytes;
    if (before != NETSIM_NO_FLOW)
        transport->flows[before].pair_after = number;
    if (before == NETSIM_NO_FLOW || has_ended(transport, before))
        begin_turn(transport, number);
    return before == NETSIM_NO_FLOW || is_sent(&transport->flows[before].sender);
}

void netsim_xp_on_sent(struct netsim_transport *transport, uint32_t number)
{
    assert(is_sent(&transport->flows[number].sender));
    if (transport->flows[number].pair_after != NETSIM_NO_FLOW)
        netsim_flow_ring_add(transport, transport->flows[number].pair_after);
}

bool netsim_xp_on_arrival(struct netsim_transport *transport, uint32_t number)
{
    const struct netsim_flow *flows = transport->flows;
    uint32_t first = number;
    if (has_ended(transport, number))
        return false;
    while (flows[first].pair_before != NETSIM_NO_FLOW && !has_ended(transport, flows[first].pair_before))
        first = flows[first].pair_before;
    for (; first != number; first = flows[first].pair_after)
        end(transport, first);
    return true;
}

void netsim_xp_on_last(struct netsim_transport *transport, uint32_t flow)
{
    end(transport, flow);
}

bool netsim_xp_on_deadline_expired(struct netsim_transport *transport, uint32_t number)
{
    struct netsim_sender *sender = &transport->flows[number].sender;
    bool was_sent = is_sent(sender);
    transport->network->totals.timeouts++;
    sender->timeouts++;
    sender->next = sender->packets;
    end(transport, number);
    if (!was_sent)
        netsim_xp_on_sent(transport, number);
    return !was_sent;
}
