/*
 * xp.h - flows as messages of XP (docs/xp.md): each packet is sent once, none is acknowledged, and a message
 * ends with what has come.
 *
 * All flows from one host to another are messages of one queue pair, in the order of their start. The sender
 * sends one after the other. For the receiver a message ends at its last packet, at the first packet of a
 * later one (preemption), or at its deadline, which counts from its start or the end of the one before,
 * whichever is later. A sender that is not done at the deadline sends no more of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TRANSPORT_XP_H
#define LH_NETSIM_TRANSPORT_XP_H

#include "netsim/transport/transport.h"

/* Whether the flow may send now; else it will when the one before it is sent. */
bool netsim_xp_start(struct netsim_transport *transport, uint32_t flow);
/* The flow has sent its last packet. */
void netsim_xp_on_sent(struct netsim_transport *transport, uint32_t flow);
/* A packet of the flow arrived: ends those before it. False: it is late, its flow has ended. */
bool netsim_xp_on_arrival(struct netsim_transport *transport, uint32_t flow);
/* The flow's last packet arrived. */
void netsim_xp_on_last(struct netsim_transport *transport, uint32_t flow);
/* Whether the flow's host may send another one. */
bool netsim_xp_on_deadline_expired(struct netsim_transport *transport, uint32_t flow);

#endif
