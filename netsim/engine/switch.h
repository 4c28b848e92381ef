/*
 * switch.h - a switch: one buffer that all ports share, accounted by the link and priority by which a
 * packet came in; queues at its ports.
 *
 * Store and forward: a packet is here when its last bit is. It occupies the buffer from then until its first
 * bit leaves.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_ENGINE_SWITCH_H
#define LH_NETSIM_ENGINE_SWITCH_H

#include "netsim/engine/network.h"

/* What a switch does with a packet; the caller carries it out. */
enum netsim_arrival {
    NETSIM_ARRIVAL_ADMITTED, /* to be queued at the port */
    NETSIM_ARRIVAL_REPORTED, /* the same; before that flow control of the link takes the arrival */
    NETSIM_ARRIVAL_REFUSED,  /* the buffer or the queue of the port is full */
    NETSIM_ARRIVAL_UNROUTABLE,
    NETSIM_ARRIVAL_CORRUPTED, /* its frame check sequence is wrong */
};

/* A packet arrived by that link. Sets *out but for corrupted ones. */
enum netsim_arrival netsim_switch_on_arrival(struct netsim_network *network, uint32_t link, uint32_t packet,
                                             uint32_t *out);
/* A packet leaves by that port: its buffer is free. May mark it. True: flow control of the link by which it
 * came takes the departure. */
bool netsim_switch_on_departure(struct netsim_network *network, uint32_t port,
                                struct netsim_packet *packet);
/* The port that a flow's packets take when they are not sprayed; NETSIM_NO_PORT: none. */
uint32_t netsim_switch_flow_port(const struct netsim_switch *node, uint32_t destination, uint32_t entropy);

#endif
