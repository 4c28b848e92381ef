/*
 * transmit.c - from the queues of a port onto its wire.
 *
 * A transmitter that is idle starts at once; one that is busy is looked after by one event, at the moment
 * when it is free. A wire has one event, too: the arrival of its first packet. So a packet costs two events
 * a hop under load, and one on an idle link, and no more events are ever pending than there are links.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/network.h"

static uint32_t event_of_transmitter(uint32_t port)
{
    return 2 * port;
}

/* ---- faults ------------------------------------------------------------------------------------------ */

static void copy_arrives(struct netsim *net, uint32_t number, const struct netsim_packet *original,
                         netsim_time arrive_ps)
{
    uint32_t copy = netsim_packet_new(net);
    if (copy == NETSIM_NO_PACKET)
        return;
    net->totals.duplicated_packets++;
    if ((original->flags & NETSIM_CORRUPTED) != 0)
        net->totals.corrupted_packets++;
    net->pool.packets[copy] = *original;
    net->pool.packets[copy].flags |= NETSIM_COPY;
    net->pool.packets[copy].arrive_ps = arrive_ps;
    netsim_wire_insert(net, number, copy);
}

/* Faults spare what would stop a link for ever: a pause that lasts until the resume, this resume, a credit.
 * They do not spare a pause that ends by itself. */
static bool is_spared(const struct netsim *net, uint32_t number, const struct netsim_packet *packet)
{
    bool bifrost = net->ports[net->ports[number].reverse].control == NETSIM_CONTROL_BIFROST;
    return netsim_is_control(packet) && !bifrost &&
           (packet->kind != LH_NETSIM_PAUSE || packet->cookie == NETSIM_HOLD);
}

/* Signals have losses of their own, which spare none. */
static bool is_lost_signal(struct netsim *net, uint32_t number, const struct netsim_packet *packet)
{
    struct netsim_signal_loss *signals = net->more[number].signals;
    return signals != NULL && netsim_is_control(packet) && netsim_signal_is_lost(signals, net->now_ps);
}

/* The link's faults decide what becomes of a packet that would arrive at arrive_ps. They think in
 * nanoseconds, so what they add to the delay is whole nanoseconds. */
static void launch_faulty(struct netsim *net, uint32_t number, uint32_t packet, netsim_time arrive_ps)
{
    struct netsim_port_more *more = &net->more[number];
    struct netsim_packet *launched = &net->pool.packets[packet];
    if (is_lost_signal(net, number, launched)) {
        net->totals.signals_lost++;
        netsim_packet_put(&net->pool, packet);
        return;
    }
    if (more->faults == NULL || is_spared(net, number, launched)) {
        netsim_wire_insert(net, number, packet);
        return;
    }
    lh_time now_ns = net->now_ps / NETSIM_PS_PER_NS;
    lh_time due_ns = now_ns + more->faults->spec.delay_ns;
    struct lh_link_fate fate = lh_link_decide(more->faults, now_ns, launched->wire_bytes);
    if (fate.dropped) {
        more->lost_packets++;
        net->totals.lost_packets++;
        net->totals.signals_lost += netsim_is_control(launched);
        if ((net->ports[number].flags & NETSIM_PORT_CREDITS) != 0)
            netsim_credits_on_lost(net, number, launched);
        netsim_packet_free(net, packet);
        return;
    }
    if (fate.corrupted) {
        net->totals.corrupted_packets++;
        launched->flags |= NETSIM_CORRUPTED;
        if (launched->kind == LH_NETSIM_RAW)
            launched->echo = fate.corrupt_bit;
    }
    launched->arrive_ps = arrive_ps + (fate.arrive_ns[0] - due_ns) * NETSIM_PS_PER_NS;
    if (fate.copies == 2 && launched->kind != LH_NETSIM_RAW) /* its cookie can have only one end */
        copy_arrives(net, number, launched, arrive_ps + (fate.arrive_ns[1] - due_ns) * NETSIM_PS_PER_NS);
    netsim_wire_insert(net, number, packet);
}

/* ---- the transmitter --------------------------------------------------------------------------------- */

static void tell_watcher(struct netsim *net, uint32_t number, const struct netsim_packet *packet)
{
    const struct lh_netsim_packet seen = {
        .at_ps = net->now_ps,
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
    net->watcher(net->watcher_context, &seen);
}

/* What a packet that sets out asks for more than its time. */
#define LAUNCHED_WITH_MORE                                                                                 \
    (NETSIM_PORT_FAULTY | NETSIM_PORT_WATCHED | NETSIM_PORT_CREDITS | NETSIM_PORT_DRIFTS)

static void launch(struct netsim *net, uint32_t number, uint32_t packet)
{
    struct netsim_port *port = &net->ports[number];
    struct netsim_packet *launched = &net->pool.packets[packet];
    port->free_ps = net->now_ps + netsim_serialization_ps(port->ps_per_byte_q16, launched->wire_bytes);
    port->sent_bytes += launched->wire_bytes;
    port->sent_packets++;
    if (launched->kind == LH_NETSIM_DATA)
        port->sent_payload_bytes += launched->wire_bytes - net->transport.header_bytes;
    launched->arrive_ps = port->free_ps + port->delay_ps;
    if ((port->flags & LAUNCHED_WITH_MORE) == 0) {
        netsim_wire_append(net, number, packet);
        return;
    }
    if ((port->flags & NETSIM_PORT_DRIFTS) != 0)
        launched->arrive_ps += netsim_drift_at(&net->more[number].drift, port->free_ps);
    if ((port->flags & NETSIM_PORT_CREDITS) != 0)
        netsim_credits_on_sent(net, number, launched);
    if ((port->flags & NETSIM_PORT_WATCHED) != 0)
        tell_watcher(net, number, launched);
    if ((port->flags & NETSIM_PORT_FAULTY) != 0)
        launch_faulty(net, number, packet, launched->arrive_ps);
    else
        netsim_wire_append(net, number, packet);
}

static uint32_t take_urgent(struct netsim *net, struct netsim_port *port)
{
    uint32_t packet = port->urgent_first;
    net->urgent_packets++;
    port->urgent_first = net->pool.packets[packet].next;
    if (port->urgent_first == NETSIM_NO_PACKET)
        port->urgent_last = NETSIM_NO_PACKET;
    return packet;
}

static uint32_t take_queued(struct netsim *net, struct netsim_port *port, unsigned priority)
{
    uint32_t packet = port->first[priority];
    struct netsim_packet *taken = &net->pool.packets[packet];
    port->first[priority] = taken->next;
    if (taken->next == NETSIM_NO_PACKET) {
        port->last[priority] = NETSIM_NO_PACKET;
        port->ready &= (uint8_t) ~(1u << priority);
    } else {
        __builtin_prefetch(&net->pool.packets[taken->next]);
    }
    port->queue_bytes[priority] -= taken->wire_bytes;
    port->queued_bytes -= taken->wire_bytes;
    return packet;
}

static unsigned highest(unsigned ready)
{
    return 31u - (unsigned)__builtin_clz(ready);
}

/* A host's flows send after what waits at their priority or above, and before the rest. */
static uint32_t take_of_host(struct netsim *net, struct netsim_port *port, unsigned ready)
{
    unsigned data = net->transport.data_priority;
    uint32_t packet = NETSIM_NO_PACKET;
    if (ready >> data == 0 && (port->paused >> data & 1) == 0)
        packet = netsim_host_packet(net, port->owner);
    if (packet == NETSIM_NO_PACKET && ready != 0)
        packet = take_queued(net, port, highest(ready));
    return packet;
}

static uint32_t take_next(struct netsim *net, uint32_t number)
{
    struct netsim_port *port = &net->ports[number];
    if (port->urgent_first != NETSIM_NO_PACKET)
        return take_urgent(net, port);
    unsigned ready = port->ready & (unsigned)~port->paused;
    if ((port->flags & NETSIM_PORT_OF_HOST) != 0)
        return take_of_host(net, port, ready);
    if (ready == 0)
        return NETSIM_NO_PACKET;
    uint32_t packet = take_queued(net, port, highest(ready));
    netsim_on_switch_departure(net, number, &net->pool.packets[packet]);
    return packet;
}

/* Sends the next packet, if there is one. The transmitter is idle. A departure may kick other ports, never
 * this one. */
static void transmit(struct netsim *net, uint32_t number)
{
    struct netsim_port *port = &net->ports[number];
    assert(port->free_ps <= net->now_ps);
    uint32_t packet = take_next(net, number);
    if (packet == NETSIM_NO_PACKET)
        return;
    launch(net, number, packet);
    bool more = (port->ready & (unsigned)~port->paused) != 0 || port->urgent_first != NETSIM_NO_PACKET ||
                (port->flags & NETSIM_PORT_OF_HOST) != 0;
    if (more)
        netsim_event_schedule(&net->events, event_of_transmitter(number), port->free_ps);
}

void netsim_on_port_free(struct netsim *net, uint32_t number)
{
    transmit(net, number);
}

void netsim_kick(struct netsim *net, uint32_t number)
{
    uint32_t event = event_of_transmitter(number);
    if (netsim_event_pending(&net->events, event))
        return;
    if (net->ports[number].free_ps > net->now_ps)
        netsim_event_schedule(&net->events, event, net->ports[number].free_ps);
    else
        transmit(net, number);
}

/* ---- queues ------------------------------------------------------------------------------------------ */

void netsim_enqueue(struct netsim *net, uint32_t number, uint32_t packet)
{
    struct netsim_port *port = &net->ports[number];
    struct netsim_packet *queued = &net->pool.packets[packet];
    unsigned priority = queued->priority;
    queued->next = NETSIM_NO_PACKET;
    if (port->last[priority] == NETSIM_NO_PACKET)
        port->first[priority] = packet;
    else
        net->pool.packets[port->last[priority]].next = packet;
    port->last[priority] = packet;
    port->ready |= (uint8_t)(1u << priority);
    port->queue_bytes[priority] += queued->wire_bytes;
    port->queued_bytes += queued->wire_bytes;
    if (port->queued_bytes > port->queued_max_bytes)
        port->queued_max_bytes = port->queued_bytes;
    netsim_kick(net, number);
}

void netsim_enqueue_urgent(struct netsim *net, uint32_t number, uint32_t packet)
{
    struct netsim_port *port = &net->ports[number];
    net->pool.packets[packet].next = NETSIM_NO_PACKET;
    if (port->urgent_last == NETSIM_NO_PACKET)
        port->urgent_first = packet;
    else
        net->pool.packets[port->urgent_last].next = packet;
    port->urgent_last = packet;
    netsim_kick(net, number);
}

void netsim_stop(struct netsim *net, uint32_t number, uint8_t priority)
{
    struct netsim_port *port = &net->ports[number];
    if (port->paused == 0)
        net->more[number].paused_since_ps = net->now_ps;
    port->paused |= (uint8_t)(1u << priority);
}

void netsim_go(struct netsim *net, uint32_t number, uint8_t priority)
{
    struct netsim_port *port = &net->ports[number];
    struct netsim_port_more *more = &net->more[number];
    uint8_t bit = (uint8_t)(1u << priority);
    if (port->paused == bit)
        more->paused_ps += net->now_ps - more->paused_since_ps;
    port->paused &= (uint8_t)~bit;
    netsim_kick(net, number);
}

void netsim_on_pause(struct netsim *net, uint32_t number, uint8_t priority, bool pause)
{
    if (!pause) {
        netsim_go(net, number, priority);
        return;
    }
    net->more[number].pauses++;
    netsim_stop(net, number, priority);
}
