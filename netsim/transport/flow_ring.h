/*
 * flow_ring.h - the flows of a host that may send, in the order in which they will.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TRANSPORT_FLOW_RING_H
#define LH_NETSIM_TRANSPORT_FLOW_RING_H

#include "netsim/transport/transport.h"

/* Adds a flow that is in no ring to that of its source: at its end, or where its number belongs
 * (netsim_flow_list.in_order). */
void netsim_flow_ring_add(struct netsim_transport *transport, uint32_t flow);
/* Takes the first; NETSIM_NO_FLOW: the ring is empty. */
uint32_t netsim_flow_ring_take(struct netsim_transport *transport, uint32_t host);

#endif
