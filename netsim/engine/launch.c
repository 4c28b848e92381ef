/*
 * launch.c - see launch.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/engine/launch.h"

/* ---- faults ------------------------------------------------------------------------------------------ */

static void copy_arrives(struct netsim_network *network, uint32_t number,
                         const struct netsim_packet *original, netsim_time arrive_ps)
{
    uint32_t copy = netsim_packet_new(network);
    if (copy == NETSIM_NO_PACKET)
        return;
    network->totals.duplicated_packets++;
    if ((original->flags & NETSIM_CORRUPTED) != 0)
        network->totals.corrupted_packets++;
    network->pool.packets[copy] = *original;
    network->pool.packets[copy].flags |= NETSIM_COPY;
    network->pool.packets[copy].arrive_ps = arrive_ps;
    netsim_wire_insert(network, number, copy);
}

/* Faults spare what would stop a link for ever: a pause that lasts until the resume, this resume, a credit.
 * They do not spare a pause that ends by itself. */
static bool is_spared(const struct netsim_network *network, uint32_t number,
                      const struct netsim_packet *packet)
{
    bool bifrost = network->ports[network->ports[number].reverse].control == NETSIM_CONTROL_BIFROST;
    return netsim_is_control(packet) && !bifrost &&
           (packet->kind != LH_NETSIM_PAUSE || packet->cookie == NETSIM_HOLD);
}

/* Signals have losses of their own, which spare none. */
static bool is_lost_signal(struct netsim_network *network, uint32_t number,
                           const struct netsim_packet *packet)
{
    struct netsim_signal_loss *signals = network->more[number].signals;
    return signals != NULL && netsim_is_control(packet) && netsim_signal_is_lost(signals, network->now_ps);
}

static void count_lost(struct netsim_network *network, uint32_t number, const struct netsim_packet *packet)
{
    network->more[number].lost_packets++;
    network->totals.lost_packets++;
    network->totals.signals_lost += netsim_is_control(packet);
}

/* The link's faults decide what becomes of a packet that would arrive at arrive_ps. They think in
 * nanoseconds, so what they add to the delay is whole nanoseconds. */
static bool launch_faulty(struct netsim_network *network, uint32_t number, uint32_t packet,
                          netsim_time arrive_ps)
{
    struct netsim_port_more *more = &network->more[number];
    struct netsim_packet *launched = &network->pool.packets[packet];
    if (is_lost_signal(network, number, launched)) {
        network->totals.signals_lost++;
        return false;
    }
    bool spared = is_spared(network, number, launched);
    if (!spared && network->now_ps < more->down_until_ps) {
        count_lost(network, number, launched);
        return false;
    }
    if (more->faults == NULL || spared) {
        netsim_wire_insert(network, number, packet);
        return true;
    }
    lh_time now_ns = network->now_ps / NETSIM_PS_PER_NS;
    lh_time due_ns = now_ns + more->faults->spec.delay_ns;
    struct lh_link_fate fate = lh_link_decide(more->faults, now_ns, launched->wire_bytes);
    if (fate.dropped) {
        count_lost(network, number, launched);
        return false;
    }
    if (fate.corrupted) {
        network->totals.corrupted_packets++;
        launched->flags |= NETSIM_CORRUPTED;
        if (launched->kind == LH_NETSIM_RAW)
            launched->echo = fate.corrupt_bit;
    }
    launched->arrive_ps = arrive_ps + (fate.arrive_ns[0] - due_ns) * NETSIM_PS_PER_NS;
    if (fate.copies == 2 && launched->kind != LH_NETSIM_RAW) /* its cookie can have only one end */
        copy_arrives(network, number, launched,
                     arrive_ps + (fate.arrive_ns[1] - due_ns) * NETSIM_PS_PER_NS);
    netsim_wire_insert(network, number, packet);
    return true;
}

/* ------------------------------------------------------------------------------------------------------ */

static void call_watcher(struct netsim_network *network, uint32_t number,
                         const struct netsim_packet *packet)
{
    const struct lh_netsim_packet seen = {
        .at_ps = network->now_ps,
        .link = number,
        .source = packet->source,
        .destination = packet->destination,
        .flow = packet->flow,
        .sequence = packet->sequence,
        .wire_bytes = packet->wire_bytes,
        .kind = packet->kind,
        .priority = packet->priority,
        .marked = (packet->flags & NETSIM_MARKED) != 0,
        .repeated = (packet->flags & NETSIM_REPEATED) != 0,
        .quanta = packet->kind != LH_NETSIM_PAUSE      ? 0
                  : packet->cookie < LH_PFC_QUANTA_MAX ? (uint16_t)packet->cookie
                                                       : LH_PFC_QUANTA_MAX,
    };
    network->watcher(network->watcher_context, &seen);
}

/* A packet that has begun leaves at the rate at which it began. */
static void change_rate(const struct netsim_network *network, struct netsim_port *port,
                        struct netsim_packet *launched)
{
    const struct netsim_rate_change *change = &network->change;
    if (network->now_ps < change->from_ps || network->now_ps >= change->until_ps)
        return;
    port->free_ps =
        network->now_ps + netsim_serialization_ps(change->ps_per_byte_q16, launched->wire_bytes);
    launched->arrive_ps = port->free_ps + port->delay_ps;
}

bool netsim_launch_specially(struct netsim_network *network, uint32_t number, uint32_t packet)
{
    struct netsim_port *port = &network->ports[number];
    struct netsim_packet *launched = &network->pool.packets[packet];
    if (network->more[number].faults != NULL)
        change_rate(network, port, launched);
    if ((port->flags & NETSIM_PORT_DRIFTS) != 0)
        launched->arrive_ps += netsim_drift_at(&network->more[number].drift, port->free_ps);
    if ((port->flags & NETSIM_PORT_WATCHED) != 0)
        call_watcher(network, number, launched);
    if ((port->flags & NETSIM_PORT_FAULTY) != 0)
        return launch_faulty(network, number, packet, launched->arrive_ps);
    netsim_wire_append(network, number, packet);
    return true;
}
