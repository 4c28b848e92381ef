/*
 * simulation_run.c - see run.h.
 *
 * A transmitter that is idle starts at once; one that is busy has one event, when it is idle. A wire has one
 * event, too: the arrival of its first packet. So a packet costs two events a hop under load, and one on an
 * idle link, and no more events are ever pending than there are links.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/run/simulation_run.h"

#include <longhaul/error.h>

#include "base/error.h"
#include "netsim/engine/network.h"
#include "netsim/engine/switch.h"
#include "netsim/flowcontrol/flow_links.h"
#include "netsim/flowcontrol/link_rules.h"
#include "netsim/transport/flow_controller.h"
#include "netsim/transport/netsim_host.h"

#define CHECK_EVERY 4096u /* events between two checks for the end */

/* ---- set-up ------------------------------------------------------------------------------------------ */

/* The event of the next start is pending for no later than that. */
static void plan_start(struct netsim *net)
{
    struct netsim_transport *transport = &net->transport;
    struct netsim_event_queue *events = &net->network.events;
    netsim_time next_ps = netsim_starts_next_ps(&transport->starts);
    transport->starts.changed = false;
    if (netsim_event_pending(events, transport->start_event)) {
        if (transport->start_ps <= next_ps)
            return;
        netsim_event_cancel(events, transport->start_event);
    }
    transport->start_ps = next_ps;
    if (next_ps != NETSIM_NEVER)
        netsim_event_schedule(events, transport->start_event, next_ps);
}

static void setup_events(struct netsim *net, struct netsim_arena *arena)
{
    struct netsim_network *network = &net->network;
    struct netsim_transport *transport = &net->transport;
    uint32_t count = netsim_transport_number_events(transport, 2 * network->ports_count);
    count = netsim_flow_control_number_events(&net->control, count);
    count = netsim_disturbance_number_events(&net->disturbance, count);
    netsim_event_queue_init(&network->events, arena, count,
                            netsim_network_bucket_ps(network, net->control.frame_bytes));
    if (arena->base == NULL)
        return;
    netsim_disturbance_begin(&net->disturbance);
    if (transport->config.kind != NETSIM_LONGHAUL)
        plan_start(net);
}

/* Paces, the next flow, and timeouts when they are counted, make packets move again. */
static void setup_deadlock(struct netsim *net, const struct netsim_config *config)
{
    const struct netsim_transport *transport = &net->transport;
    net->deadlock = (struct netsim_deadlock){
        .first_event = config->transport.retries != 0 || config->transport.kind == NETSIM_XP
                           ? transport->first_timer_event
                           : transport->first_pace_event,
        .end_event = transport->start_event + 1,
    };
    if (netsim_signals_suffer(&config->longs))
        net->deadlock.mute_until_ps = config->longs.mute_from_ps + config->longs.mute_for_ps;
}

void netsim_setup(struct netsim *net, const struct netsim_config *config, const struct netsim_graph *graph,
                  const struct netsim_flow_list *flows, const struct lh_prng *prng,
                  struct netsim_arena *arena)
{
    struct netsim_network *network = &net->network;
    net->runs_on = false;
    netsim_network_init(network, config, graph, prng, arena);
    netsim_flow_control_init(&net->control, network, config, arena);
    netsim_transport_init(&net->transport, network, config, flows, prng, arena);
    netsim_disturbance_init(&net->disturbance, network, config, prng, arena);
    setup_events(net, arena);
    setup_deadlock(net, config);
    netsim_packet_pool_init(&network->pool, arena, config->packets_max);
    /* At a link a pause and a resume may wait for the packet on the wire, and others be in flight. */
    uint64_t reserved_packets = network->lossless != 0 ? (uint64_t)4 * network->ports_count : 0;
    uint64_t half = config->packets_max / 2;
    network->reserved_packets = (uint32_t)(reserved_packets < half ? reserved_packets : half);
}

/* ---- the transmitter --------------------------------------------------------------------------------- */

static void kick(struct netsim *net, uint32_t port);

/* Sends a pause, resume or credit to the near end of a link. */
static void send_signal(struct netsim *net, const struct netsim_effect *effect)
{
    enum lh_netsim_kind kind = (enum lh_netsim_kind)effect->signal;
    uint32_t packet = netsim_signalling_packet(&net->control, kind, effect->value);
    uint32_t back = net->network.ports[effect->number].reverse;
    if (packet == NETSIM_NO_PACKET)
        return;
    netsim_queue_append_urgent(&net->network, back, packet);
    kick(net, back);
}

/* A port that is kicked may send a packet whose departure has effects of its own, a signal: that ends it. */
static void carry_out(struct netsim *net)
{
    const struct netsim_effects effects = net->control.effects;
    net->control.effects.count = 0;
    for (uint32_t i = 0; i < effects.count; i++) {
        const struct netsim_effect *effect = &effects.list[i];
        if (effect->kind == NETSIM_EFFECT_SIGNAL)
            send_signal(net, effect);
        else if (effect->kind == NETSIM_EFFECT_KICK)
            kick(net, effect->number);
        else
            netsim_event_schedule(&net->network.events, effect->number, effect->value);
    }
}

static inline void carry_out_any(struct netsim *net)
{
    if (net->control.effects.count != 0)
        carry_out(net);
}

/* A host's flows send after what is queued at their priority or above, and before the rest. */
static uint32_t take_of_host(struct netsim *net, struct netsim_port *port, unsigned ready)
{
    unsigned data = net->transport.config.data_priority;
    uint32_t packet = NETSIM_NO_PACKET;
    if (ready >> data == 0 && ((port->paused | port->stalled) >> data & 1) == 0)
        packet = netsim_host_packet(&net->transport, port->owner);
    if (packet == NETSIM_NO_PACKET && ready != 0)
        packet = netsim_queue_take(&net->network, port, netsim_queue_highest(ready));
    return packet;
}

static uint32_t take_next(struct netsim *net, uint32_t number)
{
    struct netsim_network *network = &net->network;
    struct netsim_port *port = &network->ports[number];
    if (port->urgent_first != NETSIM_NO_PACKET)
        return netsim_queue_take_urgent(network, number);
    unsigned ready = netsim_queue_ready(port);
    if ((port->flags & NETSIM_PORT_OF_HOST) != 0)
        return take_of_host(net, port, ready);
    if (ready == 0)
        return NETSIM_NO_PACKET;
    uint32_t packet = netsim_queue_take(network, port, netsim_queue_highest(ready));
    struct netsim_packet *taken = &network->pool.packets[packet];
    if (netsim_switch_on_departure(network, number, taken)) {
        netsim_signalling_on_departure(&net->control, taken->ingress, taken);
        carry_out_any(net);
    }
    return packet;
}

static void launch(struct netsim *net, uint32_t number, uint32_t packet)
{
    struct netsim_packet *launched = &net->network.pool.packets[packet];
    bool credits = (net->network.ports[number].flags & NETSIM_PORT_CREDITS) != 0;
    if (credits)
        netsim_credits_on_sent(&net->control, number, launched);
    if (netsim_launch(&net->network, number, packet))
        return;
    if (credits) {
        netsim_credits_on_lost(&net->control, number, launched);
        carry_out_any(net);
    }
    netsim_packet_drop(&net->network, packet);
}

/* Sends the next packet, if there is one. The transmitter is idle. A departure may kick other ports, never
 * this one. */
static void transmit(struct netsim *net, uint32_t number)
{
    struct netsim_port *port = &net->network.ports[number];
    assert(port->free_ps <= net->network.now_ps);
    uint32_t packet = take_next(net, number);
    if (packet == NETSIM_NO_PACKET)
        return;
    launch(net, number, packet);
    bool more = netsim_queue_ready(port) != 0 || port->urgent_first != NETSIM_NO_PACKET ||
                (port->flags & NETSIM_PORT_OF_HOST) != 0;
    if (more)
        netsim_event_schedule(&net->network.events, 2 * number, port->free_ps);
}

/* There may be something to send. */
static void kick(struct netsim *net, uint32_t number)
{
    struct netsim_network *network = &net->network;
    if (netsim_event_pending(&network->events, 2 * number))
        return;
    if (network->ports[number].free_ps > network->now_ps)
        netsim_event_schedule(&network->events, 2 * number, network->ports[number].free_ps);
    else
        transmit(net, number);
}

static void enqueue(struct netsim *net, uint32_t port, uint32_t packet)
{
    netsim_queue_append(&net->network, port, packet);
    kick(net, port);
}

/* ---- arrivals ---------------------------------------------------------------------------------------- */

static void on_switch_arrival(struct netsim *net, uint32_t link, uint32_t packet)
{
    struct netsim_network *network = &net->network;
    struct netsim_packet *arrived = &network->pool.packets[packet];
    uint32_t out = NETSIM_NO_PORT;
    switch (netsim_switch_on_arrival(network, link, packet, &out)) {
    case NETSIM_ARRIVAL_REPORTED:
        netsim_signalling_on_arrival(&net->control, link, arrived);
        carry_out_any(net);
        enqueue(net, out, packet);
        return;
    case NETSIM_ARRIVAL_ADMITTED:
        enqueue(net, out, packet);
        return;
    case NETSIM_ARRIVAL_REFUSED:
        netsim_signalling_on_refused(&net->control, link, arrived);
        network->more[out].dropped_packets++;
        network->totals.dropped_packets++;
        break;
    case NETSIM_ARRIVAL_CORRUPTED:
        if ((network->ports[link].flags & NETSIM_PORT_CREDITS) != 0)
            netsim_credits_on_lost(&net->control, link, arrived);
        break;
    case NETSIM_ARRIVAL_UNROUTABLE:
        break;
    }
    carry_out_any(net);
    netsim_packet_drop(network, packet);
}

static void on_host_arrival(struct netsim *net, uint32_t host, uint32_t packet)
{
    struct netsim_network *network = &net->network;
    if (network->pool.packets[packet].kind == LH_NETSIM_RAW) {
        netsim_raw_end(network, packet, true);
        return;
    }
    enum netsim_host_action action =
        netsim_host_on_arrival(&net->transport, &network->pool.packets[packet]);
    if (action == NETSIM_HOST_ANSWERS) {
        enqueue(net, netsim_host_port(host), packet);
        return;
    }
    if (action == NETSIM_HOST_SENDS)
        kick(net, netsim_host_port(host));
    netsim_packet_put(&network->pool, packet);
}

static void on_signal_arrival(struct netsim *net, uint32_t link, uint32_t packet)
{
    const struct netsim_packet signal = net->network.pool.packets[packet];
    netsim_packet_put(&net->network.pool, packet);
    netsim_signalling_on_signal(&net->control, link, &signal);
    carry_out_any(net);
}

static void on_wire_end(struct netsim *net, uint32_t link)
{
    const struct netsim_port *port = &net->network.ports[link];
    uint32_t packet = netsim_wire_take(&net->network, link);
    if (netsim_is_control(&net->network.pool.packets[packet]))
        on_signal_arrival(net, link, packet);
    else if ((port->flags & NETSIM_PORT_TO_HOST) != 0)
        on_host_arrival(net, port->far, packet);
    else
        on_switch_arrival(net, link, packet);
}

/* ---- the loop ---------------------------------------------------------------------------------------- */

void netsim_flow_start(struct netsim *net, uint32_t flow)
{
    netsim_sender_start(&net->transport, flow);
    kick(net, netsim_host_port(net->transport.flows[flow].sender.source));
}

static void on_starts(struct netsim *net)
{
    struct netsim_starts *starts = &net->transport.starts;
    netsim_time now_ps = net->network.now_ps;
    for (uint32_t node; (node = netsim_starts_take(starts, now_ps)) != NETSIM_NO_NODE;) {
        if (netsim_starts_is_task(starts, node))
            netsim_starts_release(starts, node, now_ps);
        else
            netsim_flow_start(net, node);
    }
    plan_start(net);
}

static void on_credit_timer(struct netsim *net, uint32_t flow)
{
    uint32_t packet = netsim_controller_on_credit_timer(&net->transport, flow);
    if (packet != NETSIM_NO_PACKET)
        enqueue(net, netsim_host_port(net->transport.flows[flow].sender.destination), packet);
}

static bool on_sender_timer(struct netsim_transport *transport, uint32_t event, uint32_t *flow)
{
    if (event >= transport->first_pace_event) {
        *flow = event - transport->first_pace_event;
        return netsim_sender_on_pace_expired(transport, *flow);
    }
    if (event >= transport->controllers.first_event) {
        *flow = event - transport->controllers.first_event;
        return netsim_sender_on_controller_timer(transport, *flow);
    }
    *flow = event - transport->first_timer_event;
    return netsim_sender_on_timer_expired(transport, *flow);
}

static void on_flow_timer(struct netsim *net, uint32_t event)
{
    struct netsim_transport *transport = &net->transport;
    uint32_t flow = 0;
    if (event >= transport->controllers.first_credit_event && event < transport->first_pace_event)
        on_credit_timer(net, event - transport->controllers.first_credit_event);
    else if (on_sender_timer(transport, event, &flow))
        kick(net, netsim_host_port(transport->flows[flow].sender.source));
}

/* What is stopped for some time is no deadlock. When all flows have ended nothing more is disturbed:
 * over long cables some burst would always be under way, and the run would never end. */
static void on_disturbance(struct netsim *net, uint32_t event)
{
    if (!net->runs_on && net->transport.unfinished == 0)
        return;
    const struct netsim_disturbed done = netsim_disturbance_on_event(&net->disturbance, event);
    if (done.until_ps > net->deadlock.mute_until_ps)
        net->deadlock.mute_until_ps = done.until_ps;
    if (done.kick != NETSIM_NO_PORT)
        kick(net, done.kick);
    for (uint32_t i = 0; i < done.packets; i++) {
        uint32_t packet = netsim_disturbance_packet(&net->disturbance, &done);
        if (packet == NETSIM_NO_PACKET)
            return;
        enqueue(net, netsim_host_port(done.source), packet);
    }
}

static void on_rare_event(struct netsim *net, uint32_t event)
{
    if (event >= net->disturbance.first_event) {
        on_disturbance(net, event);
    } else if (event < net->transport.start_event) {
        on_flow_timer(net, event);
    } else if (event == net->transport.start_event) {
        on_starts(net);
    } else {
        netsim_signalling_on_event(&net->control, event);
        carry_out_any(net);
    }
}

/* All flows have ended and no packet is alive: timers that are left mean nothing. */
static bool is_over(const struct netsim *net)
{
    return !net->runs_on && net->network.pool.alive == 0 && net->transport.unfinished == 0;
}

/* Up to `count` events; returns their number. */
static uint64_t turn(struct netsim *net, netsim_time until_ps, uint64_t count)
{
    struct netsim_network *network = &net->network;
    uint32_t port_events = 2 * network->ports_count;
    uint64_t done = 0;
    while (done < count) {
        netsim_time at_ps = 0;
        uint32_t event = netsim_event_next(&network->events, until_ps, &at_ps);
        if (event == NETSIM_NO_EVENT)
            break;
        done++;
        network->now_ps = at_ps;
        if (event >= port_events)
            on_rare_event(net, event);
        else if ((event & 1) != 0)
            on_wire_end(net, event / 2);
        else
            transmit(net, event / 2);
        if (net->transport.starts.changed && net->transport.config.kind != NETSIM_LONGHAUL)
            plan_start(net);
        if (network->pool.alive == 0 && is_over(net))
            break;
    }
    return done;
}

int netsim_used_up(const struct netsim *net)
{
    return lh_fail(LH_ENOMEM, "pool of %u packets is used up (raise run.packets)",
                   net->network.pool.capacity);
}

int netsim_run(struct netsim *net, netsim_time until_ps, uint64_t events_max)
{
    struct netsim_network *network = &net->network;
    assert(until_ps >= network->now_ps);
    netsim_time limit_ps = until_ps >= NETSIM_TIME_MAX ? NETSIM_TIME_MAX - 1 : until_ps;
    if (network->out_of_packets)
        return netsim_used_up(net);
    for (uint64_t left = events_max; left > 0;) {
        if (is_over(net))
            return 1;
        uint64_t count = left < CHECK_EVERY ? left : CHECK_EVERY;
        uint64_t done = turn(net, limit_ps, count);
        network->totals.events += done;
        left -= done;
        if (network->out_of_packets)
            return netsim_used_up(net);
        if (!net->runs_on && netsim_deadlock_found(&net->deadlock, network))
            return 1;
        if (done < count) {
            bool over = is_over(net) || netsim_event_peek(&network->events) >= NETSIM_TIME_MAX;
            if ((!over || net->runs_on) && until_ps < NETSIM_TIME_MAX)
                network->now_ps = until_ps;
            return over;
        }
    }
    return 0;
}

void netsim_settle(struct netsim *net, netsim_time at_ps)
{
    assert(at_ps >= net->network.now_ps && netsim_event_peek(&net->network.events) >= at_ps);
    net->network.now_ps = at_ps;
}

bool netsim_raw_send(struct netsim *net, const struct netsim_raw *raw, uint32_t entropy, uint8_t priority)
{
    uint32_t packet = netsim_raw_new(&net->network, raw, entropy, priority);
    if (packet == NETSIM_NO_PACKET)
        return false;
    enqueue(net, netsim_host_port(raw->source), packet);
    return true;
}
