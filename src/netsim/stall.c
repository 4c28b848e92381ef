/*
 * stall.c - a run in which nothing will ever move again, though there are timers.
 *
 * Where nothing is said anew a deadlock ends by itself: no event is left. What says again and again that a
 * full queue may not be sent to, or repeats a timeout behind a port that is stopped for ever, goes on. So a
 * run is over when for very many events no packet of a flow was sent by anyone, none is on a wire, and no
 * event is pending that could change that.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/network.h"

/* A signal gets through within far fewer, though nine of ten are lost in bursts of thousands. */
#define STALL_EVENTS ((uint64_t)1 << 20)

/* Rounds: signals on the wire before the first packet. */
static bool has_packets(const struct netsim *net, uint32_t port)
{
    uint32_t packet = net->ports[port].wire_first;
    while (packet != NETSIM_NO_PACKET && netsim_is_control(&net->pool.packets[packet]))
        packet = net->pool.packets[packet].next;
    return packet != NETSIM_NO_PACKET || net->more[port].overtakers != NETSIM_NO_PACKET;
}

static bool any_pending(const struct netsim *net, uint32_t first, uint32_t end)
{
    uint32_t event = first;
    while (event < end && !netsim_event_pending(&net->events, event))
        event++;
    return event < end;
}

/* Paces, the next flow, and timeouts when they are counted. */
static bool something_comes(const struct netsim *net)
{
    uint32_t first = net->transport.retries != 0 ? net->first_timer_event : net->first_pace_event;
    if (any_pending(net, first, net->start_event + 1) || net->now_ps < net->mute_until_ps)
        return true;
    for (uint32_t port = 0; port < net->ports_count; port++)
        if (has_packets(net, port))
            return true;
    return false;
}

/* What is said now is heard, and answered, within that. */
static netsim_time longest_answer_ps(const struct netsim *net)
{
    netsim_time longest_ps = 0;
    for (uint32_t port = 0; port < net->ports_count; port++) {
        netsim_time delay_ps = net->ports[port].delay_ps + netsim_drift_most(&net->more[port].drift);
        longest_ps = delay_ps > longest_ps ? delay_ps : longest_ps;
    }
    return 2 * longest_ps;
}

static uint64_t count_moves(const struct netsim *net)
{
    uint64_t sum = 0;
    for (uint32_t port = 0; port < net->ports_count; port++)
        sum += net->ports[port].sent_packets;
    return sum - net->urgent_packets;
}

bool netsim_is_stalled(struct netsim *net)
{
    if (net->runs_on || net->totals.events - net->stall.events < STALL_EVENTS)
        return false;
    uint64_t moves = count_moves(net);
    if (moves == net->stall.moves && !something_comes(net))
        return net->now_ps - net->stall.since_ps > longest_answer_ps(net);
    net->stall.events = net->totals.events;
    net->stall.since_ps = net->now_ps;
    net->stall.moves = moves;
    return false;
}
