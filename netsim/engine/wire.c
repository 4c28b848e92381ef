/*
 * wire.c - the packets on a wire, in the order in which they arrive.
 *
 * A wire is a queue: what was sent later arrives later. Only faults let one packet overtake another; those
 * are in a heap, so that a wire with a million packets costs a link with jitter only a logarithm of that.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/engine/wire.h"

static uint32_t event_of_wire(uint32_t port)
{
    return 2 * port + 1;
}

static void append(struct netsim_network *network, struct netsim_port *port, uint32_t packet)
{
    struct netsim_packet *packets = network->pool.packets;
    packets[packet].next = NETSIM_NO_PACKET;
    if (port->wire_last == NETSIM_NO_PACKET)
        port->wire_first = packet;
    else
        packets[port->wire_last].next = packet;
    port->wire_last = packet;
}

/* ---- overtakers: a pairing heap (Fredman et al. 1986); `next`: a sibling, `below`: the first child ---- */

/* Either may be NETSIM_NO_PACKET. Of two that arrive together the first argument's goes first. */
static uint32_t meld(struct netsim_packet *packets, uint32_t a, uint32_t b)
{
    if (a == NETSIM_NO_PACKET)
        return b;
    if (b == NETSIM_NO_PACKET)
        return a;
    bool ordered = packets[a].arrive_ps <= packets[b].arrive_ps;
    uint32_t root = ordered ? a : b;
    uint32_t child = ordered ? b : a;
    packets[child].next = packets[root].below;
    packets[root].below = child;
    packets[root].next = NETSIM_NO_PACKET;
    return root;
}

/* The heap without its root: its children in pairs, and the pairs together. Rounds: as many as children,
 * a logarithm of the heap on average. */
static uint32_t without_root(struct netsim_packet *packets, uint32_t root)
{
    uint32_t pairs = NETSIM_NO_PACKET;
    for (uint32_t child = packets[root].below; child != NETSIM_NO_PACKET;) {
        uint32_t second = packets[child].next;
        uint32_t rest = second == NETSIM_NO_PACKET ? NETSIM_NO_PACKET : packets[second].next;
        uint32_t pair = meld(packets, child, second);
        packets[pair].next = pairs;
        pairs = pair;
        child = rest;
    }
    uint32_t heap = NETSIM_NO_PACKET;
    while (pairs != NETSIM_NO_PACKET) {
        uint32_t next = packets[pairs].next;
        heap = meld(packets, pairs, heap);
        pairs = next;
    }
    return heap;
}

/* ---- both -------------------------------------------------------------------------------------------- */

/* Whether the next to arrive is an overtaker. */
static bool heap_is_next(const struct netsim_network *network, const struct netsim_port *port,
                         uint32_t heap)
{
    const struct netsim_packet *packets = network->pool.packets;
    if (heap == NETSIM_NO_PACKET || port->wire_first == NETSIM_NO_PACKET)
        return heap != NETSIM_NO_PACKET;
    return packets[heap].arrive_ps < packets[port->wire_first].arrive_ps;
}

static void schedule(struct netsim_network *network, uint32_t number)
{
    const struct netsim_port *port = &network->ports[number];
    uint32_t first = port->wire_first;
    if ((port->flags & NETSIM_PORT_FAULTY) != 0 &&
        heap_is_next(network, port, network->more[number].overtakers))
        first = network->more[number].overtakers;
    if (first == NETSIM_NO_PACKET)
        return;
    const struct netsim_packet *arrives = &network->pool.packets[first];
    /* The one behind it is asked for when this one arrives; on a long wire it has left the cache. */
    if (arrives->next != NETSIM_NO_PACKET)
        __builtin_prefetch(&network->pool.packets[arrives->next]);
    netsim_event_schedule(&network->events, event_of_wire(number), arrives->arrive_ps);
}

void netsim_wire_append(struct netsim_network *network, uint32_t number, uint32_t packet)
{
    bool first = network->ports[number].wire_last == NETSIM_NO_PACKET;
    append(network, &network->ports[number], packet);
    if (first)
        netsim_event_schedule(&network->events, event_of_wire(number),
                              network->pool.packets[packet].arrive_ps);
}

void netsim_wire_insert(struct netsim_network *network, uint32_t number, uint32_t packet)
{
    struct netsim_port *port = &network->ports[number];
    struct netsim_packet *packets = network->pool.packets;
    uint32_t event = event_of_wire(number);
    if (port->wire_last == NETSIM_NO_PACKET ||
        packets[port->wire_last].arrive_ps <= packets[packet].arrive_ps) {
        append(network, port, packet);
    } else {
        packets[packet].next = packets[packet].below = NETSIM_NO_PACKET;
        network->more[number].overtakers = meld(packets, network->more[number].overtakers, packet);
    }
    if (netsim_event_pending(&network->events, event)) {
        if (network->events.events[event].at_ps <= packets[packet].arrive_ps)
            return;
        netsim_event_cancel(&network->events, event);
    }
    schedule(network, number);
}

static uint32_t take(struct netsim_network *network, uint32_t number)
{
    struct netsim_port *port = &network->ports[number];
    uint32_t packet = port->wire_first;
    if ((port->flags & NETSIM_PORT_FAULTY) != 0 &&
        heap_is_next(network, port, network->more[number].overtakers)) {
        packet = network->more[number].overtakers;
        network->more[number].overtakers = without_root(network->pool.packets, packet);
        return packet;
    }
    port->wire_first = network->pool.packets[packet].next;
    if (port->wire_first == NETSIM_NO_PACKET)
        port->wire_last = NETSIM_NO_PACKET;
    return packet;
}

uint32_t netsim_wire_take(struct netsim_network *network, uint32_t number)
{
    uint32_t packet = take(network, number);
    schedule(network, number);
    return packet;
}
