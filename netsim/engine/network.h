/*
 * network.h - the network: links, switches, the packets in it, and its clock.
 *
 * It knows neither flow control nor the transport of hosts: what these are to do is returned to who calls.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_ENGINE_NETWORK_H
#define LH_NETSIM_ENGINE_NETWORK_H

#include <longhaul/netsim.h>

#include "base/prng.h"
#include "netsim/base/config.h"
#include "netsim/engine/event_queue.h"
#include "netsim/engine/graph.h"
#include "netsim/engine/packet.h"
#include "netsim/engine/port.h"

#define NETSIM_NO_PORT UINT32_MAX

/* One generator a component; where there are many, the link's or switch's number is in the upper half. */
enum netsim_component {
    NETSIM_COMPONENT_WORKLOAD = 1,
    NETSIM_COMPONENT_ENTROPY,
    NETSIM_COMPONENT_SWITCH,  /* one a switch: hash seed and spraying */
    NETSIM_COMPONENT_MARKING, /* one a link */
    NETSIM_COMPONENT_FAULTS,  /* one a link */
    NETSIM_COMPONENT_SIGNALS, /* one a link */
    NETSIM_COMPONENT_STRAGGLERS,
    NETSIM_COMPONENT_BURSTS,
    NETSIM_COMPONENT_FLAPS,
};

struct netsim_switch {
    struct netsim_route route;
    uint64_t group_reciprocal; /* ceil(2^32 / hosts_per_group) */
    uint64_t used_bytes;       /* of the shared buffer, without the links that have a buffer of their own */
    uint32_t first_port;
    uint32_t hash_seed;
    struct lh_prng spray;
};

/* Of the links with faults: their rate for some time. */
struct netsim_rate_change {
    uint64_t ps_per_byte_q16;
    netsim_time from_ps;
    netsim_time until_ps; /* not after from_ps: never */
};

struct netsim_network {
    struct netsim_event_queue events; /* of port p: 2p its transmitter is idle, 2p + 1 its wire's arrival */
    struct netsim_packet_pool pool;
    struct netsim_port *ports;
    struct netsim_port_more *more;
    struct netsim_switch *switches;
    netsim_time now_ps;
    uint32_t hosts_count;
    uint32_t ports_count;
    uint32_t header_bytes;
    bool out_of_packets;
    uint8_t lossless;          /* bit p: priority p is under flow control, where there is any */
    uint64_t urgent_packets;   /* pauses, resumes and credits that have left */
    uint32_t reserved_packets; /* unavailable to raw packets: for pauses and resumes */
    uint32_t delivered_first;  /* raw packets that arrived */
    uint32_t delivered_last;
    struct lh_netsim_totals totals;
    lh_netsim_watcher *watcher;
    void *watcher_context;
    struct netsim_switch_config config;
    const struct netsim_graph *graph;
    uint32_t *cable_links;        /* cable: its link from end a to end b */
    struct lh_link_state *faults; /* of the links that have any */
    struct netsim_rate_change change;
};

/* Takes from the arena, and initializes, the links and switches of the graph, which stays as long as the
 * network. The event queue is left to who knows all events. */
void netsim_network_init(struct netsim_network *network, const struct netsim_config *config,
                         const struct netsim_graph *graph, const struct lh_prng *prng,
                         struct netsim_arena *arena);
/* The width of the event queue's buckets. */
netsim_time netsim_network_bucket_ps(const struct netsim_network *network, uint32_t frame_bytes);

/* The port of a host: each has one cable, and links are numbered node by node, hosts first. */
static inline uint32_t netsim_host_port(uint32_t host)
{
    return host;
}

static inline bool netsim_is_lossless(const struct netsim_network *network, unsigned priority)
{
    return (network->lossless >> priority & 1) != 0;
}

static inline bool netsim_is_control(const struct netsim_packet *packet)
{
    return packet->kind == LH_NETSIM_PAUSE || packet->kind == LH_NETSIM_RESUME ||
           packet->kind == LH_NETSIM_CREDIT;
}

/* A packet for the network's own use. NETSIM_NO_PACKET: the run ends with -LH_ENOMEM. */
static inline uint32_t netsim_packet_new(struct netsim_network *network)
{
    uint32_t packet = netsim_packet_get(&network->pool);
    if (packet == NETSIM_NO_PACKET)
        network->out_of_packets = true;
    return packet;
}

#endif
