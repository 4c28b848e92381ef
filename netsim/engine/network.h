/*
 * network.h - the network: graph, links, switches, queues, routes, raw packets and clock.
 *
 * It knows neither flow control nor the transport of hosts: what these are to do is returned to who calls.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_ENGINE_NETWORK_H
#define LH_NETSIM_ENGINE_NETWORK_H

#include <longhaul/link.h>
#include <longhaul/netsim.h>

#include "base/prng.h"
#include "netsim/base/netsim_config.h"
#include "netsim/base/netsim_time.h"
#include "netsim/engine/event_queue.h"
#include "netsim/engine/netsim_port.h"

/* ---- graph ----------------------------------------------------------------------------------------- */

/*
 * Who is connected to whom: hosts, switches, cables, and how a switch picks the port for a packet.
 *
 * Nodes are numbered: hosts 0 … hosts - 1, then switches. Each host has exactly one cable. A cable is full
 * duplex: cable c is the directed links 2c (from a to b) and 2c + 1 (from b to a). The ports of a node are
 * numbered from 0 in the order of its cables in the list.
 *
 * A builder (topology.h) fills the graph; the network only reads it.
 */

#define NETSIM_HOSTS_MAX  65536u
#define NETSIM_NODES_MAX  131072u
#define NETSIM_CABLES_MAX 1048576u
#define NETSIM_PORTS_MAX  4096u /* of one switch */
#define NETSIM_NAME_MAX   32u
#define NETSIM_NO_FAULTS  UINT32_MAX

struct netsim_cable {
    uint32_t ends[2]; /* node numbers */
    uint64_t rate_bps;
    netsim_time delay_ps;
    uint32_t faults; /* index in graph.faults, for both directions; NETSIM_NO_FAULTS */
};

/* Which port of a switch leads to a host. In closed form where the topology allows it: hosts
 * below_first … below_first + below_count - 1 are below this switch, hosts_per_group of them behind each
 * group of below_width ports, which are alternatives (equal cost); every other host is reached through any of
 * the up_width ports from up_port on; when its number is above those below, after_shift ports further on (a
 * line of sites goes on both ways). Ports are chosen among alternatives by the packet's hash. */
struct netsim_route {
    uint32_t below_first;
    uint32_t below_count;
    uint32_t hosts_per_group; /* at least 1 */
    uint32_t below_port;
    uint32_t below_width; /* at least 1 where below_count > 0 */
    uint32_t up_port;
    uint32_t up_width; /* 0: nothing above; a packet for there is dropped and counted */
    uint32_t after_shift;
    /* Not NULL: a table in place of the closed form, for topologies from a file. Alternatives for host h are
     * choices[first[h]] … choices[first[h + 1] - 1] (none: unreachable). */
    const uint32_t *table_first; /* hosts + 1 */
    const uint16_t *table_choices;
};

enum netsim_tier { /* only that of a relay changes anything */
                   NETSIM_TIER_HOST,
                   NETSIM_TIER_TOR, /* leaf, edge */
                   NETSIM_TIER_AGGREGATION,
                   NETSIM_TIER_CORE,  /* spine */
                   NETSIM_TIER_DCI,   /* the end of a long link between datacenters */
                   NETSIM_TIER_RELAY, /* SWING: between that and the long link */
};

struct netsim_node {
    char name[NETSIM_NAME_MAX]; /* "host12", "leaf3", "a.core1": letters, digits, '.', '-', '_' */
    uint32_t ports;
    uint8_t tier;
    uint8_t site; /* datacenter, from 0 */
    bool border;  /* a switch at the end of a cable to another site, or at a relay */
};

struct netsim_graph {
    uint32_t hosts;
    uint32_t nodes_count;
    uint32_t cables_count;
    uint32_t faults_count;
    uint32_t sites;
    struct netsim_node *nodes;
    struct netsim_cable *cables;
    struct netsim_route *routes; /* of switch s: routes[s - hosts] */
    struct lh_link_spec
        *faults; /* loss, burst, reorder, duplicate, corrupt, jitter, seed; no rate or delay */
};

static inline bool netsim_is_switch(const struct netsim_graph *graph, uint32_t node)
{
    return node >= graph->hosts;
}

static inline bool netsim_is_relay(const struct netsim_graph *graph, uint32_t node)
{
    return graph->nodes[node].tier == NETSIM_TIER_RELAY;
}

/* A long cable joins switches of different sites. */
bool netsim_cable_is_long(const struct netsim_graph *graph, const struct netsim_cable *cable);
/* Sets `border` of all nodes; the last step of making a graph. */
void netsim_mark_borders(struct netsim_graph *graph);

/* ---- network --------------------------------------------------------------------------------------- */

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

/* ---- raw ------------------------------------------------------------------------------------------- */

/* Packets that a user of the network puts in and takes out, one by one. */

struct netsim_raw {
    netsim_time arrive_ps;
    uint64_t cookie;
    uint32_t source;
    uint32_t destination;
    uint32_t wire_bytes;
    uint32_t corrupt_bit; /* when corrupted: one bit flipped, this one modulo the packet's */
    bool corrupted;
    bool ecn_capable; /* may be marked */
    bool marked;      /* congestion experienced */
};

#define NETSIM_DROPPED UINT32_MAX

/* A packet to be queued at its source. NETSIM_NO_PACKET: the pool has none left but for the pauses and
 * resumes of switches. */
uint32_t netsim_raw_new(struct netsim_network *network, const struct netsim_raw *raw, uint32_t entropy,
                        uint8_t priority);
/* The packet arrived at its destination, or was dropped: keeps it for netsim_raw_next(). */
void netsim_raw_end(struct netsim_network *network, uint32_t packet, bool arrived);
/* The next packet that ended, in this order; a dropped one has destination NETSIM_DROPPED, so that the owner
 * of the cookie learns of its end. False: none. */
bool netsim_raw_next(struct netsim_network *network, struct netsim_raw *raw);

/* Drops a packet of any kind. */
static inline void netsim_packet_drop(struct netsim_network *network, uint32_t packet)
{
    if (network->pool.packets[packet].kind == LH_NETSIM_RAW)
        netsim_raw_end(network, packet, false);
    else
        netsim_packet_put(&network->pool, packet);
}

/* ---- port queue ------------------------------------------------------------------------------------ */

/* The queues in front of a link: one of each priority, and one of signals, which go first. */

/* Appends a packet to the queue of its priority. */
void netsim_queue_append(struct netsim_network *network, uint32_t port, uint32_t packet);
/* Appends a pause, resume or credit to the queue of signals, which is then not empty. */
void netsim_queue_append_urgent(struct netsim_network *network, uint32_t port, uint32_t packet);
uint32_t netsim_queue_take_urgent(struct netsim_network *network, uint32_t port);

/* The port stops sending that priority, or sends it again; it is paused already, or not, all the same. */
void netsim_queue_pause(struct netsim_network *network, uint32_t port, uint8_t priority);
void netsim_queue_resume(struct netsim_network *network, uint32_t port, uint8_t priority);

/* Bit p: something of priority p is queued, and may leave. */
static inline unsigned netsim_queue_ready(const struct netsim_port *port)
{
    return port->ready & (unsigned)~(port->paused | port->stalled);
}

/* The highest priority of a mask that is not 0. */
static inline unsigned netsim_queue_highest(unsigned ready)
{
    return 31u - (unsigned)__builtin_clz(ready);
}

/* The first packet of a queue that is not empty. */
static inline uint32_t netsim_queue_take(struct netsim_network *network, struct netsim_port *port,
                                         unsigned priority)
{
    uint32_t packet = port->first[priority];
    struct netsim_packet *taken = &network->pool.packets[packet];
    port->first[priority] = taken->next;
    if (taken->next == NETSIM_NO_PACKET) {
        port->last[priority] = NETSIM_NO_PACKET;
        port->ready &= (uint8_t) ~(1u << priority);
    } else {
        __builtin_prefetch(&network->pool.packets[taken->next]);
    }
    port->queue_bytes[priority] -= taken->wire_bytes;
    port->queued_bytes -= taken->wire_bytes;
    return packet;
}

/* ---- route ----------------------------------------------------------------------------------------- */

/*
 * Which ports of a switch lead to a host: the plain reading of struct netsim_route.
 *
 * For whoever walks paths. The switches of the engine read the same route with precomputed reciprocals.
 */

/* How many ports of equal cost lead to that host; 0: none does. */
uint32_t netsim_route_port_count(const struct netsim_route *route, uint32_t host);
/* The i-th of them. i is below the count. */
uint32_t netsim_route_port_at(const struct netsim_route *route, uint32_t host, uint32_t i);

#endif
