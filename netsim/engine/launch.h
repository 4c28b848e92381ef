/*
 * launch.h - from a transmitter onto the wire: when the packet arrives, or that the link loses it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_ENGINE_LAUNCH_H
#define LH_NETSIM_ENGINE_LAUNCH_H

#include "netsim/engine/wire.h"

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
