/*
 * transport.h - the transport of all hosts: the flows, and what sends and receives them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TRANSPORT_TRANSPORT_H
#define LH_NETSIM_TRANSPORT_TRANSPORT_H

#include "congestion/dcqcn.h"
#include "netsim/base/flow_list.h"
#include "netsim/engine/network.h"
#include "netsim/transport/controlled.h"
#include "netsim/transport/flow.h"

/* Flows of a host that may send, round robin. */
struct netsim_flow_ring {
    uint32_t first; /* NETSIM_NO_FLOW: none may */
    uint32_t last;
};

struct netsim_transport {
    struct netsim_network *network;
    struct netsim_flow *flows;
    struct netsim_flow_ring *rings; /* of each host */
    uint32_t flows_count;
    uint32_t next_flow; /* the first that has not started */
    uint32_t first_timer_event;
    uint32_t first_pace_event; /* exists only when paced */
    uint32_t start_event;
    bool paced;          /* by transport.rate or congestion control */
    struct dcqcn *rates; /* of each flow; NULL: no DCQCN */
    struct dcqcn_config dcqcn;
    uint64_t pace_ps_per_byte_q16; /* of transport.rate; 0: none */
    struct netsim_controllers controllers;
    struct netsim_transport_config config;
};

/* Takes the flows, which are in the order of their start, and their
 * bitmaps from the arena. */
void netsim_transport_init(struct netsim_transport *transport, struct netsim_network *network,
                           const struct netsim_config *config, const struct netsim_flow_list *list,
                           const struct lh_prng *prng, struct netsim_arena *arena);
/* Numbers the events of the transport from `first` on, and returns the first number behind them. */
uint32_t netsim_transport_number_events(struct netsim_transport *transport, uint32_t first);

#endif
