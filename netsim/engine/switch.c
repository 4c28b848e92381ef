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
