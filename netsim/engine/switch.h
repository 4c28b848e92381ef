/*
 * switch.h - a switch: one buffer shared by all ports, accounted by link and priority of arrival; its queues
 * and wires.
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

/* ---- wire ------------------------------------------------------------------------------------------ */

/* The packets on a wire, and the event of the next arrival. */

/* A packet whose arrive_ps is not before that of any packet on the wire. */
void netsim_wire_append(struct netsim_network *network, uint32_t port, uint32_t packet);
/* A packet with any arrive_ps. */
void netsim_wire_insert(struct netsim_network *network, uint32_t port, uint32_t packet);
/* The packet that arrives now; schedules the next arrival. */
uint32_t netsim_wire_take(struct netsim_network *network, uint32_t port);

/* ---- launch ---------------------------------------------------------------------------------------- */

/* From a transmitter onto the wire: when the packet arrives, or that the link loses it. */

/* Of links that lose, watch or drift; for netsim_launch() alone. */
bool netsim_launch_specially(struct netsim_network *network, uint32_t port, uint32_t packet);

/* Occupies the transmitter, which is idle, from now on. False: the packet is lost, and still the caller's. */
static inline bool netsim_launch(struct netsim_network *network, uint32_t number, uint32_t packet)
{
    struct netsim_port *port = &network->ports[number];
    struct netsim_packet *launched = &network->pool.packets[packet];
    port->free_ps = network->now_ps + netsim_serialization_ps(port->ps_per_byte_q16, launched->wire_bytes);
    port->sent_bytes += launched->wire_bytes;
    port->sent_packets++;
    if (launched->kind == LH_NETSIM_DATA)
        port->sent_payload_bytes += launched->wire_bytes - network->header_bytes;
    launched->arrive_ps = port->free_ps + port->delay_ps;
    if ((port->flags & (NETSIM_PORT_FAULTY | NETSIM_PORT_WATCHED | NETSIM_PORT_DRIFTS)) != 0)
        return netsim_launch_specially(network, number, packet);
    netsim_wire_append(network, number, packet);
    return true;
}

#endif
