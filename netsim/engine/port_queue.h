/*
 * port_queue.h - the queues in front of a link: one of each priority, and one of signals, which go first.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_ENGINE_PORT_QUEUE_H
#define LH_NETSIM_ENGINE_PORT_QUEUE_H

#include "netsim/engine/network.h"

/* Appends a packet to the queue of its priority. */
void netsim_queue_append(struct netsim_network *network, uint32_t port, uint32_t packet);
/* Appends a pause, resume or credit to the queue of signals, which is then not empty. */
void netsim_queue_append_urgent(struct netsim_network *network, uint32_t port, uint32_t packet);
uint32_t netsim_queue_take_urgent(struct netsim_network *network, uint32_t port);

/* The port stops sending that priority, or sends it again; it is paused already, or not, all the same. */
void netsim_queue_pause(struct netsim_network *network, uint32_t port, uint8_t priority);
void netsim_queue_resume(struct netsim_network *network, uint32_t port, uint8_t priority);

/* Bit p: something of priority p is queued, and may leave. */
static inline unsigned netsim_queue_ready(const struct netsim_port *port)
{
    return port->ready & (unsigned)~(port->paused | port->stalled);
}

/* The highest priority of a mask that is not 0. */
static inline unsigned netsim_queue_highest(unsigned ready)
{
    return 31u - (unsigned)__builtin_clz(ready);
}

/* The first packet of a queue that is not empty. */
static inline uint32_t netsim_queue_take(struct netsim_network *network, struct netsim_port *port,
                                         unsigned priority)
{
    uint32_t packet = port->first[priority];
    struct netsim_packet *taken = &network->pool.packets[packet];
    port->first[priority] = taken->next;
    if (taken->next == NETSIM_NO_PACKET) {
        port->last[priority] = NETSIM_NO_PACKET;
        port->ready &= (uint8_t) ~(1u << priority);
    } else {
        __builtin_prefetch(&network->pool.packets[taken->next]);
    }
    port->queue_bytes[priority] -= taken->wire_bytes;
    port->queued_bytes -= taken->wire_bytes;
    return packet;
}

#endif
