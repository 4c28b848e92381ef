/*
 * netsim_flows.h - the transport of all hosts: the flows, and what sends and receives them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TRANSPORT_NETSIM_FLOWS_H
#define LH_NETSIM_TRANSPORT_NETSIM_FLOWS_H

#include <stdbool.h>

#include "congestion/congestion_table.h"
#include "congestion/dcqcn.h"
#include "congestion/flight.h"
#include "netsim/base/flow_list.h"
#include "netsim/base/netsim_time.h"
#include "netsim/engine/network.h"

/* ---- flow ------------------------------------------------------------------------------------------ */

/* One flow: what its sender and its receiver know. */

/* Packets are numbered 0 … packets - 1. Sent, not acknowledged: those from `acknowledged` to `next` whose
 * bit in `taken` is 0. */
struct netsim_sender {
    uint32_t source;
    uint32_t destination;
    uint32_t packets;
    uint32_t next;         /* not sent yet; with go-back-N also: to be retransmitted */
    uint32_t acknowledged; /* all before it have arrived */
    uint32_t highest;      /* one past the highest that is known to have arrived */
    uint32_t window_packets;
    uint32_t entropy;
    uint32_t ring_next;     /* in the host's ring of flows that may send */
    uint32_t last_bytes;    /* payload of the last packet */
    uint32_t recovery_end;  /* while recovering: over when acknowledged is here */
    uint32_t recovery_scan; /* while recovering: no gap before it is to be retransmitted */
    uint32_t sent_end;      /* never sent before */
    uint8_t in_ring;
    uint8_t recovering;
    uint8_t all_lost; /* recovering from a timeout: everything not acknowledged counts as lost */
    uint8_t backoff;  /* consecutive timeouts */
    uint8_t failed;   /* too many of them */
    uint8_t held;     /* by its congestion controller */
    uint32_t repeated_packets;
    uint64_t *taken; /* bit n: packet n has arrived out of order; NULL when nothing is retransmitted */
    netsim_time progress_ps; /* last acknowledgement, or transmission of the oldest unacknowledged packet */
    netsim_time base_rtt_ps;
    netsim_time smoothed_rtt_ps;
    netsim_time pace_ps; /* not before: when the next packet may leave */
    uint64_t sent_packets;
    uint32_t timeouts;
};

struct netsim_receiver {
    uint32_t expected;     /* all before it have arrived */
    uint32_t out_of_order; /* that arrived beyond it */
    uint32_t reported;     /* go-back-N: the gap here has been reported */
    uint64_t *arrived;     /* bit n, for n >= expected */
    netsim_time report_ps; /* go-back-N: when it is again */
    netsim_time notify_ps; /* when congestion may be notified again */
};

/* When it began and ended. */
struct netsim_flow {
    struct netsim_sender sender;
    struct netsim_receiver receiver;
    uint64_t bytes;
    uint64_t missing_bytes; /* that its receiver ended without, at a deadline; else 0 */
    netsim_time start_ps;
    netsim_time received_ps; /* NETSIM_NEVER: not yet */
    netsim_time done_ps;
    netsim_time ideal_ps; /* 0: not computed yet */
    uint32_t pair_before; /* of the same queue pair: the flow that started before, and */
    uint32_t pair_after;  /* the one that did after it; NETSIM_NO_FLOW */
};

/* ---- starts ---------------------------------------------------------------------------------------- */

/*
 * When flows start: by time, or when all that they wait for has ended.
 *
 * Nodes are flows and tasks (netsim/base/flow_list.h). A node that is ready, or due, is taken once; who
 * takes a task says when it has ended, at once. Of nodes that are due at the same time flows by time come
 * first, then what waited, in the order of numbers.
 */

#define NETSIM_NO_NODE UINT32_MAX

struct netsim_start {
    netsim_time at_ps;
    uint32_t node;
};

struct netsim_starts {
    const struct netsim_flow_list *list;
    uint32_t *waits;            /* of each node of the graph: for how many others, still */
    struct netsim_start *ready; /* a heap: those that wait for none, and were not taken */
    uint32_t ready_count;
    uint32_t next_timed;
    bool changed; /* something became ready since this was last reset */
};

/* The list stays as it is, and sorted. */
void netsim_starts_init(struct netsim_starts *starts, const struct netsim_flow_list *list,
                        struct netsim_arena *arena);
/* When the next node is due; NETSIM_NEVER: none will be by itself. */
netsim_time netsim_starts_next_ps(const struct netsim_starts *starts);
/* A node that is due; NETSIM_NO_NODE: none is. */
uint32_t netsim_starts_take(struct netsim_starts *starts, netsim_time now_ps);
/* What waits for the node waits no longer for it: once for each node. */
void netsim_starts_release(struct netsim_starts *starts, uint32_t node, netsim_time now_ps);

static inline bool netsim_starts_is_task(const struct netsim_starts *starts, uint32_t node)
{
    return node >= starts->list->count;
}

/* ---- controlled ------------------------------------------------------------------------------------ */

/*
 * What flows under a congestion controller have besides: its state, what is in flight, and
 * what their receivers report of it.
 */

/* Of one flow. */
struct netsim_controlled {
    struct flight flight; /* a packet's key is the number of its transmission */
    struct lh_congestion_decision decision;
    netsim_time timer_ps;         /* when its event is due, while it is pending */
    netsim_time paced_ps;         /* the last packet left, or would have, by the pace before it; and */
    uint32_t paced_bytes;         /* its payload */
    struct flight_report arrived; /* by now, at the receiver */
};

struct netsim_controllers {
    struct congestion_choice choice; /* without a controller: there are none */
    struct netsim_controlled *flows;
    unsigned char *states;    /* of each flow: the sender's half, */
    unsigned char *receivers; /* and the receiver's */
    size_t state_bytes;
    size_t receiver_bytes;         /* 0: it has none */
    struct flight_report *reports; /* of each packet that is an acknowledgement */
    uint32_t first_event;          /* of each flow: its controller's timer, */
    uint32_t first_credit_event;   /* and that of its receiver's half, if there is one */
};

/* ---- transport ------------------------------------------------------------------------------------- */

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

/* Takes the flows, which are in the order of their start, and their bitmaps from the arena. */
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
