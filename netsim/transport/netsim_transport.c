/*
 * transport.c - see transport.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/transport/transport.h"

#include <string.h>

#include "netsim/transport/controller.h"
#include "netsim/transport/flow_rate.h"

static uint64_t packets_of(const struct netsim_transport *transport, uint64_t bytes)
{
    return (bytes + transport->config.payload_bytes - 1) / transport->config.payload_bytes;
}

static void flow_init(struct netsim_transport *transport, uint32_t number,
                      const struct netsim_flow_request *request, struct lh_prng *entropy, uint64_t **bits)
{
    struct netsim_flow *flow = &transport->flows[number];
    uint32_t packets = (uint32_t)packets_of(transport, request->bytes);
    memset(flow, 0, sizeof *flow);
    flow->bytes = request->bytes;
    flow->start_ps = request->start_ps;
    flow->received_ps = NETSIM_NEVER;
    flow->done_ps = NETSIM_NEVER;
    flow->sender.source = request->source;
    flow->sender.destination = request->destination;
    flow->sender.packets = packets;
    flow->sender.last_bytes =
        (uint32_t)(request->bytes - (uint64_t)(packets - 1) * transport->config.payload_bytes);
    flow->sender.entropy = (uint32_t)lh_prng_next(entropy);
    flow->sender.taken = *bits;
    *bits += (packets + 63) / 64;
    flow->receiver.arrived = *bits;
    *bits += (packets + 63) / 64;
}

void netsim_transport_init(struct netsim_transport *transport, struct netsim_network *network,
                           const struct netsim_config *config, const struct netsim_flow_list *list,
                           const struct lh_prng *prng, struct netsim_arena *arena)
{
    struct lh_prng entropy = lh_prng_fork(prng, NETSIM_COMPONENT_ENTROPY);
    uint64_t words = 0;
    *transport = (struct netsim_transport){.network = network,
                                           .config = config->transport,
                                           .flows_count = list->count,
                                           .unfinished = list->count};
    if (config->transport.kind == NETSIM_XP)
        transport->config.ack_bytes = 0;
    if (config->transport.kind == NETSIM_XP || config->transport.kind == NETSIM_LONGHAUL)
        transport->config.one_queue_pair = false; /* of their own kind */
    netsim_flow_rate_setup(transport);
    for (uint32_t i = 0; i < list->count; i++)
        words += 2 * ((packets_of(transport, list->flows[i].bytes) + 63) / 64);
    network->totals.flows = list->count;
    netsim_starts_init(&transport->starts, list, arena);
    transport->rings = netsim_arena_take(arena, network->hosts_count, sizeof *transport->rings);
    transport->flows = netsim_arena_take(arena, list->count, sizeof *transport->flows);
    uint64_t *bits = netsim_arena_take(arena, words, sizeof *bits);
    if (config->transport.congestion.kind == NETSIM_CONGESTION_DCQCN)
        transport->rates = netsim_arena_take(arena, list->count, sizeof *transport->rates);
    if (config->transport.congestion.kind == NETSIM_CONGESTION_CONTROLLER &&
        config->transport.kind != NETSIM_LONGHAUL)
        netsim_controller_setup(transport, list, config->packets_max, arena);
    if (config->transport.kind == NETSIM_XP || transport->config.one_queue_pair)
        transport->last_of_pair = netsim_arena_take(
            arena, (size_t)network->hosts_count * network->hosts_count, sizeof *transport->last_of_pair);
    if (arena->base == NULL)
        return;
    for (uint32_t i = 0; i < network->hosts_count; i++)
        transport->rings[i] = (struct netsim_flow_ring){NETSIM_NO_FLOW, NETSIM_NO_FLOW};
    for (uint32_t i = 0; i < list->count; i++)
        flow_init(transport, i, &list->flows[i], &entropy, &bits);
}

void netsim_flow_received(struct netsim_transport *transport, uint32_t flow, netsim_time at_ps)
{
    assert(transport->flows[flow].received_ps == NETSIM_NEVER);
    transport->flows[flow].received_ps = at_ps;
    netsim_starts_release(&transport->starts, flow, at_ps);
}

void netsim_flow_done(struct netsim_transport *transport, uint32_t flow, netsim_time at_ps)
{
    assert(transport->flows[flow].done_ps == NETSIM_NEVER);
    transport->flows[flow].done_ps = at_ps;
    transport->unfinished--;
    transport->network->totals.flows_done++;
}

void netsim_flow_failed(struct netsim_transport *transport, uint32_t flow)
{
    transport->flows[flow].sender.failed = 1;
    transport->unfinished--;
    transport->network->totals.flows_failed++;
    if (transport->flows[flow].received_ps == NETSIM_NEVER)
        netsim_starts_release(&transport->starts, flow, transport->network->now_ps);
}

uint32_t netsim_transport_number_events(struct netsim_transport *transport, uint32_t first)
{
    transport->first_timer_event = first;
    bool timers = transport->config.ack_bytes != 0 || transport->config.kind == NETSIM_XP;
    first += timers ? transport->flows_count : 0;
    first = netsim_controller_number_events(transport, first);
    transport->first_pace_event = first;
    first += transport->paced ? transport->flows_count : 0;
    transport->start_event = first;
    return first + 1;
}
