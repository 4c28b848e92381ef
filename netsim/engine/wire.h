/*
 * wire.h - the packets on a wire, and the event of the next arrival.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_ENGINE_WIRE_H
#define LH_NETSIM_ENGINE_WIRE_H

#include "netsim/engine/network.h"

/* A packet whose arrive_ps is not before that of any packet on the wire. */
void netsim_wire_append(struct netsim_network *network, uint32_t port, uint32_t packet);
/* A packet with any arrive_ps. */
void netsim_wire_insert(struct netsim_network *network, uint32_t port, uint32_t packet);
/* The packet that arrives now; schedules the next arrival. */
uint32_t netsim_wire_take(struct netsim_network *network, uint32_t port);

#endif
