/*
 * graph.h - who is connected to whom: hosts, switches, cables, and how a switch picks the port for a packet.
 *
 * Nodes are numbered: hosts 0 … hosts - 1, then switches. Each host has exactly one cable. A cable is full
 * duplex: cable c is the directed links 2c (from a to b) and 2c + 1 (from b to a). The ports of a node are
 * numbered from 0 in the order of its cables in the list.
 *
 * A builder (topology.h) fills the graph; the network (network.h) only reads it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_ENGINE_GRAPH_H
#define LH_NETSIM_ENGINE_GRAPH_H

#include <longhaul/link.h>

#include "netsim/base/arena.h"
#include "netsim/base/time.h"

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

#endif
