/*
 * network.c - sets a simulation up and turns it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/network.h"

#include <string.h>

#include <longhaul/error.h>

#include "netsim/pace.h"

#define CHECK_EVERY 4096u /* events between two looks at whether the packets have run out */

/* ---- set-up: ports ----------------------------------------------------------------------------------- */

static void port_init(struct netsim_port *port, const struct netsim_cable *cable, uint32_t owner,
                      uint32_t far, uint32_t hosts)
{
    memset(port, 0, sizeof *port);
    port->ps_per_byte_q16 = netsim_ps_per_byte_q16(cable->rate_bps);
    port->delay_ps = cable->delay_ps;
    port->owner = owner;
    port->far = far;
    port->wire_first = port->wire_last = NETSIM_NO_PACKET;
    port->urgent_first = port->urgent_last = NETSIM_NO_PACKET;
    memset(port->first, 0xFF, sizeof port->first);
    memset(port->last, 0xFF, sizeof port->last);
    port->flags =
        (uint8_t)((owner < hosts ? NETSIM_PORT_OF_HOST : 0) | (far < hosts ? NETSIM_PORT_TO_HOST : 0));
}

static void faults_init(struct netsim *net, uint32_t port, const struct lh_link_spec *spec,
                        struct lh_link_state *state, const struct lh_prng *prng)
{
    struct lh_prng own = lh_prng_fork(prng, NETSIM_COMPONENT_FAULTS | (uint64_t)port << 32);
    struct lh_link_spec seeded = *spec;
    seeded.seed ^= lh_prng_next(&own);
    seeded.delay_ns = net->ports[port].delay_ps / NETSIM_PS_PER_NS; /* how far a packet is held back */
    seeded.rate_bps = 0;
    lh_link_state_init(state, &seeded, port);
    net->more[port].faults = state;
    net->ports[port].flags |= NETSIM_PORT_FAULTY;
}

/* Numbers the links node by node: first[n] is the first of node n. */
static void ports_init(struct netsim *net, const struct netsim_graph *graph, const uint32_t *first,
                       uint32_t *used, const struct lh_prng *prng)
{
    struct lh_link_state *faults = net->faults;
    for (uint32_t c = 0; c < graph->cables_count; c++) {
        const struct netsim_cable *cable = &graph->cables[c];
        uint32_t a = first[cable->ends[0]] + used[cable->ends[0]]++;
        uint32_t b = first[cable->ends[1]] + used[cable->ends[1]]++;
        port_init(&net->ports[a], cable, cable->ends[0], cable->ends[1], graph->hosts);
        port_init(&net->ports[b], cable, cable->ends[1], cable->ends[0], graph->hosts);
        net->cable_links[c] = a;
        net->ports[a].reverse = b;
        net->ports[b].reverse = a;
        for (uint32_t port = a;; port = b) {
            net->more[port].rate_bps = cable->rate_bps;
            net->more[port].overtakers = NETSIM_NO_PACKET;
            net->more[port].marking = lh_prng_fork(prng, NETSIM_COMPONENT_MARKING | (uint64_t)port << 32);
            if (cable->faults != NETSIM_NO_FAULTS)
                faults_init(net, port, &graph->faults[cable->faults], faults++, prng);
            if (port == b)
                break;
        }
    }
}

static void nodes_init(struct netsim *net, const struct netsim_graph *graph, const uint32_t *first,
                       const struct lh_prng *prng)
{
    for (uint32_t h = 0; h < graph->hosts; h++)
        net->hosts[h] = (struct netsim_host){first[h], NETSIM_NO_FLOW, NETSIM_NO_FLOW};
    for (uint32_t s = 0; s < graph->nodes_count - graph->hosts; s++) {
        struct netsim_switch *node = &net->switches[s];
        struct lh_prng own = lh_prng_fork(prng, NETSIM_COMPONENT_SWITCH | (uint64_t)s << 32);
        node->route = graph->routes[s];
        node->first_port = first[graph->hosts + s];
        node->hash_seed = (uint32_t)lh_prng_next(&own);
        node->spray = own;
        node->used_bytes = 0;
        uint64_t hosts_per_group = node->route.hosts_per_group > 0 ? node->route.hosts_per_group : 1;
        node->group_reciprocal = (((uint64_t)1 << 32) + hosts_per_group - 1) / hosts_per_group;
    }
}

static uint32_t count_faulty(const struct netsim_graph *graph)
{
    uint32_t count = 0;
    for (uint32_t c = 0; graph->cables != NULL && c < graph->cables_count; c++)
        count += graph->cables[c].faults != NETSIM_NO_FAULTS ? 2 : 0;
    return count;
}

static void setup_graph(struct netsim *net, const struct netsim_graph *graph, const struct lh_prng *prng,
                        struct netsim_arena *arena)
{
    uint32_t switches = graph->nodes_count - graph->hosts;
    net->graph = graph;
    net->hosts_count = graph->hosts;
    net->ports_count = 2 * graph->cables_count;
    net->ports = netsim_arena_take(arena, net->ports_count, sizeof *net->ports);
    net->more = netsim_arena_take(arena, net->ports_count, sizeof *net->more);
    net->switches = netsim_arena_take(arena, switches, sizeof *net->switches);
    net->hosts = netsim_arena_take(arena, graph->hosts, sizeof *net->hosts);
    net->faults = netsim_arena_take(arena, count_faulty(graph), sizeof *net->faults);
    net->cable_links = netsim_arena_take(arena, graph->cables_count, sizeof *net->cable_links);
    uint32_t *first = netsim_arena_take(arena, graph->nodes_count, sizeof *first);
    uint32_t *used = netsim_arena_take(arena, graph->nodes_count, sizeof *used);
    if (arena->base == NULL)
        return;
    uint32_t port = 0;
    for (uint32_t n = 0; n < graph->nodes_count; n++) {
        first[n] = port;
        port += graph->nodes[n].ports;
    }
    assert(port == net->ports_count);
    ports_init(net, graph, first, used, prng);
    nodes_init(net, graph, first, prng);
}

/* ---- set-up: flows ----------------------------------------------------------------------------------- */

static uint64_t packets_of(const struct netsim *net, uint64_t bytes)
{
    return (bytes + net->transport.payload_bytes - 1) / net->transport.payload_bytes;
}

static void flow_init(struct netsim *net, uint32_t number, const struct netsim_flow_request *request,
                      struct lh_prng *entropy, uint64_t **bits)
{
    struct netsim_flow *flow = &net->flows[number];
    uint32_t packets = (uint32_t)packets_of(net, request->bytes);
    memset(flow, 0, sizeof *flow);
    flow->bytes = request->bytes;
    flow->start_ps = request->start_ps;
    flow->received_ps = NETSIM_NEVER;
    flow->done_ps = NETSIM_NEVER;
    flow->sender.source = request->source;
    flow->sender.destination = request->destination;
    flow->sender.packets = packets;
    flow->sender.last_bytes =
        (uint32_t)(request->bytes - (uint64_t)(packets - 1) * net->transport.payload_bytes);
    flow->sender.entropy = (uint32_t)lh_prng_next(entropy);
    flow->sender.taken = *bits;
    *bits += (packets + 63) / 64;
    flow->receiver.arrived = *bits;
    *bits += (packets + 63) / 64;
}

static void setup_flows(struct netsim *net, const struct netsim_flow_list *list, const struct lh_prng *prng,
                        struct netsim_arena *arena)
{
    struct lh_prng entropy = lh_prng_fork(prng, NETSIM_COMPONENT_ENTROPY);
    uint64_t words = 0;
    for (uint32_t i = 0; i < list->count; i++)
        words += 2 * ((packets_of(net, list->flows[i].bytes) + 63) / 64);
    net->flows_count = list->count;
    net->totals.flows = list->count;
    net->flows = netsim_arena_take(arena, list->count, sizeof *net->flows);
    uint64_t *bits = netsim_arena_take(arena, words, sizeof *bits);
    if (net->transport.congestion == NETSIM_CONGESTION_DCQCN)
        net->rates = netsim_arena_take(arena, list->count, sizeof *net->rates);
    for (uint32_t i = 0; arena->base != NULL && i < list->count; i++)
        flow_init(net, i, &list->flows[i], &entropy, &bits);
}

/* ---- set-up: time ------------------------------------------------------------------------------------ */

/* Under full load each link has an event or two for every packet time. A window of time must still hold
 * some packet times, or everything is put away twice. */
static netsim_time bucket_ps(const struct netsim *net, const struct netsim_graph *graph)
{
    uint64_t fastest_bps = NETSIM_RATE_MIN;
    for (uint32_t c = 0; graph->cables != NULL && c < graph->cables_count; c++) {
        if (graph->cables[c].rate_bps > fastest_bps)
            fastest_bps = graph->cables[c].rate_bps;
    }
    uint32_t bytes = net->transport.payload_bytes + net->transport.header_bytes;
    netsim_time packet_ps = netsim_serialization_ps(netsim_ps_per_byte_q16(fastest_bps), bytes);
    netsim_time apart_ps = packet_ps / (net->ports_count + 1);
    netsim_time least_ps = packet_ps * 8 / NETSIM_NEAR;
    return (apart_ps > least_ps ? apart_ps : least_ps) + 1;
}

static void setup_events(struct netsim *net, const struct netsim_graph *graph, struct netsim_arena *arena)
{
    uint32_t count = 2 * net->ports_count;
    net->first_timer_event = count;
    count += net->transport.ack_bytes != 0 ? net->flows_count : 0;
    net->first_pace_event = count;
    count += net->paced ? net->flows_count : 0;
    net->start_event = count++;
    net->first_slot_event = count;
    count += NETSIM_LONG_EVENTS * net->long_links_count;
    net->first_refresh_event = count;
    count += net->refreshing ? 2 * net->ports_count : 0;
    netsim_event_queue_init(&net->events, arena, count, bucket_ps(net, graph));
    if (arena->base != NULL && net->flows_count > 0)
        netsim_event_schedule(&net->events, net->start_event, net->flows[0].start_ps);
}

static void setup_pace(struct netsim *net, const struct netsim_config *config)
{
    const struct netsim_transport_config *transport = &config->transport;
    net->paced = transport->rate_bps != 0 || transport->congestion != NETSIM_CONGESTION_NONE;
    if (transport->rate_bps != 0)
        net->pace_ps_per_byte_q16 = netsim_ps_per_byte_q16(transport->rate_bps);
    net->dcqcn = netsim_pace_dcqcn(&transport->dcqcn);
}

void netsim_setup(struct netsim *net, const struct netsim_config *config, const struct netsim_graph *graph,
                  const struct netsim_flow_list *flows, const struct lh_prng *prng,
                  struct netsim_arena *arena)
{
    memset(net, 0, sizeof *net);
    net->switch_config = config->switches;
    net->transport = config->transport;
    net->delivered_first = net->delivered_last = NETSIM_NO_PACKET;
    setup_pace(net, config);
    setup_graph(net, graph, prng, arena);
    netsim_control_setup(net, config, graph, arena);
    netsim_signal_setup(net, config, graph, prng, arena);
    setup_flows(net, flows, prng, arena);
    setup_events(net, graph, arena);
    netsim_packet_pool_init(&net->pool, arena, config->packets_max);
    /* At a link a pause and a resume may wait for the packet on the wire, and others be under way. */
    uint64_t reserved_packets = net->lossless != 0 ? (uint64_t)4 * net->ports_count : 0;
    uint64_t half = config->packets_max / 2;
    net->reserved_packets = (uint32_t)(reserved_packets < half ? reserved_packets : half);
}

/* ---- the wheel --------------------------------------------------------------------------------------- */

static void on_pace(struct netsim *net, uint32_t flow)
{
    struct netsim_sender *sender = &net->flows[flow].sender;
    if (sender->in_ring || !netsim_sender_may_send(net, sender))
        return;
    netsim_host_add_flow(net, sender->source, flow);
    netsim_kick(net, net->hosts[sender->source].port);
}

static void on_rare_event(struct netsim *net, uint32_t event)
{
    if (event == net->start_event)
        netsim_on_flows_start(net);
    else if (event >= net->first_refresh_event)
        netsim_on_refresh_event(net, event - net->first_refresh_event);
    else if (event >= net->first_slot_event)
        netsim_bifrost_on_event(net, event - net->first_slot_event);
    else if (event >= net->first_pace_event)
        on_pace(net, event - net->first_pace_event);
    else
        netsim_sender_on_timer_expired(net, event - net->first_timer_event);
}

/* All flows have ended and nothing is on the way: what timers are left mean nothing. */
static bool is_over(const struct netsim *net)
{
    return !net->runs_on && net->pool.alive == 0 &&
           net->totals.flows_done + net->totals.flows_failed == net->flows_count;
}

/* Up to `count` events; how many there were. */
static uint64_t turn(struct netsim *net, netsim_time until_ps, uint64_t count)
{
    uint32_t port_events = 2 * net->ports_count;
    uint64_t done = 0;
    while (done < count) {
        netsim_time at_ps = 0;
        uint32_t event = netsim_event_next(&net->events, until_ps, &at_ps);
        if (event == NETSIM_NO_EVENT)
            break;
        done++;
        net->now_ps = at_ps;
        if (event >= port_events)
            on_rare_event(net, event);
        else if ((event & 1) != 0)
            netsim_on_wire_end(net, event / 2);
        else
            netsim_on_port_free(net, event / 2);
        if (net->pool.alive == 0 && is_over(net))
            break;
    }
    return done;
}

int netsim_run(struct netsim *net, netsim_time until_ps, uint64_t events_max)
{
    assert(until_ps >= net->now_ps);
    netsim_time limit_ps = until_ps >= NETSIM_TIME_MAX ? NETSIM_TIME_MAX - 1 : until_ps;
    if (net->out_of_packets)
        return -LH_ENOMEM;
    for (uint64_t left = events_max; left > 0;) {
        if (is_over(net))
            return 1;
        uint64_t count = left < CHECK_EVERY ? left : CHECK_EVERY;
        uint64_t done = turn(net, limit_ps, count);
        net->totals.events += done;
        left -= done;
        if (net->out_of_packets)
            return -LH_ENOMEM;
        if (netsim_is_stalled(net))
            return 1;
        if (done < count) {
            bool over = is_over(net) || netsim_event_peek(&net->events) >= NETSIM_TIME_MAX;
            if ((!over || net->runs_on) && until_ps < NETSIM_TIME_MAX)
                net->now_ps = until_ps;
            return over;
        }
    }
    return 0;
}

void netsim_settle(struct netsim *net, netsim_time at_ps)
{
    assert(at_ps >= net->now_ps && netsim_event_peek(&net->events) >= at_ps);
    net->now_ps = at_ps;
}
