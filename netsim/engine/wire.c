/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/engine/switch.h"

#include "netsim/engine/network.h"

/* ---- wire ------------------------------------------------------------------------------------------ */

/*
 * The packets on a wire, in the order in which they arrive.
 *
 * A wire is a queue: what was sent later arrives later. Only faults let one packet overtake another; those
 * are in a heap, so that a wire with a million packets costs a link with jitter only a logarithm of that.
 */

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

/* ---- launch ---------------------------------------------------------------------------------------- */

/* ---- faults ------------------------------------------------------------------------------------------ */

static void copy_arrives(struct netsim_network *network, uint32_t number,
                         const struct netsim_packet *original, netsim_time arrive_ps)
{
    uint32_t copy = netsim_packet_new(network);
    if (copy == NETSIM_NO_PACKET)
        return;
    network->totals.duplicated_packets++;
    if ((original->flags & NETSIM_CORRUPTED) != 0)
        network->totals.corrupted_packets++;
    network->pool.packets[copy] = *original;
    network->pool.packets[copy].flags |= NETSIM_COPY;
    network->pool.packets[copy].arrive_ps = arrive_ps;
    netsim_wire_insert(network, number, copy);
}

/* Faults spare what would stop a link for ever: a pause that lasts until the resume, this resume, a credit.
 * They do not spare a pause that ends by itself. */
static bool is_spared(const struct netsim_network *network, uint32_t number,
                      const struct netsim_packet *packet)
{
    bool bifrost = network->ports[network->ports[number].reverse].control == NETSIM_CONTROL_BIFROST;
    return netsim_is_control(packet) && !bifrost &&
           (packet->kind != LH_NETSIM_PAUSE || packet->cookie == NETSIM_HOLD);
}

/* Signals have losses of their own, which spare none. */
static bool is_lost_signal(struct netsim_network *network, uint32_t number,
                           const struct netsim_packet *packet)
{
    struct netsim_signal_loss *signals = network->more[number].signals;
    return signals != NULL && netsim_is_control(packet) && netsim_signal_is_lost(signals, network->now_ps);
}

static void count_lost(struct netsim_network *network, uint32_t number, const struct netsim_packet *packet)
{
    network->more[number].lost_packets++;
    network->totals.lost_packets++;
    network->totals.signals_lost += netsim_is_control(packet);
}

/* The link's faults decide what becomes of a packet that would arrive at arrive_ps. They think in
 * nanoseconds, so what they add to the delay is whole nanoseconds. */
static bool launch_faulty(struct netsim_network *network, uint32_t number, uint32_t packet,
                          netsim_time arrive_ps)
{
    struct netsim_port_more *more = &network->more[number];
    struct netsim_packet *launched = &network->pool.packets[packet];
    if (is_lost_signal(network, number, launched)) {
        network->totals.signals_lost++;
        return false;
    }
    bool spared = is_spared(network, number, launched);
    if (!spared && network->now_ps < more->down_until_ps) {
        count_lost(network, number, launched);
        return false;
    }
    if (more->faults == NULL || spared) {
        netsim_wire_insert(network, number, packet);
        return true;
    }
    lh_time now_ns = network->now_ps / NETSIM_PS_PER_NS;
    lh_time due_ns = now_ns + more->faults->spec.delay_ns;
    struct lh_link_fate fate = lh_link_decide(more->faults, now_ns, launched->wire_bytes);
    if (fate.dropped) {
        count_lost(network, number, launched);
        return false;
    }
    if (fate.corrupted) {
        network->totals.corrupted_packets++;
        launched->flags |= NETSIM_CORRUPTED;
        if (launched->kind == LH_NETSIM_RAW)
            launched->echo = fate.corrupt_bit;
    }
    launched->arrive_ps = arrive_ps + (fate.arrive_ns[0] - due_ns) * NETSIM_PS_PER_NS;
    if (fate.copies == 2 && launched->kind != LH_NETSIM_RAW) /* its cookie can have only one end */
        copy_arrives(network, number, launched,
                     arrive_ps + (fate.arrive_ns[1] - due_ns) * NETSIM_PS_PER_NS);
    netsim_wire_insert(network, number, packet);
    return true;
}

/* ------------------------------------------------------------------------------------------------------ */

static void call_watcher(struct netsim_network *network, uint32_t number,
                         const struct netsim_packet *packet)
{
    const struct lh_netsim_packet seen = {
        .at_ps = network->now_ps,
        .link = number,
        .source = packet->source,
        .destination = packet->destination,
        .flow = packet->flow,
        .sequence = packet->sequence,
        .wire_bytes = packet->wire_bytes,
        .kind = packet->kind,
        .priority = packet->priority,
        .marked = (packet->flags & NETSIM_MARKED) != 0,
        .repeated = (packet->flags & NETSIM_REPEATED) != 0,
        .quanta = packet->kind != LH_NETSIM_PAUSE      ? 0
                  : packet->cookie < LH_PFC_QUANTA_MAX ? (uint16_t)packet->cookie
                                                       : LH_PFC_QUANTA_MAX,
    };
    network->watcher(network->watcher_context, &seen);
}

/* A packet that has begun leaves at the rate at which it began. */
static void change_rate(const struct netsim_network *network, struct netsim_port *port,
                        struct netsim_packet *launched)
{
    const struct netsim_rate_change *change = &network->change;
    if (network->now_ps < change->from_ps || network->now_ps >= change->until_ps)
        return;
    port->free_ps =
        network->now_ps + netsim_serialization_ps(change->ps_per_byte_q16, launched->wire_bytes);
    launched->arrive_ps = port->free_ps + port->delay_ps;
}

bool netsim_launch_specially(struct netsim_network *network, uint32_t number, uint32_t packet)
{
    struct netsim_port *port = &network->ports[number];
    struct netsim_packet *launched = &network->pool.packets[packet];
    if (network->more[number].faults != NULL)
        change_rate(network, port, launched);
    if ((port->flags & NETSIM_PORT_DRIFTS) != 0)
        launched->arrive_ps += netsim_drift_at(&network->more[number].drift, port->free_ps);
    if ((port->flags & NETSIM_PORT_WATCHED) != 0)
        call_watcher(network, number, launched);
    if ((port->flags & NETSIM_PORT_FAULTY) != 0)
        return launch_faulty(network, number, packet, launched->arrive_ps);
    netsim_wire_append(network, number, packet);
    return true;
}
