/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/transport/flow_controller.h"

#include "netsim/transport/netsim_flows.h"

/* ---- controller ------------------------------------------------------------------------------------ */

/*
 * Each acknowledgement carries the receiver's totals, so a lost one costs nothing. They are beside the
 * packet, by its number in the pool.
 *
 * Controllers think in nanoseconds: times are rounded down.
 */

#define RING_MAX 512u /* entries of what is in flight; more packets share them */

/* ---- memory ------------------------------------------------------------------------------------------ */

static uint32_t ring_size(uint64_t packets)
{
    uint32_t size = 2;
    while (size < packets && size < RING_MAX)
        size *= 2;
    return size;
}

static size_t aligned(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

/* Of one report for each packet only those are touched that are used. */
static void take_states(struct netsim_transport *transport, uint32_t packets_max,
                        struct netsim_arena *arena)
{
    struct netsim_controllers *all = &transport->controllers;
    uint32_t flows = transport->flows_count;
    all->state_bytes = aligned(all->choice.controller->state_bytes);
    all->receiver_bytes = aligned(all->choice.controller->receiver_bytes);
    all->flows = netsim_arena_take(arena, flows, sizeof *all->flows);
    all->states = netsim_arena_take(arena, flows, all->state_bytes);
    all->receivers = netsim_arena_take(arena, flows, all->receiver_bytes);
    all->reports = netsim_arena_take(arena, packets_max, sizeof *all->reports);
}

void netsim_controller_setup(struct netsim_transport *transport, const struct netsim_flow_list *list,
                             uint32_t packets_max, struct netsim_arena *arena)
{
    uint32_t payload = transport->config.payload_bytes;
    uint64_t entries = 0;
    int rc =
        congestion_choice_parse(transport->config.congestion.controller, &transport->controllers.choice);
    assert(rc == 0); /* it has been checked */
    (void)rc;
    take_states(transport, packets_max, arena);
    for (uint32_t i = 0; i < list->count; i++)
        entries += ring_size((list->flows[i].bytes + payload - 1) / payload);
    struct flight_entry *ring = netsim_arena_take(arena, entries, sizeof *ring);
    if (arena->base == NULL)
        return;
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t size = ring_size((list->flows[i].bytes + payload - 1) / payload);
        flight_init(&transport->controllers.flows[i].flight, ring, size);
        ring += size;
    }
}

size_t netsim_controller_packet_bytes(const struct netsim_transport *transport)
{
    return netsim_is_controlled(transport) ? sizeof(struct flight_report) : 0;
}

uint32_t netsim_controller_number_events(struct netsim_transport *transport, uint32_t first)
{
    struct netsim_controllers *all = &transport->controllers;
    uint32_t flows = netsim_is_controlled(transport) ? transport->flows_count : 0;
    all->first_event = first;
    all->first_credit_event = first + flows;
    return all->first_credit_event + (all->receiver_bytes != 0 ? flows : 0);
}

/* ---- the decision ------------------------------------------------------------------------------------ */

static lh_time now_ns(const struct netsim_transport *transport)
{
    return transport->network->now_ps / NETSIM_PS_PER_NS;
}

static void *state_of(const struct netsim_transport *transport, uint32_t flow)
{
    return transport->controllers.states + flow * transport->controllers.state_bytes;
}

static void *receiver_of(const struct netsim_transport *transport, uint32_t flow)
{
    return transport->controllers.receivers + flow * transport->controllers.receiver_bytes;
}

/* As long as the transport's own timer would wait, about: what is in flight for longer is lost. */
static lh_time overdue_ns(const struct netsim_transport *transport, uint32_t flow)
{
    const struct netsim_sender *sender = &transport->flows[flow].sender;
    netsim_time rtt_ps =
        sender->smoothed_rtt_ps > sender->base_rtt_ps ? sender->smoothed_rtt_ps : sender->base_rtt_ps;
    double wait_ps = transport->config.rto * (double)rtt_ps;
    double min_ps = (double)transport->config.rto_min_ps;
    return (lh_time)((wait_ps > min_ps ? wait_ps : min_ps) / (double)NETSIM_PS_PER_NS) + 1;
}

/* An event that is due sooner stays: it is set again then. */
static void set_timer(struct netsim_transport *transport, uint32_t flow)
{
    struct netsim_controlled *controlled = &transport->controllers.flows[flow];
    struct netsim_event_queue *events = &transport->network->events;
    uint32_t event = transport->controllers.first_event + flow;
    lh_time lost_ns = flight_next(&controlled->flight, overdue_ns(transport, flow));
    lh_time next_ns = controlled->decision.next_ns < lost_ns ? controlled->decision.next_ns : lost_ns;
    bool pending = netsim_event_pending(events, event);
    if (next_ns >= NETSIM_TIME_MAX / NETSIM_PS_PER_NS)
        return;
    if (next_ns <= now_ns(transport))
        next_ns = now_ns(transport) + 1;
    if (pending && controlled->timer_ps <= next_ns * NETSIM_PS_PER_NS)
        return;
    if (pending)
        netsim_event_cancel(events, event);
    controlled->timer_ps = next_ns * NETSIM_PS_PER_NS;
    netsim_event_schedule(events, event, controlled->timer_ps);
}

/* A packet may always be in flight, or a window below one would hold for ever. */
static bool is_held(const struct netsim_transport *transport, const struct netsim_controlled *controlled)
{
    const struct lh_congestion_decision *decision = &controlled->decision;
    uint64_t packet = transport->config.payload_bytes;
    uint64_t in_flight = flight_in_flight_bytes(&controlled->flight);
    bool full =
        in_flight > 0 && (decision->window_bytes < packet || in_flight > decision->window_bytes - packet);
    bool spent =
        decision->total_bytes < packet || controlled->flight.sent_bytes > decision->total_bytes - packet;
    return full || spent;
}

/* At the rate that has been decided. */
static netsim_time next_packet_ps(const struct netsim_controlled *controlled)
{
    uint64_t rate_bps = controlled->decision.rate_bps;
    if (rate_bps == LH_RATE_NONE)
        return controlled->paced_ps;
    return controlled->paced_ps +
           8 * (uint64_t)controlled->paced_bytes * NETSIM_PS_PER_S / (rate_bps > 0 ? rate_bps : 1);
}

/* A flow that waits for its pace waits no longer than a new rate wants. */
static void hasten(struct netsim_transport *transport, uint32_t flow)
{
    struct netsim_sender *sender = &transport->flows[flow].sender;
    struct netsim_event_queue *events = &transport->network->events;
    uint32_t event = transport->first_pace_event + flow;
    netsim_time next_ps = next_packet_ps(&transport->controllers.flows[flow]);
    if (!netsim_event_pending(events, event) || next_ps >= sender->pace_ps)
        return;
    sender->pace_ps = next_ps > transport->network->now_ps ? next_ps : transport->network->now_ps;
    netsim_event_cancel(events, event);
    netsim_event_schedule(events, event, sender->pace_ps);
}

static void decide(struct netsim_transport *transport, uint32_t flow)
{
    struct netsim_controlled *controlled = &transport->controllers.flows[flow];
    const struct netsim_sender *sender = &transport->flows[flow].sender;
    transport->controllers.choice.controller->decide(state_of(transport, flow), now_ns(transport),
                                                     &controlled->decision);
    transport->flows[flow].sender.held = is_held(transport, controlled);
    hasten(transport, flow);
    if (transport->flows[flow].done_ps == NETSIM_NEVER && !sender->failed)
        set_timer(transport, flow);
}

static void netsim_controller_start(struct netsim_transport *transport, uint32_t flow)
{
    const struct lh_congestion *controller = transport->controllers.choice.controller;
    const struct netsim_transport_config *config = &transport->config;
    const struct netsim_sender *sender = &transport->flows[flow].sender;
    double share = (double)config->payload_bytes / (config->payload_bytes + config->header_bytes);
    uint64_t line_bps = transport->network->more[netsim_host_port(sender->source)].rate_bps;
    uint64_t given_bps = config->rate_bps;
    uint64_t max_bps = given_bps != 0 && given_bps < line_bps ? given_bps : line_bps;
    bool bounded = config->window_bytes != 0 && config->window_bytes != NETSIM_WINDOW_BDP;
    const struct lh_congestion_path path = {
        .mtu_bytes = config->payload_bytes,
        .rate_bps = (uint64_t)((double)given_bps * share),
        .rate_max_bps = (uint64_t)((double)max_bps * share),
        .window_max_bytes = bounded ? config->window_bytes : UINT64_MAX,
        .rtt_ns = sender->base_rtt_ps / NETSIM_PS_PER_NS,
    };
    transport->controllers.flows[flow].flight.reordering_ns = path.rtt_ns / 4;
    controller->start(state_of(transport, flow), &path, transport->controllers.choice.params,
                      now_ns(transport));
    if (transport->controllers.receiver_bytes != 0)
        controller->receiver_start(receiver_of(transport, flow), &path,
                                   transport->controllers.choice.params, now_ns(transport));
    transport->controllers.flows[flow].arrived.credit_bytes =
        transport->controllers.receiver_bytes != 0 ? 0 : UINT64_MAX;
    decide(transport, flow);
}

/* ---- the sender -------------------------------------------------------------------------------------- */

static void pace(struct netsim_transport *transport, uint32_t flow, uint32_t bytes)
{
    struct netsim_controlled *controlled = &transport->controllers.flows[flow];
    struct netsim_sender *sender = &transport->flows[flow].sender;
    netsim_time now_ps = transport->network->now_ps;
    controlled->paced_ps = sender->pace_ps > now_ps ? sender->pace_ps : now_ps;
    controlled->paced_bytes = bytes;
    sender->pace_ps = next_packet_ps(controlled);
}

void netsim_controller_on_sent(struct netsim_transport *transport, uint32_t flow,
                               struct netsim_packet *packet, uint32_t bytes)
{
    const struct lh_congestion *controller = transport->controllers.choice.controller;
    struct flight *flight = &transport->controllers.flows[flow].flight;
    packet->cookie = flight->sent_packets;
    flight_on_sent(flight, packet->cookie, 1, bytes, now_ns(transport));
    if (controller->on_sent != NULL)
        controller->on_sent(state_of(transport, flow), bytes, flight_in_flight_bytes(flight),
                            now_ns(transport));
    decide(transport, flow);
    pace(transport, flow, bytes);
}

void netsim_controller_on_limited(struct netsim_transport *transport, uint32_t flow)
{
    flight_on_limited(&transport->controllers.flows[flow].flight);
}

void netsim_controller_on_ack(struct netsim_transport *transport, const struct netsim_packet *ack)
{
    struct lh_congestion_feedback feedback;
    const struct flight_report *report =
        &transport->controllers.reports[ack - transport->network->pool.packets];
    if ((ack->flags & NETSIM_COPY) != 0) /* the other one tells the same */
        return;
    if (!flight_on_report(&transport->controllers.flows[ack->flow].flight, report, 0, now_ns(transport),
                          &feedback))
        return;
    transport->controllers.choice.controller->on_feedback(state_of(transport, ack->flow), &feedback);
    decide(transport, ack->flow);
}

void netsim_controller_on_timer(struct netsim_transport *transport, uint32_t flow)
{
    const struct lh_congestion *controller = transport->controllers.choice.controller;
    struct netsim_controlled *controlled = &transport->controllers.flows[flow];
    struct lh_congestion_feedback feedback;
    if (transport->flows[flow].done_ps != NETSIM_NEVER || transport->flows[flow].sender.failed)
        return;
    if (flight_on_timer(&controlled->flight, overdue_ns(transport, flow), now_ns(transport), &feedback))
        controller->on_feedback(state_of(transport, flow), &feedback);
    if (controlled->decision.next_ns <= now_ns(transport) && controller->on_timer != NULL)
        controller->on_timer(state_of(transport, flow), now_ns(transport));
    decide(transport, flow);
}

/* ---- the receiver ------------------------------------------------------------------------------------ */

/* Asks the receiver's half for credit. */
static void renew_credit(struct netsim_transport *transport, uint32_t flow)
{
    struct netsim_event_queue *events = &transport->network->events;
    uint32_t event = transport->controllers.first_credit_event + flow;
    lh_time next_ns = LH_TIME_NEVER;
    transport->controllers.flows[flow].arrived.credit_bytes =
        transport->controllers.choice.controller->receiver_credit(receiver_of(transport, flow),
                                                                  now_ns(transport), &next_ns);
    if (netsim_event_pending(events, event))
        netsim_event_cancel(events, event);
    if (next_ns < NETSIM_TIME_MAX / NETSIM_PS_PER_NS && transport->flows[flow].received_ps == NETSIM_NEVER)
        netsim_event_schedule(events, event,
                              (next_ns > now_ns(transport) ? next_ns : now_ns(transport) + 1) *
                                  NETSIM_PS_PER_NS);
}

void netsim_controller_on_data(struct netsim_transport *transport, const struct netsim_packet *packet)
{
    struct flight_report *arrived = &transport->controllers.flows[packet->flow].arrived;
    bool marked = (packet->flags & NETSIM_MARKED) != 0;
    uint64_t bytes = packet->wire_bytes - transport->config.header_bytes;
    arrived->arrived_packets++;
    arrived->marked_packets += marked;
    arrived->key = packet->cookie;
    arrived->arrived_ns = now_ns(transport);
    if (transport->controllers.receiver_bytes == 0)
        return;
    transport->controllers.choice.controller->receiver_on_arrived(
        receiver_of(transport, packet->flow), bytes, marked ? bytes : 0, now_ns(transport));
    renew_credit(transport, packet->flow);
}

void netsim_controller_report(struct netsim_transport *transport, const struct netsim_packet *ack)
{
    struct flight_report *report = &transport->controllers.reports[ack - transport->network->pool.packets];
    *report = transport->controllers.flows[ack->flow].arrived;
    report->held_ns = now_ns(transport) - report->arrived_ns;
}

uint32_t netsim_controller_on_credit_timer(struct netsim_transport *transport, uint32_t flow)
{
    const struct netsim_flow *of = &transport->flows[flow];
    uint64_t credit_bytes = transport->controllers.flows[flow].arrived.credit_bytes;
    if (of->received_ps != NETSIM_NEVER || of->sender.failed)
        return NETSIM_NO_PACKET;
    renew_credit(transport, flow);
    if (transport->controllers.flows[flow].arrived.credit_bytes == credit_bytes)
        return NETSIM_NO_PACKET;
    uint32_t number = netsim_packet_new(transport->network);
    if (number == NETSIM_NO_PACKET)
        return number;
    struct netsim_packet *packet = &transport->network->pool.packets[number];
    *packet = (struct netsim_packet){
        .flow = flow,
        .sent_ps = transport->network->now_ps,
        .source = of->sender.destination,
        .destination = of->sender.source,
        .sequence = of->receiver.expected,
        .entropy = ~of->sender.entropy,
        .wire_bytes = (uint16_t)transport->config.ack_bytes,
        .kind = LH_NETSIM_ACK,
        .priority = transport->config.ack_priority,
        .flags = NETSIM_CREDIT,
    };
    transport->network->totals.ack_packets++;
    netsim_controller_report(transport, packet);
    return number;
}

/* ---- flow rate ------------------------------------------------------------------------------------- */

/*
 * DCQCN is asked when a packet leaves, and catches up then. So a higher rate is felt from the next packet on:
 * at most a packet's time at the lower one later, and no event is needed for it.
 */

struct dcqcn_config netsim_flow_rate_dcqcn(const struct netsim_dcqcn_config *config)
{
    return (struct dcqcn_config){
        .alpha_ns = config->alpha_ps / NETSIM_PS_PER_NS,
        .decrease_ns = config->decrease_ps / NETSIM_PS_PER_NS,
        .increase_ns = config->increase_ps / NETSIM_PS_PER_NS,
        .increase_bytes = config->increase_bytes,
        .additive_bps = config->additive_bps,
        .hyper_bps = config->hyper_bps,
        .min_bps = config->min_bps,
        .recovery_stages = config->recovery_stages,
        .gain = config->gain,
        .clamp = config->clamp,
    };
}

void netsim_flow_rate_setup(struct netsim_transport *transport)
{
    const struct netsim_transport_config *config = &transport->config;
    transport->paced = config->rate_bps != 0 || config->congestion.kind != NETSIM_CONGESTION_NONE;
    if (config->rate_bps != 0)
        transport->pace_ps_per_byte_q16 = netsim_ps_per_byte_q16(config->rate_bps);
    transport->dcqcn = netsim_flow_rate_dcqcn(&config->dcqcn);
}

void netsim_flow_rate_start(struct netsim_transport *transport, uint32_t flow)
{
    uint32_t source = transport->flows[flow].sender.source;
    uint64_t line_bps = transport->network->more[netsim_host_port(source)].rate_bps;
    uint64_t rate_bps = transport->config.rate_bps;
    if (netsim_is_controlled(transport))
        netsim_controller_start(transport, flow);
    if (transport->rates != NULL)
        dcqcn_init(&transport->rates[flow], rate_bps != 0 && rate_bps < line_bps ? rate_bps : line_bps);
}

static void wait_for(struct netsim_transport *transport, uint32_t flow, netsim_time span_ps)
{
    struct netsim_sender *sender = &transport->flows[flow].sender;
    netsim_time from_ps =
        sender->pace_ps > transport->network->now_ps ? sender->pace_ps : transport->network->now_ps;
    sender->pace_ps = from_ps + span_ps;
}

/* At the line's rate nothing is to be waited for but the line. */
void netsim_flow_rate_on_sent(struct netsim_transport *transport, uint32_t flow, uint32_t wire_bytes)
{
    assert(transport->paced && !netsim_is_controlled(transport));
    if (transport->rates != NULL) {
        struct dcqcn *dcqcn = &transport->rates[flow];
        dcqcn_on_bytes(dcqcn, &transport->dcqcn, transport->network->now_ps / NETSIM_PS_PER_NS, wire_bytes);
        if (dcqcn->rate_bps != dcqcn->line_bps) {
            wait_for(transport, flow, 8 * (uint64_t)wire_bytes * NETSIM_PS_PER_S / dcqcn->rate_bps);
            return;
        }
    }
    if (transport->pace_ps_per_byte_q16 != 0)
        wait_for(transport, flow, netsim_serialization_ps(transport->pace_ps_per_byte_q16, wire_bytes));
}

void netsim_flow_rate_on_cnp(struct netsim_transport *transport, uint32_t flow)
{
    assert(transport->rates != NULL);
    dcqcn_on_cnp(&transport->rates[flow], &transport->dcqcn, transport->network->now_ps / NETSIM_PS_PER_NS);
}

/* ---- flow ring ------------------------------------------------------------------------------------- */

static void append(struct netsim_transport *transport, struct netsim_flow_ring *ring, uint32_t flow)
{
    transport->flows[flow].sender.ring_next = NETSIM_NO_FLOW;
    if (ring->last == NETSIM_NO_FLOW)
        ring->first = flow;
    else
        transport->flows[ring->last].sender.ring_next = flow;
    ring->last = flow;
}

/* In front of the first with a higher number; there is one. Who has just sent is mostly the first. */
static void insert(struct netsim_transport *transport, struct netsim_flow_ring *ring, uint32_t flow)
{
    uint32_t *link = &ring->first;
    while (*link < flow)
        link = &transport->flows[*link].sender.ring_next;
    transport->flows[flow].sender.ring_next = *link;
    *link = flow;
}

void netsim_flow_ring_add(struct netsim_transport *transport, uint32_t flow)
{
    struct netsim_sender *sender = &transport->flows[flow].sender;
    struct netsim_flow_ring *ring = &transport->rings[sender->source];
    bool in_order = transport->starts.list->in_order;
    assert(!sender->in_ring);
    sender->in_ring = 1;
    if (in_order && ring->last != NETSIM_NO_FLOW && flow < ring->last)
        insert(transport, ring, flow);
    else
        append(transport, ring, flow);
}

uint32_t netsim_flow_ring_take(struct netsim_transport *transport, uint32_t host)
{
    struct netsim_flow_ring *ring = &transport->rings[host];
    uint32_t flow = ring->first;
    if (flow == NETSIM_NO_FLOW)
        return flow;
    struct netsim_sender *sender = &transport->flows[flow].sender;
    ring->first = sender->ring_next;
    if (ring->first == NETSIM_NO_FLOW)
        ring->last = NETSIM_NO_FLOW;
    sender->in_ring = 0;
    return flow;
}
