/*
 * switch.c - a switch: one buffer that all ports share, accounted by the link and priority by which a
 * packet came in; queues at the way out.
 *
 * Store and forward: a packet is here when its last bit is. It takes its room in the buffer then, and gives
 * it back when its first bit leaves.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/network.h"

/* ---- which way --------------------------------------------------------------------------------------- */

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

/* One of `width` alternatives. */
static uint32_t choose(struct netsim *net, struct netsim_switch *node, uint32_t width, uint32_t entropy)
{
    if (width == 1)
        return 0;
    if (net->switch_config.spray)
        return (uint32_t)lh_prng_below(&node->spray, width);
    return (uint32_t)((uint64_t)hash(entropy, node->hash_seed) * width >> 32);
}

static uint32_t port_by_table(struct netsim *net, struct netsim_switch *node, uint32_t destination,
                              uint32_t entropy)
{
    const struct netsim_route *route = &node->route;
    uint32_t first = route->table_first[destination];
    uint32_t width = route->table_first[destination + 1] - first;
    if (width == 0)
        return NETSIM_NO_PORT;
    return node->first_port + route->table_choices[first + choose(net, node, width, entropy)];
}

uint32_t netsim_switch_port(struct netsim *net, struct netsim_switch *node, uint32_t destination,
                            uint32_t entropy)
{
    const struct netsim_route *route = &node->route;
    if (route->table_first != NULL)
        return port_by_table(net, node, destination, entropy);
    uint32_t below = destination - route->below_first;
    if (below < route->below_count) {
        uint32_t group = (uint32_t)(below * node->group_reciprocal >> 32);
        return node->first_port + route->below_port + group * route->below_width +
               choose(net, node, route->below_width, entropy);
    }
    if (route->up_width == 0)
        return NETSIM_NO_PORT;
    uint32_t shift = destination > route->below_first ? route->after_shift : 0;
    return node->first_port + route->up_port + shift + choose(net, node, route->up_width, entropy);
}

/* ---- arrival ----------------------------------------------------------------------------------------- */

/* Whether the packet finds room. What is under flow control is only refused when the buffer is full: then
 * its thresholds left too little headroom. */
static bool admit(const struct netsim *net, const struct netsim_switch *node, const struct netsim_port *in,
                  const struct netsim_port *out, const struct netsim_packet *packet)
{
    const struct netsim_switch_config *config = &net->switch_config;
    uint8_t priority = packet->priority;
    uint64_t free_bytes = in->own_bytes != 0 ? in->own_bytes - in->held_bytes[priority]
                                             : config->buffer_bytes - node->used_bytes;
    if (packet->wire_bytes > free_bytes)
        return false;
    if (in->control != NETSIM_CONTROL_NONE && (net->lossless >> priority & 1) != 0)
        return true;
    uint64_t queue_bytes = out->queue_bytes[priority] + packet->wire_bytes;
    if (config->queue_bytes != 0 && queue_bytes > config->queue_bytes)
        return false;
    return config->alpha == 0 || in->own_bytes != 0 ||
           (double)queue_bytes <= config->alpha * (double)free_bytes;
}

/* The packet takes its room, on account of the link by which it came. */
static void account(struct netsim *net, struct netsim_switch *node, uint32_t link,
                    struct netsim_packet *packet)
{
    struct netsim_port *in = &net->ports[link];
    uint8_t priority = packet->priority;
    packet->ingress = link;
    if (in->own_bytes == 0)
        node->used_bytes += packet->wire_bytes;
    in->held_bytes[priority] += packet->wire_bytes;
    if (in->held_bytes[priority] > in->held_max_bytes)
        in->held_max_bytes = in->held_bytes[priority];
    if (in->held_bytes[priority] > in->pause_above_bytes && (net->lossless >> priority & 1) != 0)
        netsim_control_on_arrival(net, link, packet);
}

static void drop(struct netsim *net, uint32_t link, uint32_t out, uint32_t packet)
{
    if ((net->ports[link].flags & NETSIM_PORT_CREDITS) != 0)
        netsim_credits_on_lost(net, link, &net->pool.packets[packet]);
    else if (net->ports[link].control == NETSIM_CONTROL_BIFROST &&
             (net->lossless >> net->pool.packets[packet].priority & 1) != 0)
        netsim_control_on_arrival(net, link,
                                  &net->pool.packets[packet]); /* it is not waited for any more */
    net->more[out].dropped_packets++;
    net->totals.dropped_packets++;
    netsim_packet_free(net, packet);
}

void netsim_on_switch_arrival(struct netsim *net, uint32_t number, uint32_t link, uint32_t packet)
{
    struct netsim_packet *arrived = &net->pool.packets[packet];
    struct netsim_switch *node = &net->switches[number - net->hosts_count];
    if ((arrived->flags & NETSIM_CORRUPTED) != 0 && arrived->kind != LH_NETSIM_RAW) {
        if ((net->ports[link].flags & NETSIM_PORT_CREDITS) != 0)
            netsim_credits_on_lost(net, link, arrived);
        netsim_packet_put(&net->pool, packet); /* its frame check sequence is wrong */
        return;
    }
    uint32_t out = netsim_switch_port(net, node, arrived->destination, arrived->entropy);
    if (out == NETSIM_NO_PORT) {
        net->totals.unroutable_packets++;
        netsim_packet_free(net, packet);
        return;
    }
    if (!admit(net, node, &net->ports[link], &net->ports[out], arrived)) {
        drop(net, link, out, packet);
        return;
    }
    account(net, node, link, arrived);
    netsim_enqueue(net, out, packet);
}

/* ---- departure --------------------------------------------------------------------------------------- */

/* RED (Floyd and Jacobson 1993) on the queue that the packet leaves behind, without averaging, as data
 * center switches do it. */
static bool congested(struct netsim *net, uint32_t port, uint64_t queue_bytes)
{
    struct netsim_port_more *more = &net->more[port];
    if (queue_bytes <= more->ecn_min_bytes)
        return false;
    if (queue_bytes >= more->ecn_max_bytes)
        return true;
    double share =
        (double)(queue_bytes - more->ecn_min_bytes) / (double)(more->ecn_max_bytes - more->ecn_min_bytes);
    return lh_prng_chance(&more->marking, share * net->switch_config.ecn_probability);
}

void netsim_on_switch_departure(struct netsim *net, uint32_t port, struct netsim_packet *packet)
{
    struct netsim_port *in = &net->ports[packet->ingress];
    struct netsim_switch *node = &net->switches[net->ports[port].owner - net->hosts_count];
    uint8_t priority = packet->priority;
    assert(in->held_bytes[priority] >= packet->wire_bytes);
    if (in->own_bytes == 0) {
        assert(node->used_bytes >= packet->wire_bytes);
        node->used_bytes -= packet->wire_bytes;
    }
    in->held_bytes[priority] -= packet->wire_bytes;
    if ((in->stopped != 0 || (in->flags & NETSIM_PORT_TOLD) != 0) && (net->lossless >> priority & 1) != 0)
        netsim_control_on_departure(net, packet->ingress, packet);
    if (net->switch_config.ecn_max_bytes != 0 && packet->kind == LH_NETSIM_DATA &&
        congested(net, port, net->ports[port].queue_bytes[priority])) {
        packet->flags |= NETSIM_MARKED;
        net->more[port].marked_packets++;
        net->totals.marked_packets++;
    }
}
