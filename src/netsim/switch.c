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
    return node->first_port + route->up_port + choose(net, node, route->up_width, entropy);
}

/* ---- arrival ----------------------------------------------------------------------------------------- */

/* Whether the packet finds room. A priority under flow control is only refused when the buffer is full:
 * then its thresholds left too little headroom. */
static bool admit(const struct netsim *net, const struct netsim_switch *node, const struct netsim_port *out,
                  const struct netsim_packet *packet)
{
    const struct netsim_switch_config *config = &net->switch_config;
    uint64_t free_bytes = config->buffer_bytes - node->used_bytes;
    if (packet->wire_bytes > free_bytes)
        return false;
    if ((net->lossless >> packet->priority & 1) != 0)
        return true;
    uint64_t queue_bytes = out->queue_bytes[packet->priority] + packet->wire_bytes;
    if (config->queue_bytes != 0 && queue_bytes > config->queue_bytes)
        return false;
    return config->alpha == 0 || (double)queue_bytes <= config->alpha * (double)free_bytes;
}

/* Tells whoever sends on `link` to stop or go on with a priority. */
static void signal_upstream(struct netsim *net, uint32_t link, uint8_t priority, bool pause)
{
    uint32_t number = netsim_packet_new(net);
    if (number == NETSIM_NO_PACKET)
        return;
    net->pool.packets[number] = (struct netsim_packet){
        .flow = NETSIM_NO_FLOW,
        .wire_bytes = LH_PFC_FRAME_BYTES,
        .kind = pause ? LH_NETSIM_PAUSE : LH_NETSIM_RESUME,
        .priority = priority,
    };
    if (pause)
        net->totals.pauses++;
    else
        net->totals.resumes++;
    netsim_enqueue_urgent(net, net->ports[link].reverse, number);
}

static void control_upstream(struct netsim *net, const struct netsim_switch *node, uint32_t link,
                             uint8_t priority)
{
    struct netsim_port *in = &net->ports[link];
    uint64_t free_bytes = net->switch_config.buffer_bytes - node->used_bytes;
    enum lh_flow_signal signal =
        lh_pfc_update(&net->pfc, in->held_bytes[priority], free_bytes, priority, &in->stopped);
    if (signal != LH_FLOW_NONE)
        signal_upstream(net, link, priority, signal == LH_FLOW_PAUSE);
}

static void drop(struct netsim *net, uint32_t out, uint32_t packet)
{
    net->more[out].dropped_packets++;
    net->totals.dropped_packets++;
    netsim_packet_free(net, packet);
}

void netsim_on_switch_arrival(struct netsim *net, uint32_t number, uint32_t link, uint32_t packet)
{
    struct netsim_packet *arrived = &net->pool.packets[packet];
    struct netsim_switch *node = &net->switches[number - net->hosts_count];
    uint8_t priority = arrived->priority;
    if (arrived->kind == LH_NETSIM_PAUSE || arrived->kind == LH_NETSIM_RESUME) {
        netsim_on_pause(net, net->ports[link].reverse, priority, arrived->kind == LH_NETSIM_PAUSE);
        netsim_packet_put(&net->pool, packet);
        return;
    }
    if ((arrived->flags & NETSIM_CORRUPTED) != 0 && arrived->kind != LH_NETSIM_RAW) {
        netsim_packet_put(&net->pool, packet); /* its frame check sequence is wrong */
        return;
    }
    uint32_t out = netsim_switch_port(net, node, arrived->destination, arrived->entropy);
    if (out == NETSIM_NO_PORT) {
        net->totals.unroutable_packets++;
        netsim_packet_free(net, packet);
        return;
    }
    if (!admit(net, node, &net->ports[out], arrived)) {
        drop(net, out, packet);
        return;
    }
    struct netsim_port *in = &net->ports[link];
    arrived->ingress = link;
    node->used_bytes += arrived->wire_bytes;
    in->held_bytes[priority] += arrived->wire_bytes;
    if ((net->lossless >> priority & 1) != 0 && in->held_bytes[priority] > net->pfc.xoff_bytes)
        control_upstream(net, node, link, priority);
    netsim_enqueue(net, out, packet);
}

/* ---- departure --------------------------------------------------------------------------------------- */

/* RED (Floyd and Jacobson 1993) on the queue that the packet leaves behind, without averaging, as data
 * center switches do it. */
static bool congested(struct netsim *net, uint32_t port, uint64_t queue_bytes)
{
    const struct netsim_switch_config *config = &net->switch_config;
    if (queue_bytes <= config->ecn_min_bytes)
        return false;
    if (queue_bytes >= config->ecn_max_bytes)
        return true;
    double share = (double)(queue_bytes - config->ecn_min_bytes) /
                   (double)(config->ecn_max_bytes - config->ecn_min_bytes);
    return lh_prng_chance(&net->more[port].marking, share * config->ecn_probability);
}

void netsim_on_switch_departure(struct netsim *net, uint32_t port, struct netsim_packet *packet)
{
    struct netsim_port *in = &net->ports[packet->ingress];
    struct netsim_switch *node = &net->switches[net->ports[port].owner - net->hosts_count];
    uint8_t priority = packet->priority;
    assert(node->used_bytes >= packet->wire_bytes && in->held_bytes[priority] >= packet->wire_bytes);
    node->used_bytes -= packet->wire_bytes;
    in->held_bytes[priority] -= packet->wire_bytes;
    if (in->stopped != 0)
        control_upstream(net, node, packet->ingress, priority);
    if (net->switch_config.ecn_max_bytes != 0 && packet->kind == LH_NETSIM_DATA &&
        congested(net, port, net->ports[port].queue_bytes[priority])) {
        packet->flags |= NETSIM_MARKED;
        net->more[port].marked_packets++;
        net->totals.marked_packets++;
    }
}
