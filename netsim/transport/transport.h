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
#include "netsim/transport/starts.h"

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
    uint32_t unfinished; /* flows that are neither done nor failed */
    struct netsim_starts starts;
    uint32_t first_timer_event;
    uint32_t first_pace_event; /* exists only when paced */
    uint32_t start_event;
    netsim_time start_ps; /* when it is due, while it is pending */
    bool paced;           /* by transport.rate or congestion control */
    struct dcqcn *rates;  /* of each flow; NULL: no DCQCN */
    struct dcqcn_config dcqcn;
    uint64_t pace_ps_per_byte_q16; /* of transport.rate; 0: none */
    struct netsim_controllers controllers;
    /* XP and one_queue_pair: [source * hosts + destination]: the last flow that started, and 1; 0: none */
    uint32_t *last_of_pair;
    struct netsim_transport_config config;
};

/* Takes the flows, which are in the order of their start, and their
 * bitmaps from the arena. */
void netsim_transport_init(struct netsim_transport *transport, struct netsim_network *network,
                           const struct netsim_config *config, const struct netsim_flow_list *list,
                           const struct lh_prng *prng, struct netsim_arena *arena);
/* Numbers the events of the transport from `first` on, and returns the first number behind them. */
uint32_t netsim_transport_number_events(struct netsim_transport *transport, uint32_t first);

/* A flow has ended for its receiver: once for each, as the calls below. What waits for it may start. */
void netsim_flow_received(struct netsim_transport *transport, uint32_t flow, netsim_time at_ps);
/* A flow has ended for its sender, or it has given up; what waits for a flow that failed starts, too. */
void netsim_flow_done(struct netsim_transport *transport, uint32_t flow, netsim_time at_ps);
void netsim_flow_failed(struct netsim_transport *transport, uint32_t flow);

#endif
