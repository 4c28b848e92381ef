/*
 * ideal_fct.c - see ideal_fct.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/transport/ideal_fct.h"

#include "netsim/engine/switch.h"

/* The links from one host to another that a flow's packets take; one path of them, when packets are sprayed,
 * so a flow may then be faster than alone on it. */
struct path {
    uint32_t source;
    uint32_t destination;
    uint32_t entropy;
    uint32_t links; /* 0: there is no path */
};

/* From one link to the next; NETSIM_NO_PORT: there is none. */
static uint32_t next_link(const struct netsim_transport *transport, const struct path *path, uint32_t link)
{
    uint32_t far = transport->network->ports[link].far;
    if (far < transport->network->hosts_count)
        return NETSIM_NO_PORT;
    return netsim_switch_flow_port(&transport->network->switches[far - transport->network->hosts_count],
                                   path->destination, path->entropy);
}

static struct path path_of(const struct netsim_transport *transport, uint32_t source, uint32_t destination,
                           uint32_t entropy)
{
    struct path path = {source, destination, entropy, 0};
    uint32_t last = netsim_host_port(source);
    /* A path visits no switch twice. */
    for (uint32_t link = last;
         link != NETSIM_NO_PORT && path.links <= transport->network->graph->nodes_count;
         link = next_link(transport, &path, link)) {
        last = link;
        path.links++;
    }
    if (transport->network->ports[last].far != destination)
        path.links = 0;
    return path;
}

/* The time of wire_bytes over all links, and on the slowest of them. */
static netsim_time one_way_ps(const struct netsim_transport *transport, const struct path *path,
                              uint32_t wire_bytes, netsim_time *slowest_ps)
{
    netsim_time sum_ps = 0;
    uint32_t link = netsim_host_port(path->source);
    *slowest_ps = 1;
    for (uint32_t i = 0; i < path->links; i++, link = next_link(transport, path, link)) {
        const struct netsim_port *port = &transport->network->ports[link];
        netsim_time span_ps = netsim_serialization_ps(port->ps_per_byte_q16, wire_bytes);
        sum_ps += span_ps + port->delay_ps;
        *slowest_ps = span_ps > *slowest_ps ? span_ps : *slowest_ps;
    }
    return sum_ps;
}

/* When a flow's packets arrive. */
struct arrivals {
    netsim_time first_ps;
    netsim_time before_ps; /* the last but one; with a single packet, 0 */
    netsim_time last_ps;
};

/* Times on link i count from when the first packet could have left link i - 1, so delays are added once at
 * the end. */
static struct arrivals data_arrivals(const struct netsim_transport *transport, const struct path *path,
                                     const struct netsim_sender *sender)
{
    uint32_t header_bytes = transport->config.header_bytes;
    uint32_t full_bytes = transport->config.payload_bytes + header_bytes;
    netsim_time delays_ps = 0;
    netsim_time first_ps = 0;   /* the first packet has left this link */
    netsim_time slowest_ps = 0; /* of the links so far */
    netsim_time before_ps = 0;  /* the last but one has left this link */
    netsim_time last_ps = 0;    /* the last packet has left this link */
    uint32_t link = netsim_host_port(path->source);
    for (uint32_t i = 0; i < path->links; i++, link = next_link(transport, path, link)) {
        const struct netsim_port *port = &transport->network->ports[link];
        netsim_time full_ps = netsim_serialization_ps(port->ps_per_byte_q16, full_bytes);
        delays_ps += port->delay_ps;
        first_ps += full_ps;
        slowest_ps = full_ps > slowest_ps ? full_ps : slowest_ps;
        if (sender->packets > 1) {
            before_ps = first_ps + (sender->packets - 2) * slowest_ps;
            last_ps = before_ps > last_ps ? before_ps : last_ps;
        }
        last_ps += netsim_serialization_ps(port->ps_per_byte_q16, sender->last_bytes + header_bytes);
    }
    if (sender->packets == 1)
        return (struct arrivals){last_ps + delays_ps, 0, last_ps + delays_ps};
    return (struct arrivals){first_ps + delays_ps, before_ps + delays_ps, last_ps + delays_ps};
}

/* When the last acknowledgement sets out, if all waiting for the one before it is put at the beginning: those
 * that follow each other too closely end up spaced by their slowest link. Of all packets only the first and
 * the last two can be what they wait for. */
static netsim_time last_ack_ps(const struct arrivals *arrivals, uint32_t packets,
                               netsim_time slowest_ack_ps)
{
    netsim_time from_ps = arrivals->last_ps;
    netsim_time behind_first_ps = arrivals->first_ps + (packets - 1) * slowest_ack_ps;
    netsim_time behind_before_ps = arrivals->before_ps + slowest_ack_ps;
    if (behind_first_ps > from_ps)
        from_ps = behind_first_ps;
    if (packets > 1 && behind_before_ps > from_ps)
        from_ps = behind_before_ps;
    return from_ps;
}

void netsim_ideal_fct(const struct netsim_transport *transport, uint32_t number, netsim_time *ideal_ps,
                      netsim_time *base_rtt_ps, netsim_time *slowest_ps)
{
    const struct netsim_sender *sender = &transport->flows[number].sender;
    const struct netsim_transport_config *config = &transport->config;
    uint32_t full_bytes = config->payload_bytes + config->header_bytes;
    struct path path = path_of(transport, sender->source, sender->destination, sender->entropy);
    struct arrivals arrivals = data_arrivals(transport, &path, sender);
    *base_rtt_ps = one_way_ps(transport, &path, full_bytes, slowest_ps);
    *ideal_ps = arrivals.last_ps;
    if (config->ack_bytes != 0) {
        netsim_time slowest_ack_ps = 0;
        path = path_of(transport, sender->destination, sender->source, ~sender->entropy);
        netsim_time ack_ps = one_way_ps(transport, &path, config->ack_bytes, &slowest_ack_ps);
        *ideal_ps = last_ack_ps(&arrivals, sender->packets, slowest_ack_ps) + ack_ps;
        *base_rtt_ps += ack_ps;
    }
}
