/*
 * deadlock.c - see deadlock.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/engine/deadlock.h"

/* A signal gets through within far fewer, though nine of ten are lost in bursts of thousands. */
#define DEADLOCK_EVENTS ((uint64_t)1 << 20)

/* Rounds: signals on the wire before the first packet. */
static bool has_packets(const struct netsim_network *network, uint32_t port)
{
    uint32_t packet = network->ports[port].wire_first;
    while (packet != NETSIM_NO_PACKET && netsim_is_control(&network->pool.packets[packet]))
        packet = network->pool.packets[packet].next;
    return packet != NETSIM_NO_PACKET || network->more[port].overtakers != NETSIM_NO_PACKET;
}

static bool any_pending(const struct netsim_network *network, uint32_t first, uint32_t end)
{
    uint32_t event = first;
    while (event < end && !netsim_event_pending(&network->events, event))
        event++;
    return event < end;
}

static bool something_comes(const struct netsim_deadlock *deadlock, const struct netsim_network *network)
{
    if (any_pending(network, deadlock->first_event, deadlock->end_event) ||
        network->now_ps < deadlock->mute_until_ps)
        return true;
    for (uint32_t port = 0; port < network->ports_count; port++)
        if (has_packets(network, port))
            return true;
    return false;
}

/* A signal that is sent now is received, and answered, within that. */
static netsim_time longest_answer_ps(const struct netsim_network *network)
{
    netsim_time longest_ps = 0;
    for (uint32_t port = 0; port < network->ports_count; port++) {
        netsim_time delay_ps =
            network->ports[port].delay_ps + netsim_drift_most(&network->more[port].drift);
        longest_ps = delay_ps > longest_ps ? delay_ps : longest_ps;
    }
    return 2 * longest_ps;
}

static uint64_t count_moves(const struct netsim_network *network)
{
    uint64_t sum = 0;
    for (uint32_t port = 0; port < network->ports_count; port++)
        sum += network->ports[port].sent_packets;
    return sum - network->urgent_packets;
}

bool netsim_deadlock_found(struct netsim_deadlock *deadlock, const struct netsim_network *network)
{
    if (network->totals.events - deadlock->events < DEADLOCK_EVENTS)
        return false;
    uint64_t moves = count_moves(network);
    if (moves == deadlock->moves && !something_comes(deadlock, network))
        return network->now_ps - deadlock->since_ps > longest_answer_ps(network);
    deadlock->events = network->totals.events;
    deadlock->since_ps = network->now_ps;
    deadlock->moves = moves;
    return false;
}
