/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/engine/network.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include <longhaul/link.h>
#include <longhaul/netsim.h>

#include "base/prng.h"
#include "netsim/base/netsim_config.h"
#include "netsim/base/netsim_time.h"
#include "netsim/engine/event_queue.h"
#include "netsim/engine/netsim_port.h"

/* ---- graph ----------------------------------------------------------------------------------------- */

bool netsim_cable_is_long(const struct netsim_graph *graph, const struct netsim_cable *cable)
{
    return netsim_is_switch(graph, cable->ends[0]) && netsim_is_switch(graph, cable->ends[1]) &&
           graph->nodes[cable->ends[0]].site != graph->nodes[cable->ends[1]].site;
}

void netsim_mark_borders(struct netsim_graph *graph)
{
    for (uint32_t c = 0; c < graph->cables_count; c++) {
        const struct netsim_cable *cable = &graph->cables[c];
        bool relay = netsim_is_relay(graph, cable->ends[0]) || netsim_is_relay(graph, cable->ends[1]);
        if (!relay && !netsim_cable_is_long(graph, cable))
            continue;
        for (unsigned end = 0; end < 2; end++)
            graph->nodes[cable->ends[end]].border = netsim_is_switch(graph, cable->ends[end]);
    }
}

/* ---- network --------------------------------------------------------------------------------------- */

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

static void faults_init(struct netsim_network *network, uint32_t port, const struct lh_link_spec *spec,
                        struct lh_link_state *state, const struct lh_prng *prng)
{
    struct lh_prng own = lh_prng_fork(prng, NETSIM_COMPONENT_FAULTS | (uint64_t)port << 32);
    struct lh_link_spec seeded = *spec;
    seeded.seed ^= lh_prng_next(&own);
    seeded.delay_ns = network->ports[port].delay_ps / NETSIM_PS_PER_NS; /* how far a packet is held back */
    seeded.rate_bps = 0;
    lh_link_state_init(state, &seeded, port);
    network->more[port].faults = state;
    network->ports[port].flags |= NETSIM_PORT_FAULTY;
}

static uint64_t in_proportion(uint64_t bytes, uint64_t rate_bps, uint64_t of_bps)
{
    return of_bps == 0 ? bytes : (uint64_t)((double)bytes * ((double)rate_bps / (double)of_bps));
}

static void marking_init(struct netsim_network *network, uint32_t port, const struct lh_prng *prng)
{
    const struct netsim_switch_config *config = &network->config;
    struct netsim_port_more *more = &network->more[port];
    more->marking = lh_prng_fork(prng, NETSIM_COMPONENT_MARKING | (uint64_t)port << 32);
    more->ecn_min_bytes = in_proportion(config->ecn_min_bytes, more->rate_bps, config->ecn_rate_bps);
    more->ecn_max_bytes = in_proportion(config->ecn_max_bytes, more->rate_bps, config->ecn_rate_bps);
}

/* The delay of a long link may drift, and its signals may be lost. */
static void long_link_init(struct netsim_network *network, uint32_t port,
                           const struct netsim_long_config *config, struct netsim_signal_loss *loss,
                           const struct lh_prng *prng)
{
    if (config->drift_ps != 0) {
        netsim_drift_init(&network->more[port].drift, config->drift_ps, config->drift_period_ps);
        network->ports[port].flags |= NETSIM_PORT_DRIFTS;
    }
    if (loss != NULL) {
        struct lh_prng own = lh_prng_fork(prng, NETSIM_COMPONENT_SIGNALS | (uint64_t)port << 32);
        netsim_signal_loss_init(loss, config, lh_prng_next(&own));
        network->more[port].signals = loss;
        network->ports[port].flags |= NETSIM_PORT_FAULTY;
    }
}

static void long_links_init(struct netsim_network *network, const struct netsim_long_config *config,
                            struct netsim_signal_loss *losses, const struct lh_prng *prng)
{
    const struct netsim_graph *graph = network->graph;
    for (uint32_t c = 0; c < graph->cables_count; c++) {
        if (!netsim_cable_is_long(graph, &graph->cables[c]))
            continue;
        uint32_t link = network->cable_links[c];
        long_link_init(network, link, config, losses, prng);
        losses += losses != NULL;
        long_link_init(network, network->ports[link].reverse, config, losses, prng);
        losses += losses != NULL;
    }
}

/* Numbers the links node by node: first[n] is the first of node n. */
static void ports_init(struct netsim_network *network, const struct netsim_graph *graph,
                       const uint32_t *first, uint32_t *used, const struct lh_prng *prng)
{
    struct lh_link_state *faults = network->faults;
    for (uint32_t c = 0; c < graph->cables_count; c++) {
        const struct netsim_cable *cable = &graph->cables[c];
        uint32_t a = first[cable->ends[0]] + used[cable->ends[0]]++;
        uint32_t b = first[cable->ends[1]] + used[cable->ends[1]]++;
        port_init(&network->ports[a], cable, cable->ends[0], cable->ends[1], graph->hosts);
        port_init(&network->ports[b], cable, cable->ends[1], cable->ends[0], graph->hosts);
        network->cable_links[c] = a;
        network->ports[a].reverse = b;
        network->ports[b].reverse = a;
        for (uint32_t port = a;; port = b) {
            network->more[port].rate_bps = cable->rate_bps;
            network->more[port].overtakers = NETSIM_NO_PACKET;
            marking_init(network, port, prng);
            if (cable->faults != NETSIM_NO_FAULTS)
                faults_init(network, port, &graph->faults[cable->faults], faults++, prng);
            if (port == b)
                break;
        }
    }
}

static void nodes_init(struct netsim_network *network, const struct netsim_graph *graph,
                       const uint32_t *first, const struct lh_prng *prng)
{
    for (uint32_t s = 0; s < graph->nodes_count - graph->hosts; s++) {
        struct netsim_switch *node = &network->switches[s];
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

static uint32_t count_long(const struct netsim_graph *graph)
{
    uint32_t count = 0;
    for (uint32_t c = 0; graph->cables != NULL && c < graph->cables_count; c++)
        count += netsim_cable_is_long(graph, &graph->cables[c]);
    return count;
}

static void change_init(struct netsim_rate_change *change, const struct netsim_topology_config *config)
{
    if (config->change_rate_bps == 0)
        return;
    change->ps_per_byte_q16 = netsim_ps_per_byte_q16(config->change_rate_bps);
    change->from_ps = config->change_from_ps;
    change->until_ps = config->change_for_ps == NETSIM_NEVER
                           ? NETSIM_NEVER
                           : config->change_from_ps + config->change_for_ps;
}

void netsim_network_init(struct netsim_network *network, const struct netsim_config *config,
                         const struct netsim_graph *graph, const struct lh_prng *prng,
                         struct netsim_arena *arena)
{
    uint32_t switches = graph->nodes_count - graph->hosts;
    memset(network, 0, sizeof *network);
    network->config = config->switches;
    network->header_bytes = config->transport.header_bytes;
    change_init(&network->change, &config->topology);
    network->delivered_first = network->delivered_last = NETSIM_NO_PACKET;
    network->graph = graph;
    network->hosts_count = graph->hosts;
    network->ports_count = 2 * graph->cables_count;
    network->ports = netsim_arena_take(arena, network->ports_count, sizeof *network->ports);
    network->more = netsim_arena_take(arena, network->ports_count, sizeof *network->more);
    network->switches = netsim_arena_take(arena, switches, sizeof *network->switches);
    network->faults = netsim_arena_take(arena, count_faulty(graph), sizeof *network->faults);
    network->cable_links = netsim_arena_take(arena, graph->cables_count, sizeof *network->cable_links);
    struct netsim_signal_loss *losses = NULL;
    if (netsim_signals_suffer(&config->longs))
        losses = netsim_arena_take(arena, (size_t)2 * count_long(graph), sizeof *losses);
    uint32_t *first = netsim_arena_take(arena, graph->nodes_count, sizeof *first);
    uint32_t *used = netsim_arena_take(arena, graph->nodes_count, sizeof *used);
    if (arena->base == NULL)
        return;
    uint32_t port = 0;
    for (uint32_t n = 0; n < graph->nodes_count; n++) {
        first[n] = port;
        port += graph->nodes[n].ports;
    }
    assert(port == network->ports_count);
    ports_init(network, graph, first, used, prng);
    nodes_init(network, graph, first, prng);
    long_links_init(network, &config->longs, losses, prng);
}

/* Under full load each link has an event or two for every packet time. A window of time must still hold
 * some packet times, or everything is put away twice. */
netsim_time netsim_network_bucket_ps(const struct netsim_network *network, uint32_t frame_bytes)
{
    const struct netsim_graph *graph = network->graph;
    uint64_t fastest_bps = NETSIM_RATE_MIN;
    for (uint32_t c = 0; graph->cables != NULL && c < graph->cables_count; c++) {
        if (graph->cables[c].rate_bps > fastest_bps)
            fastest_bps = graph->cables[c].rate_bps;
    }
    netsim_time packet_ps = netsim_serialization_ps(netsim_ps_per_byte_q16(fastest_bps), frame_bytes);
    netsim_time apart_ps = packet_ps / (network->ports_count + 1);
    netsim_time min_ps = packet_ps * 8 / NETSIM_NEAR;
    return (apart_ps > min_ps ? apart_ps : min_ps) + 1;
}

/* ---- raw ------------------------------------------------------------------------------------------- */

uint32_t netsim_raw_new(struct netsim_network *network, const struct netsim_raw *raw, uint32_t entropy,
                        uint8_t priority)
{
    if (network->pool.capacity - network->pool.alive <= network->reserved_packets)
        return NETSIM_NO_PACKET;
    uint32_t packet = netsim_packet_get(&network->pool);
    assert(packet != NETSIM_NO_PACKET);
    assert(raw->source < network->hosts_count && raw->destination < network->hosts_count);
    assert(raw->source != raw->destination && raw->wire_bytes <= UINT16_MAX && raw->wire_bytes > 0);
    network->pool.packets[packet] = (struct netsim_packet){
        .flow = NETSIM_NO_FLOW,
        .sent_ps = network->now_ps,
        .cookie = raw->cookie,
        .source = raw->source,
        .destination = raw->destination,
        .entropy = entropy,
        .wire_bytes = (uint16_t)raw->wire_bytes,
        .kind = LH_NETSIM_RAW,
        .priority = priority,
        .flags = raw->ecn_capable ? NETSIM_CAPABLE : 0,
    };
    return packet;
}

void netsim_raw_end(struct netsim_network *network, uint32_t packet, bool arrived)
{
    struct netsim_packet *ended = &network->pool.packets[packet];
    ended->arrive_ps = network->now_ps;
    ended->next = NETSIM_NO_PACKET;
    if (!arrived)
        ended->destination = NETSIM_DROPPED;
    if (network->delivered_last == NETSIM_NO_PACKET)
        network->delivered_first = packet;
    else
        network->pool.packets[network->delivered_last].next = packet;
    network->delivered_last = packet;
}

bool netsim_raw_next(struct netsim_network *network, struct netsim_raw *raw)
{
    uint32_t packet = network->delivered_first;
    if (packet == NETSIM_NO_PACKET)
        return false;
    const struct netsim_packet *taken = &network->pool.packets[packet];
    network->delivered_first = taken->next;
    if (taken->next == NETSIM_NO_PACKET)
        network->delivered_last = NETSIM_NO_PACKET;
    *raw = (struct netsim_raw){
        .arrive_ps = taken->arrive_ps,
        .cookie = taken->cookie,
        .source = taken->source,
        .destination = taken->destination,
        .wire_bytes = taken->wire_bytes,
        .corrupt_bit = taken->echo,
        .corrupted = (taken->flags & NETSIM_CORRUPTED) != 0,
        .marked = (taken->flags & NETSIM_MARKED) != 0,
    };
    netsim_packet_put(&network->pool, packet);
    return true;
}

/* ---- port queue ------------------------------------------------------------------------------------ */

void netsim_queue_append(struct netsim_network *network, uint32_t number, uint32_t packet)
{
    struct netsim_port *port = &network->ports[number];
    struct netsim_packet *queued = &network->pool.packets[packet];
    unsigned priority = queued->priority;
    queued->next = NETSIM_NO_PACKET;
    if (port->last[priority] == NETSIM_NO_PACKET)
        port->first[priority] = packet;
    else
        network->pool.packets[port->last[priority]].next = packet;
    port->last[priority] = packet;
    port->ready |= (uint8_t)(1u << priority);
    port->queue_bytes[priority] += queued->wire_bytes;
    port->queued_bytes += queued->wire_bytes;
    if (port->queued_bytes > port->queued_max_bytes)
        port->queued_max_bytes = port->queued_bytes;
}

void netsim_queue_append_urgent(struct netsim_network *network, uint32_t number, uint32_t packet)
{
    struct netsim_port *port = &network->ports[number];
    network->pool.packets[packet].next = NETSIM_NO_PACKET;
    if (port->urgent_last == NETSIM_NO_PACKET)
        port->urgent_first = packet;
    else
        network->pool.packets[port->urgent_last].next = packet;
    port->urgent_last = packet;
}

uint32_t netsim_queue_take_urgent(struct netsim_network *network, uint32_t number)
{
    struct netsim_port *port = &network->ports[number];
    uint32_t packet = port->urgent_first;
    network->urgent_packets++;
    port->urgent_first = network->pool.packets[packet].next;
    if (port->urgent_first == NETSIM_NO_PACKET)
        port->urgent_last = NETSIM_NO_PACKET;
    return packet;
}

void netsim_queue_pause(struct netsim_network *network, uint32_t number, uint8_t priority)
{
    struct netsim_port *port = &network->ports[number];
    if (port->paused == 0)
        network->more[number].paused_since_ps = network->now_ps;
    port->paused |= (uint8_t)(1u << priority);
}

void netsim_queue_resume(struct netsim_network *network, uint32_t number, uint8_t priority)
{
    struct netsim_port *port = &network->ports[number];
    struct netsim_port_more *more = &network->more[number];
    uint8_t bit = (uint8_t)(1u << priority);
    if (port->paused == bit)
        more->paused_ps += network->now_ps - more->paused_since_ps;
    port->paused &= (uint8_t)~bit;
}

/* ---- route ----------------------------------------------------------------------------------------- */

/* Hosts before below_first wrap around and are far above below_count. */
static bool is_below(const struct netsim_route *route, uint32_t host)
{
    return host - route->below_first < route->below_count;
}

uint32_t netsim_route_port_count(const struct netsim_route *route, uint32_t host)
{
    if (route->table_first != NULL)
        return route->table_first[host + 1] - route->table_first[host];
    return is_below(route, host) ? route->below_width : route->up_width;
}

uint32_t netsim_route_port_at(const struct netsim_route *route, uint32_t host, uint32_t i)
{
    assert(i < netsim_route_port_count(route, host));
    if (route->table_first != NULL)
        return route->table_choices[route->table_first[host] + i];
    if (!is_below(route, host))
        return route->up_port + (host > route->below_first ? route->after_shift : 0) + i;
    uint32_t group = (host - route->below_first) / route->hosts_per_group;
    return route->below_port + group * route->below_width + i;
}
