/*
 * flow_controller.h - flows under a congestion controller of src/congestion: rates, windows, reports and
 * their ring.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TRANSPORT_FLOW_CONTROLLER_H
#define LH_NETSIM_TRANSPORT_FLOW_CONTROLLER_H

#include "netsim/transport/netsim_flows.h"

static inline bool netsim_is_controlled(const struct netsim_transport *transport)
{
    return transport->controllers.choice.controller != NULL;
}

/* Takes what flows, whose numbers of packets are known from the list, and the packets of the pool need. */
void netsim_controller_setup(struct netsim_transport *transport, const struct netsim_flow_list *list,
                             uint32_t packets_max, struct netsim_arena *arena);
/* Bytes of what has been set aside for a packet besides itself. */
size_t netsim_controller_packet_bytes(const struct netsim_transport *transport);
/* Numbers the events, and returns the first number behind them. */
uint32_t netsim_controller_number_events(struct netsim_transport *transport, uint32_t first);

/* At the sender. Payload bytes; the packet gets its key. */
void netsim_controller_on_sent(struct netsim_transport *transport, uint32_t flow,
                               struct netsim_packet *packet, uint32_t bytes);
/* It has nothing to send, or may not for another reason than its controller. */
void netsim_controller_on_limited(struct netsim_transport *transport, uint32_t flow);
void netsim_controller_on_ack(struct netsim_transport *transport, const struct netsim_packet *ack);
void netsim_controller_on_timer(struct netsim_transport *transport, uint32_t flow);

/* At the receiver: a packet of data arrived. */
void netsim_controller_on_data(struct netsim_transport *transport, const struct netsim_packet *packet);
/* That packet becomes its acknowledgement, which reports what has arrived. */
void netsim_controller_report(struct netsim_transport *transport, const struct netsim_packet *ack);
/* The receiver's half may have more credit: the packet that tells the sender, or NETSIM_NO_PACKET. */
uint32_t netsim_controller_on_credit_timer(struct netsim_transport *transport, uint32_t flow);

/* ---- flow rate ------------------------------------------------------------------------------------- */

/*
 * How fast a flow sends: transport.rate, or the rate that DCQCN allows.
 *
 * A flow may send from sender.pace_ps on.
 */

/* In nanoseconds, rounded down, as dcqcn.h has it. */
struct dcqcn_config netsim_flow_rate_dcqcn(const struct netsim_dcqcn_config *config);
/* Derives what the transport has of rates from its configuration. */
void netsim_flow_rate_setup(struct netsim_transport *transport);

void netsim_flow_rate_start(struct netsim_transport *transport, uint32_t flow);
void netsim_flow_rate_on_sent(struct netsim_transport *transport, uint32_t flow, uint32_t wire_bytes);
/* A congestion notification arrived. */
void netsim_flow_rate_on_cnp(struct netsim_transport *transport, uint32_t flow);

/* ---- flow ring ------------------------------------------------------------------------------------- */

/* The flows of a host that may send, in the order in which they will. */

/* Adds a flow that is in no ring to that of its source: at its end, or where its number belongs
 * (netsim_flow_list.in_order). */
void netsim_flow_ring_add(struct netsim_transport *transport, uint32_t flow);
/* Takes the first; NETSIM_NO_FLOW: the ring is empty. */
uint32_t netsim_flow_ring_take(struct netsim_transport *transport, uint32_t host);

#endif
