/*
 * port_queue.c - see port_queue.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/engine/port_queue.h"

void netsim_queue_append(struct netsim_network *network, uint32_t number, uint32_t packet)
{
    struct netsim_port *port = &network->ports[number];
    struct netsim_packet *queued = &network->pool.packets[packet];
    unsigned priority = queued->priority;
    queued->next = NETSIM_NO_PACKET;
    if (port->last[priority] == NETSIM_NO_PACKET)
        port->first[priority] = packet;
    else
        network->pool.packets[port->last[priority]].next = packet;
    port->last[priority] = packet;
    port->ready |= (uint8_t)(1u << priority);
    port->queue_bytes[priority] += queued->wire_bytes;
    port->queued_bytes += queued->wire_bytes;
    if (port->queued_bytes > port->queued_max_bytes)
        port->queued_max_bytes = port->queued_bytes;
}

void netsim_queue_append_urgent(struct netsim_network *network, uint32_t number, uint32_t packet)
{
    struct netsim_port *port = &network->ports[number];
    network->pool.packets[packet].next = NETSIM_NO_PACKET;
    if (port->urgent_last == NETSIM_NO_PACKET)
        port->urgent_first = packet;
    else
        network->pool.packets[port->urgent_last].next = packet;
    port->urgent_last = packet;
}

uint32_t netsim_queue_take_urgent(struct netsim_network *network, uint32_t number)
{
    struct netsim_port *port = &network->ports[number];
    uint32_t packet = port->urgent_first;
    network->urgent_packets++;
    port->urgent_first = network->pool.packets[packet].next;
    if (port->urgent_first == NETSIM_NO_PACKET)
        port->urgent_last = NETSIM_NO_PACKET;
    return packet;
}

void netsim_queue_pause(struct netsim_network *network, uint32_t number, uint8_t priority)
{
    struct netsim_port *port = &network->ports[number];
    if (port->paused == 0)
        network->more[number].paused_since_ps = network->now_ps;
    port->paused |= (uint8_t)(1u << priority);
}

void netsim_queue_resume(struct netsim_network *network, uint32_t number, uint8_t priority)
{
    struct netsim_port *port = &network->ports[number];
    struct netsim_port_more *more = &network->more[number];
    uint8_t bit = (uint8_t)(1u << priority);
    if (port->paused == bit)
        more->paused_ps += network->now_ps - more->paused_since_ps;
    port->paused &= (uint8_t)~bit;
}
