/*
 * ideal.c - how long a flow takes alone in the network: no queues but its own packets', no faults, no
 * window.
 *
 * Exact, to the picosecond: equal packets through a line of store-and-forward links leave link i spaced by
 * the slowest link so far; only the last packet, which may be shorter, can run into the one before it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/network.h"

#define LINKS_MAX 64u /* of one path */

/* The links from one host to another that a flow's packets take (any of them, when packets are sprayed). 0:
 * there is no way. */
static uint32_t walk(struct netsim *net, uint32_t source, uint32_t destination, uint32_t entropy,
                     uint32_t links[LINKS_MAX])
{
    uint32_t count = 0;
    uint32_t link = net->hosts[source].port;
    bool spray = net->switch_config.spray;
    net->switch_config.spray = false; /* looking must draw nothing */
    while (link != NETSIM_NO_PORT && count < LINKS_MAX) {
        links[count++] = link;
        uint32_t far = net->ports[link].far;
        if (far < net->hosts_count)
            break;
        link = netsim_switch_port(net, &net->switches[far - net->hosts_count], destination, entropy);
    }
    net->switch_config.spray = spray;
    return count > 0 && net->ports[links[count - 1]].far == destination ? count : 0;
}

static netsim_time one_way_ps(const struct netsim *net, const uint32_t links[LINKS_MAX], uint32_t count,
                              uint32_t wire_bytes)
{
    netsim_time sum_ps = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct netsim_port *port = &net->ports[links[i]];
        sum_ps += netsim_serialization_ps(port->ps_per_byte_q16, wire_bytes) + port->delay_ps;
    }
    return sum_ps;
}

/* When the last of `packets` packets has arrived. Times on link i count from when the first packet could
 * have left link i - 1, so delays are added once at the end. */
static netsim_time data_ps(const struct netsim *net, const uint32_t links[LINKS_MAX], uint32_t count,
                           const struct netsim_sender *sender)
{
    uint32_t header_bytes = net->transport.header_bytes;
    uint32_t full_bytes = net->transport.payload_bytes + header_bytes;
    netsim_time delays_ps = 0;
    netsim_time first_ps = 0;   /* the first packet has left this link */
    netsim_time slowest_ps = 0; /* of the links so far */
    netsim_time last_ps = 0;    /* the last packet has left this link */
    for (uint32_t i = 0; i < count; i++) {
        const struct netsim_port *port = &net->ports[links[i]];
        netsim_time full_ps = netsim_serialization_ps(port->ps_per_byte_q16, full_bytes);
        delays_ps += port->delay_ps;
        first_ps += full_ps;
        slowest_ps = full_ps > slowest_ps ? full_ps : slowest_ps;
        if (sender->packets > 1) {
            netsim_time before_ps = first_ps + (sender->packets - 2) * slowest_ps;
            last_ps = before_ps > last_ps ? before_ps : last_ps;
        }
        last_ps += netsim_serialization_ps(port->ps_per_byte_q16, sender->last_bytes + header_bytes);
    }
    return last_ps + delays_ps;
}

void netsim_flow_ideal(struct netsim *net, uint32_t number, netsim_time *ideal_ps, netsim_time *base_rtt_ps,
                       netsim_time *slowest_ps)
{
    const struct netsim_sender *sender = &net->flows[number].sender;
    const struct netsim_transport_config *transport = &net->transport;
    uint32_t links[LINKS_MAX];
    uint32_t full_bytes = transport->payload_bytes + transport->header_bytes;
    uint32_t count = walk(net, sender->source, sender->destination, sender->entropy, links);
    *slowest_ps = 1;
    for (uint32_t i = 0; i < count; i++) {
        netsim_time full_ps = netsim_serialization_ps(net->ports[links[i]].ps_per_byte_q16, full_bytes);
        *slowest_ps = full_ps > *slowest_ps ? full_ps : *slowest_ps;
    }
    *ideal_ps = data_ps(net, links, count, sender);
    *base_rtt_ps = one_way_ps(net, links, count, full_bytes);
    if (transport->ack_bytes == 0)
        return;
    count = walk(net, sender->destination, sender->source, ~sender->entropy, links);
    netsim_time ack_ps = one_way_ps(net, links, count, transport->ack_bytes);
    *ideal_ps += ack_ps;
    *base_rtt_ps += ack_ps;
}
