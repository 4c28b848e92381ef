/*
 * host.h - a host: its flows share one port, which asks for a packet when it is idle, so a host never queues
 * data.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TRANSPORT_HOST_H
#define LH_NETSIM_TRANSPORT_HOST_H

#include "netsim/transport/transport.h"

/* The packet that the host's flows, round robin, send now; NETSIM_NO_PACKET. */
uint32_t netsim_host_packet(struct netsim_transport *transport, uint32_t host);

enum netsim_host_action {
    NETSIM_HOST_TAKES,   /* the packet has ended */
    NETSIM_HOST_SENDS,   /* the same, and a flow of the host may send */
    NETSIM_HOST_ANSWERS, /* the packet has become its acknowledgement, to be queued at the host's port */
};

/* A packet of a flow arrived at its destination. */
enum netsim_host_action netsim_host_on_arrival(struct netsim_transport *transport,
                                               struct netsim_packet *packet);

#endif
