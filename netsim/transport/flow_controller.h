/*
 * controller.h - flows under a congestion controller of src/congestion: what they send, and what their
 * receivers report in acknowledgements, goes in; the pace and the window come out.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TRANSPORT_CONTROLLER_H
#define LH_NETSIM_TRANSPORT_CONTROLLER_H

#include "netsim/transport/transport.h"

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

void netsim_controller_start(struct netsim_transport *transport, uint32_t flow);

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

#endif
