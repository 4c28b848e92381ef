/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/transport/netsim_transport.h"

#include <stdbool.h>
#include <string.h>

#include "netsim/base/flow_list.h"
#include "netsim/base/netsim_time.h"
#include "netsim/transport/flow_controller.h"
#include "netsim/transport/netsim_flows.h"

/* ---- transport ------------------------------------------------------------------------------------- */

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

/* ---- queue pair ------------------------------------------------------------------------------------ */

/*
 * Messages are linked in the order of their start. Those that are over for the sender, and all before them,
 * are taken off the front: pair_before of the oldest that is not is NETSIM_NO_FLOW. So a walk towards it
 * passes what is in flight, no more.
 */

static bool is_over(const struct netsim_flow *flow)
{
    return flow->done_ps != NETSIM_NEVER || flow->sender.failed;
}

static bool is_sent(const struct netsim_sender *sender)
{
    return sender->next == sender->packets || sender->failed;
}

static bool has_come(const struct netsim_flow *flow)
{
    return flow->received_ps != NETSIM_NEVER || flow->sender.failed;
}

/* ---- the sender -------------------------------------------------------------------------------------- */

void netsim_queue_pair_add(struct netsim_transport *transport, uint32_t number)
{
    struct netsim_flow *flow = &transport->flows[number];
    struct netsim_sender *sender = &flow->sender;
    flow->pair_before = flow->pair_after = NETSIM_NO_FLOW;
    if (!transport->config.one_queue_pair)
        return;
    size_t pair = (size_t)sender->source * transport->network->hosts_count + sender->destination;
    uint32_t *last = &transport->last_of_pair[pair];
    if (*last != 0) {
        struct netsim_flow *before = &transport->flows[*last - 1];
        sender->entropy = before->sender.entropy;
        before->pair_after = number;
        flow->pair_before = *last - 1;
        if (is_over(before) && before->pair_before == NETSIM_NO_FLOW)
            flow->pair_before = NETSIM_NO_FLOW;
    }
    *last = number + 1;
}

bool netsim_queue_pair_has_room(const struct netsim_transport *transport, uint32_t number)
{
    const struct netsim_flow *flow = &transport->flows[number];
    uint64_t in_flight = 0;
    while (transport->config.one_queue_pair && flow->pair_before != NETSIM_NO_FLOW) {
        in_flight += flow->sender.next;
        flow = &transport->flows[flow->pair_before];
        if (!is_sent(&flow->sender))
            return false;
    }
    in_flight += flow->sender.next - flow->sender.acknowledged;
    return in_flight < transport->flows[number].sender.window_packets;
}

bool netsim_queue_pair_has_few(const struct netsim_transport *transport, uint32_t number, uint32_t packets)
{
    const struct netsim_flow *flow = &transport->flows[number];
    uint64_t in_flight = flow->sender.next - flow->sender.acknowledged;
    while (in_flight <= packets && flow->pair_after != NETSIM_NO_FLOW) {
        flow = &transport->flows[flow->pair_after];
        if (flow->sender.next == 0)
            break;
        in_flight += flow->sender.next;
    }
    return in_flight <= packets;
}

uint32_t netsim_queue_pair_unsent(const struct netsim_transport *transport, uint32_t number)
{
    while (number != NETSIM_NO_FLOW && is_sent(&transport->flows[number].sender))
        number = transport->flows[number].pair_after;
    return number;
}

void netsim_queue_pair_go_back(struct netsim_transport *transport, uint32_t number)
{
    while ((number = transport->flows[number].pair_after) != NETSIM_NO_FLOW) {
        struct netsim_sender *sender = &transport->flows[number].sender;
        if (sender->next == sender->acknowledged)
            return; /* nor is anything of those behind it in flight */
        sender->next = sender->acknowledged;
    }
}

void netsim_queue_pair_on_acknowledged(struct netsim_transport *transport, uint32_t number)
{
    while (number != NETSIM_NO_FLOW && transport->flows[number].pair_before == NETSIM_NO_FLOW) {
        struct netsim_flow *flow = &transport->flows[number];
        if (!is_over(flow)) {
            if (flow->sender.acknowledged != flow->sender.packets)
                return;
            netsim_flow_done(transport, number, transport->network->now_ps);
        }
        number = flow->pair_after;
        if (number != NETSIM_NO_FLOW)
            transport->flows[number].pair_before = NETSIM_NO_FLOW;
    }
}

/* ---- the receiver ------------------------------------------------------------------------------------ */

uint32_t netsim_queue_pair_missing(const struct netsim_transport *transport, uint32_t number)
{
    uint32_t before;
    while ((before = transport->flows[number].pair_before) != NETSIM_NO_FLOW &&
           !has_come(&transport->flows[before]))
        number = before;
    return number;
}

void netsim_queue_pair_on_whole(struct netsim_transport *transport, uint32_t number)
{
    if (netsim_queue_pair_missing(transport, number) != number)
        return;
    while (number != NETSIM_NO_FLOW) {
        struct netsim_flow *flow = &transport->flows[number];
        if (!has_come(flow)) {
            if (flow->receiver.expected != flow->sender.packets)
                return;
            netsim_flow_received(transport, number, transport->network->now_ps);
        }
        number = flow->pair_after;
    }
}

/* ---- xp -------------------------------------------------------------------------------------------- */

/*
 * A timer a flow: its deadline, pending from its turn on until it ends. Flows of a pair have their turns, and
 * end, in the order of their start.
 */

static bool has_ended(const struct netsim_transport *transport, uint32_t flow)
{
    return transport->flows[flow].done_ps != NETSIM_NEVER;
}

static bool xp_is_sent(const struct netsim_sender *sender)
{
    return sender->next == sender->packets;
}

#define DEADLINE_PS (10 * NETSIM_PS_PER_MS)

/* One that is shorter than the path would end each message before a byte of it can come. */
static netsim_time deadline_ps(const struct netsim_transport *transport, uint32_t flow)
{
    netsim_time alone_ps = transport->flows[flow].ideal_ps;
    if (transport->config.deadline_ps != NETSIM_NEVER)
        return transport->config.deadline_ps;
    return 2 * alone_ps > DEADLINE_PS ? 2 * alone_ps : DEADLINE_PS;
}

static void begin_turn(struct netsim_transport *transport, uint32_t flow)
{
    netsim_event_schedule(&transport->network->events, transport->first_timer_event + flow,
                          transport->network->now_ps + deadline_ps(transport, flow));
}

static void end(struct netsim_transport *transport, uint32_t number)
{
    struct netsim_event_queue *events = &transport->network->events;
    uint32_t after = transport->flows[number].pair_after;
    assert(!has_ended(transport, number));
    if (netsim_event_pending(events, transport->first_timer_event + number))
        netsim_event_cancel(events, transport->first_timer_event + number);
    netsim_flow_received(transport, number, transport->network->now_ps);
    netsim_flow_done(transport, number, transport->network->now_ps);
    if (after != NETSIM_NO_FLOW)
        begin_turn(transport, after);
}

bool netsim_xp_start(struct netsim_transport *transport, uint32_t number)
{
    struct netsim_flow *flow = &transport->flows[number];
    const struct netsim_sender *sender = &flow->sender;
    uint32_t *last =
        &transport
             ->last_of_pair[(size_t)sender->source * transport->network->hosts_count + sender->destination];
    uint32_t before = *last == 0 ? NETSIM_NO_FLOW : *last - 1;
    *last = number + 1;
    flow->pair_before = before;
    flow->pair_after = NETSIM_NO_FLOW;
    flow->missing_bytes = flow->bytes;
    if (before != NETSIM_NO_FLOW)
        transport->flows[before].pair_after = number;
    if (before == NETSIM_NO_FLOW || has_ended(transport, before))
        begin_turn(transport, number);
    return before == NETSIM_NO_FLOW || xp_is_sent(&transport->flows[before].sender);
}

void netsim_xp_on_sent(struct netsim_transport *transport, uint32_t number)
{
    assert(xp_is_sent(&transport->flows[number].sender));
    if (transport->flows[number].pair_after != NETSIM_NO_FLOW)
        netsim_flow_ring_add(transport, transport->flows[number].pair_after);
}

bool netsim_xp_on_arrival(struct netsim_transport *transport, uint32_t number)
{
    const struct netsim_flow *flows = transport->flows;
    uint32_t first = number;
    if (has_ended(transport, number))
        return false;
    while (flows[first].pair_before != NETSIM_NO_FLOW && !has_ended(transport, flows[first].pair_before))
        first = flows[first].pair_before;
    for (; first != number; first = flows[first].pair_after)
        end(transport, first);
    return true;
}

void netsim_xp_on_last(struct netsim_transport *transport, uint32_t flow)
{
    end(transport, flow);
}

bool netsim_xp_on_deadline_expired(struct netsim_transport *transport, uint32_t number)
{
    struct netsim_sender *sender = &transport->flows[number].sender;
    bool was_sent = xp_is_sent(sender);
    transport->network->totals.timeouts++;
    sender->timeouts++;
    sender->next = sender->packets;
    end(transport, number);
    if (!was_sent)
        netsim_xp_on_sent(transport, number);
    return !was_sent;
}

/* ---- starts ---------------------------------------------------------------------------------------- */

/* ---- the heap ---------------------------------------------------------------------------------------- */

static bool is_before(const struct netsim_start *one, const struct netsim_start *other)
{
    return one->at_ps != other->at_ps ? one->at_ps < other->at_ps : one->node < other->node;
}

static void push(struct netsim_starts *starts, uint32_t node, netsim_time at_ps)
{
    const struct netsim_start start = {at_ps, node};
    uint32_t place = starts->ready_count++;
    assert(starts->ready_count <= netsim_dependencies_nodes(&starts->list->dependencies));
    for (; place > 0 && is_before(&start, &starts->ready[(place - 1) / 2]); place = (place - 1) / 2)
        starts->ready[place] = starts->ready[(place - 1) / 2];
    starts->ready[place] = start;
    starts->changed = true;
}

static uint32_t pop(struct netsim_starts *starts)
{
    uint32_t node = starts->ready[0].node;
    const struct netsim_start last = starts->ready[--starts->ready_count];
    uint32_t place = 0;
    for (uint32_t child = 1; child < starts->ready_count; child = 2 * place + 1) {
        if (child + 1 < starts->ready_count && is_before(&starts->ready[child + 1], &starts->ready[child]))
            child++;
        if (!is_before(&starts->ready[child], &last))
            break;
        starts->ready[place] = starts->ready[child];
        place = child;
    }
    starts->ready[place] = last;
    return node;
}

/* ---- nodes ------------------------------------------------------------------------------------------- */

/* Tasks are the nodes behind the flows that wait, in the graph, and behind all flows, outside. */
static uint32_t graph_node(const struct netsim_starts *starts, uint32_t node)
{
    const struct netsim_flow_list *list = starts->list;
    return node < list->dependents ? node : node - list->count + list->dependents;
}

static uint32_t node_of(const struct netsim_starts *starts, uint32_t graph_node)
{
    const struct netsim_flow_list *list = starts->list;
    return graph_node < list->dependents ? graph_node : graph_node - list->dependents + list->count;
}

static netsim_time span_ps(const struct netsim_starts *starts, uint32_t graph_node)
{
    const struct netsim_dependencies *dependencies = &starts->list->dependencies;
    return graph_node < dependencies->flows ? starts->list->flows[graph_node].start_ps
                                            : dependencies->spans_ps[graph_node - dependencies->flows];
}

void netsim_starts_init(struct netsim_starts *starts, const struct netsim_flow_list *list,
                        struct netsim_arena *arena)
{
    const struct netsim_dependencies *dependencies = &list->dependencies;
    uint32_t nodes = netsim_dependencies_nodes(dependencies);
    assert(dependencies->flows == list->dependents && list->dependents <= list->count);
    *starts = (struct netsim_starts){.list = list, .next_timed = list->dependents};
    starts->waits = netsim_arena_take(arena, nodes, sizeof *starts->waits);
    starts->ready = netsim_arena_take(arena, nodes, sizeof *starts->ready);
    if (arena->base == NULL || nodes == 0)
        return;
    memcpy(starts->waits, dependencies->waits, nodes * sizeof *starts->waits);
    for (uint32_t node = 0; node < nodes; node++) {
        if (starts->waits[node] == 0)
            push(starts, node_of(starts, node), span_ps(starts, node));
    }
}

static netsim_time timed_ps(const struct netsim_starts *starts)
{
    uint32_t next = starts->next_timed;
    return next < starts->list->count ? starts->list->flows[next].start_ps : NETSIM_NEVER;
}

static netsim_time ready_ps(const struct netsim_starts *starts)
{
    return starts->ready_count > 0 ? starts->ready[0].at_ps : NETSIM_NEVER;
}

netsim_time netsim_starts_next_ps(const struct netsim_starts *starts)
{
    return ready_ps(starts) < timed_ps(starts) ? ready_ps(starts) : timed_ps(starts);
}

uint32_t netsim_starts_take(struct netsim_starts *starts, netsim_time now_ps)
{
    netsim_time next_ps = netsim_starts_next_ps(starts);
    if (next_ps > now_ps)
        return NETSIM_NO_NODE;
    if (next_ps == timed_ps(starts))
        return starts->next_timed++;
    return pop(starts);
}

void netsim_starts_release(struct netsim_starts *starts, uint32_t node, netsim_time now_ps)
{
    const struct netsim_dependencies *dependencies = &starts->list->dependencies;
    if (!netsim_starts_is_task(starts, node) && node >= starts->list->dependents)
        return;
    uint32_t from = graph_node(starts, node);
    for (uint32_t i = dependencies->first[from]; i < dependencies->first[from + 1]; i++) {
        uint32_t after = dependencies->after[i];
        assert(starts->waits[after] > 0);
        if (--starts->waits[after] == 0)
            push(starts, node_of(starts, after), now_ps + span_ps(starts, after));
    }
}
