/*
 * switch.c - see switch.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/engine/switch.h"

/* ---- routing ----------------------------------------------------------------------------------------- */

/* Spreads every bit of the entropy over the upper bits (the finalizer of MurmurHash3, Appleby 2011),
 * differently for each seed: switches of one tier must not all choose alike. */
static uint32_t hash(uint32_t entropy, uint32_t seed)
{
    uint32_t x = entropy ^ seed;
    x ^= x >> 16;
    x *= 0x85EBCA6Bu;
    x ^= x >> 13;
    x *= 0xC2B2AE35u;
    return x ^ x >> 16;
}

/* One of `width` alternatives; `draws`: NULL for the one that the flow keeps. */
static inline uint32_t choose(const struct netsim_switch *node, uint32_t width, uint32_t entropy,
                              struct lh_prng *samples)
{
    if (width == 1)
        return 0;
    if (samples != NULL)
        return (uint32_t)lh_prng_below(samples, width);
    return (uint32_t)((uint64_t)hash(entropy, node->hash_seed) * width >> 32);
}

static inline uint32_t port_by_table(const struct netsim_switch *node, uint32_t destination,
                                     uint32_t entropy, struct lh_prng *samples)
{
    const struct netsim_route *route = &node->route;
    uint32_t first = route->table_first[destination];
    uint32_t width = route->table_first[destination + 1] - first;
    if (width == 0)
        return NETSIM_NO_PORT;
    return node->first_port + route->table_choices[first + choose(node, width, entropy, samples)];
}

static inline uint32_t port_of(const struct netsim_switch *node, uint32_t destination, uint32_t entropy,
                               struct lh_prng *samples)
{
    const struct netsim_route *route = &node->route;
    if (route->table_first != NULL)
        return port_by_table(node, destination, entropy, samples);
    uint32_t below = destination - route->below_first;
    if (below < route->below_count) {
        uint32_t group = (uint32_t)(below * node->group_reciprocal >> 32);
        return node->first_port + route->below_port + group * route->below_width +
               choose(node, route->below_width, entropy, samples);
    }
    if (route->up_width == 0)
        return NETSIM_NO_PORT;
    uint32_t shift = destination > route->below_first ? route->after_shift : 0;
    return node->first_port + route->up_port + shift + choose(node, route->up_width, entropy, samples);
}

uint32_t netsim_switch_flow_port(const struct netsim_switch *node, uint32_t destination, uint32_t entropy)
{
    return port_of(node, destination, entropy, NULL);
}

/* ---- arrival ----------------------------------------------------------------------------------------- */

/* Whether the buffer takes the packet. One under flow control is refused only when the buffer is full: then
 * the thresholds left too little headroom. */
static bool admit(const struct netsim_network *network, const struct netsim_switch *node,
                  const struct netsim_port *in, const struct netsim_port *out,
                  const struct netsim_packet *packet)
{
    const struct netsim_switch_config *config = &network->config;
    uint8_t priority = packet->priority;
    uint64_t free_bytes = in->own_bytes != 0 ? in->own_bytes - in->held_bytes[priority]
                                             : config->buffer_bytes - node->used_bytes;
    if (packet->wire_bytes > free_bytes)
        return false;
    if (in->control != NETSIM_CONTROL_NONE && netsim_is_lossless(network, priority))
        return true;
    uint64_t queue_bytes = out->queue_bytes[priority] + packet->wire_bytes;
    if (config->queue_bytes != 0 && queue_bytes > config->queue_bytes)
        return false;
    return config->alpha == 0 || in->own_bytes != 0 ||
           (double)queue_bytes <= config->alpha * (double)free_bytes;
}

/* The packet takes its buffer, on account of the link by which it came. Whether flow control is to know. */
static bool account(struct netsim_network *network, struct netsim_switch *node, uint32_t link,
                    struct netsim_packet *packet)
{
    struct netsim_port *in = &network->ports[link];
    uint8_t priority = packet->priority;
    packet->ingress = link;
    if (in->own_bytes == 0)
        node->used_bytes += packet->wire_bytes;
    in->held_bytes[priority] += packet->wire_bytes;
    if (in->held_bytes[priority] > in->held_max_bytes)
        in->held_max_bytes = in->held_bytes[priority];
    return in->held_bytes[priority] > in->pause_above_bytes && netsim_is_lossless(network, priority);
}

enum netsim_arrival netsim_switch_on_arrival(struct netsim_network *network, uint32_t link, uint32_t packet,
                                             uint32_t *out)
{
    struct netsim_packet *arrived = &network->pool.packets[packet];
    struct netsim_switch *node = &network->switches[network->ports[link].far - network->hosts_count];
    if ((arrived->flags & NETSIM_CORRUPTED) != 0 && arrived->kind != LH_NETSIM_RAW)
        return NETSIM_ARRIVAL_CORRUPTED;
    *out =
        port_of(node, arrived->destination, arrived->entropy, network->config.spray ? &node->spray : NULL);
    if (*out == NETSIM_NO_PORT) {
        network->totals.unroutable_packets++;
        return NETSIM_ARRIVAL_UNROUTABLE;
    }
    if (!admit(network, node, &network->ports[link], &network->ports[*out], arrived))
        return NETSIM_ARRIVAL_REFUSED;
    return account(network, node, link, arrived) ? NETSIM_ARRIVAL_REPORTED : NETSIM_ARRIVAL_ADMITTED;
}

/* ---- departure --------------------------------------------------------------------------------------- */

/* RED (Floyd and Jacobson 1993) on the queue that the packet leaves behind, without averaging, as data
 * center switches do it. */
static bool congested(struct netsim_network *network, uint32_t port, uint64_t queue_bytes)
{
    struct netsim_port_more *more = &network->more[port];
    if (queue_bytes <= more->ecn_min_bytes)
        return false;
    if (queue_bytes >= more->ecn_max_bytes)
        return true;
    double share =
        (double)(queue_bytes - more->ecn_min_bytes) / (double)(more->ecn_max_bytes - more->ecn_min_bytes);
    return lh_prng_chance(&more->marking, share * network->config.ecn_probability);
}

bool netsim_switch_on_departure(struct netsim_network *network, uint32_t port, struct netsim_packet *packet)
{
    struct netsim_port *in = &network->ports[packet->ingress];
    struct netsim_switch *node = &network->switches[network->ports[port].owner - network->hosts_count];
    uint8_t priority = packet->priority;
    assert(in->held_bytes[priority] >= packet->wire_bytes);
    if (in->own_bytes == 0) {
        assert(node->used_bytes >= packet->wire_bytes);
        node->used_bytes -= packet->wire_bytes;
    }
    in->held_bytes[priority] -= packet->wire_bytes;
    if (network->config.ecn_max_bytes != 0 &&
        (packet->kind == LH_NETSIM_DATA || (packet->flags & NETSIM_CAPABLE) != 0) &&
        congested(network, port, network->ports[port].queue_bytes[priority])) {
        packet->flags |= NETSIM_MARKED;
        network->more[port].marked_packets++;
        network->totals.marked_packets++;
    }
    return (in->stopped != 0 || (in->flags & NETSIM_PORT_REPORTS) != 0) &&
           netsim_is_lossless(network, priority);
}

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
