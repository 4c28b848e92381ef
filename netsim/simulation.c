/*
 * simulation.c - what is behind the handle of <longhaul/netsim.h>.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <longhaul/connection.h>
#include <longhaul/netsim.h>
#include <longhaul/sim.h>

#include "base/error.h"
#include "base/min_max.h"
#include "netsim/config/config_keys.h"
#include "netsim/fabric/sim_packets.h"
#include "netsim/flowcontrol/link_rules.h"
#include "netsim/protocol/sim_protocol.h"
#include "netsim/run/simulation_run.h"
#include "netsim/topology/topology.h"
#include "netsim/transport/flow_controller.h"
#include "netsim/transport/netsim_transport.h"
#include "netsim/workload/workload.h"

/* ---- simulation ------------------------------------------------------------------------------------ */

/* The public handles: a simulation's memory, and the views of what is in it. */

struct lh_netsim {
    struct netsim net;
    struct netsim_graph graph;
    struct netsim_flow_list flows;
    struct protocol *protocol;     /* transport.kind = longhaul */
    struct netsim_arena arenas[3]; /* of the graph, the list of flows, the network */
};

/* ---- memory ------------------------------------------------------------------------------------------ */

/* Pages that are zero and cost nothing until they are touched: what the packet pool needs. */
static int arena_map(struct netsim_arena *arena, const char *what)
{
    size_t bytes = arena->used_bytes;
    if (bytes == SIZE_MAX)
        return lh_fail(LH_ERANGE, "%s: the simulation exceeds this machine's address space", what);
    void *base = mmap(NULL, bytes > 0 ? bytes : 1, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return lh_fail(LH_ENOMEM, "%s: no %zu bytes of memory (make the topology or the workload smaller)",
                       what, bytes);
    *arena = (struct netsim_arena){.base = (unsigned char *)base, .capacity_bytes = bytes};
    return 0;
}

static void arena_unmap(struct netsim_arena *arena)
{
    if (arena->base != NULL)
        munmap(arena->base, arena->capacity_bytes > 0 ? arena->capacity_bytes : 1);
}

/* ---- life -------------------------------------------------------------------------------------------- */

static int build_graph(struct lh_netsim *simulation, const struct netsim_config *config)
{
    struct netsim_arena *arena = &simulation->arenas[0];
    int result = netsim_topology_build(&config->topology, arena, &simulation->graph);
    if (result == 0)
        result = arena_map(arena, "topology");
    if (result == 0)
        result = netsim_topology_build(&config->topology, arena, &simulation->graph);
    return result;
}

static int build_flows(struct lh_netsim *simulation, const struct netsim_config *config,
                       const struct lh_prng *prng)
{
    struct netsim_arena *arena = &simulation->arenas[1];
    const struct lh_prng own = lh_prng_fork(prng, NETSIM_COMPONENT_WORKLOAD);
    struct netsim_arena scratch = {0};
    int result = netsim_workload_scratch(&config->workload, &simulation->graph, &scratch);
    if (result == 0)
        result = arena_map(&scratch, "workload");
    if (result == 0)
        result = netsim_workload_build(&config->workload, &simulation->graph, &own, scratch.base, arena,
                                       &simulation->flows);
    if (result == 0)
        result = arena_map(arena, "workload");
    if (result == 0)
        result = netsim_workload_build(&config->workload, &simulation->graph, &own, scratch.base, arena,
                                       &simulation->flows);
    arena_unmap(&scratch);
    return result;
}

/* A packet's number is 31 bits, so that sums of two never wrap. */
static int check_flows(const struct lh_netsim *simulation, const struct netsim_config *config)
{
    uint64_t maximum = (uint64_t)config->transport.payload_bytes << 31;
    bool has_pairs = config->transport.kind == NETSIM_XP || config->transport.one_queue_pair;
    if (has_pairs && simulation->graph.hosts > NETSIM_PAIRS_HOSTS_MAX)
        return lh_fail(LH_ERANGE,
                       "the topology has %u hosts: at most %u with transport.kind = xp or "
                       "transport.queue_pair = peer",
                       simulation->graph.hosts, NETSIM_PAIRS_HOSTS_MAX);
    for (uint32_t i = 0; i < simulation->flows.count; i++) {
        uint64_t bytes = simulation->flows.flows[i].bytes;
        if (bytes > maximum)
            return lh_fail(LH_ERANGE,
                           "flow %u of %llu bytes: more than 2^31 packets of transport.payload = %u bytes "
                           "(shorten the flow or lengthen the packets)",
                           i, (unsigned long long)bytes, config->transport.payload_bytes);
    }
    return 0;
}

static int build_network(struct lh_netsim *simulation, const struct netsim_config *config,
                         const struct lh_prng *prng)
{
    struct netsim_arena *arena = &simulation->arenas[2];
    netsim_setup(&simulation->net, config, &simulation->graph, &simulation->flows, prng, arena);
    int result = arena_map(arena, "network");
    if (result == 0)
        netsim_setup(&simulation->net, config, &simulation->graph, &simulation->flows, prng, arena);
    return result;
}

/* The ideal time of a flow is one with the headers that the protocol has. */
static int use_protocol(struct netsim_config *config)
{
    config->transport.header_bytes = PROTOCOL_HEADER_BYTES;
    config->transport.ack_bytes = PROTOCOL_CONTROL_BYTES;
    return protocol_check(config);
}

int lh_netsim_create(const struct lh_netsim_config *config, uint64_t seed, struct lh_netsim **out)
{
    struct netsim_config copy = *netsim_config_values(config);
    const struct netsim_config *values = &copy;
    struct netsim_arena self = {.used_bytes = sizeof(struct lh_netsim)};
    int result = netsim_config_check(values);
    if (result == 0 && values->transport.kind == NETSIM_LONGHAUL)
        result = use_protocol(&copy);
    copy.topology.relays = values->longs.control == NETSIM_LONG_SWING;
    if (result == 0)
        result = arena_map(&self, "simulation");
    if (result != 0)
        return result;
    struct lh_netsim *simulation = (struct lh_netsim *)(void *)self.base;
    struct lh_prng prng;
    lh_prng_seed(&prng, seed);
    result = build_graph(simulation, values);
    if (result == 0)
        result = netsim_control_check(values, &simulation->graph);
    if (result == 0)
        result = build_flows(simulation, values, &prng);
    if (result == 0)
        result = check_flows(simulation, values);
    if (result == 0)
        result = build_network(simulation, values, &prng);
    if (result == 0 && values->transport.kind == NETSIM_LONGHAUL)
        result = protocol_create(&simulation->net, values->schemes, seed, &simulation->protocol);
    if (result != 0) {
        lh_netsim_destroy(simulation);
        return result;
    }
    *out = simulation;
    return 0;
}

void lh_netsim_destroy(struct lh_netsim *simulation)
{
    if (simulation == NULL)
        return;
    protocol_destroy(simulation->protocol);
    for (size_t i = 0; i < sizeof simulation->arenas / sizeof simulation->arenas[0]; i++)
        arena_unmap(&simulation->arenas[i]);
    munmap(simulation, sizeof *simulation);
}

int lh_netsim_run(struct lh_netsim *simulation, uint64_t until_ps, uint64_t events_max)
{
    const struct netsim_network *net = &simulation->net.network;
    /* The protocol's time is in nanoseconds: it goes on to the end of one. */
    uint64_t step_ps = simulation->protocol != NULL ? NETSIM_PS_PER_NS : 1;
    if (until_ps < net->now_ps && net->now_ps - until_ps >= step_ps)
        return lh_fail(LH_EINVAL, "run until %llu ps: it is %llu ps already", (unsigned long long)until_ps,
                       (unsigned long long)net->now_ps);
    return simulation->protocol != NULL ? protocol_run(simulation->protocol, until_ps, events_max)
                                        : netsim_run(&simulation->net, until_ps, events_max);
}

static struct netsim *netsim_of(struct lh_netsim *simulation)
{
    return &simulation->net;
}

/* ---- views ------------------------------------------------------------------------------------------- */

static uint64_t memory_bytes(const struct lh_netsim *simulation)
{
    const struct netsim_network *net = &simulation->net.network;
    uint64_t sum = sizeof *simulation;
    for (size_t i = 0; i < sizeof simulation->arenas / sizeof simulation->arenas[0]; i++)
        sum += simulation->arenas[i].capacity_bytes;
    size_t packet_bytes =
        sizeof(struct netsim_packet) + netsim_controller_packet_bytes(&simulation->net.transport);
    return sum - (uint64_t)(net->pool.capacity - net->pool.fresh) * packet_bytes;
}

void lh_netsim_totals(const struct lh_netsim *simulation, struct lh_netsim_totals *totals)
{
    const struct netsim_network *net = &simulation->net.network;
    *totals = net->totals;
    totals->now_ps = net->now_ps;
    totals->packets_alive = net->pool.alive;
    totals->packets_alive_max = net->pool.alive_max;
    totals->memory_bytes = memory_bytes(simulation);
    totals->hops = 0;
    for (uint32_t p = 0; p < net->ports_count; p++)
        totals->hops += net->ports[p].sent_packets;
    totals->hops -= net->urgent_packets;
}

static uint64_t delivered_bytes(const struct netsim_transport *transport, const struct netsim_flow *flow)
{
    uint64_t packets = (uint64_t)flow->receiver.expected + flow->receiver.out_of_order;
    uint64_t bytes = packets * transport->config.payload_bytes; /* the last one may be shorter */
    if (flow->received_ps != NETSIM_NEVER)
        return flow->bytes - flow->missing_bytes;
    return bytes > flow->bytes ? flow->bytes : bytes;
}

static uint32_t operation_of(const struct netsim_flow_list *list, uint64_t flow)
{
    return list->of_operation != 0 ? (uint32_t)(flow / list->of_operation) : UINT32_MAX;
}

uint64_t lh_netsim_flows_count(const struct lh_netsim *simulation)
{
    return simulation->net.transport.flows_count;
}

int lh_netsim_flow(const struct lh_netsim *simulation, uint64_t number, struct lh_netsim_flow *flow)
{
    const struct netsim_transport *transport = &simulation->net.transport;
    if (number >= transport->flows_count)
        return lh_fail(LH_ERANGE, "flow %llu: there are %u, from 0 on", (unsigned long long)number,
                       transport->flows_count);
    const struct netsim_flow *seen = &transport->flows[number];
    const struct netsim_node *nodes = simulation->graph.nodes;
    *flow = (struct lh_netsim_flow){
        .source = seen->sender.source,
        .destination = seen->sender.destination,
        .bytes = seen->bytes,
        .start_ps = seen->start_ps,
        .received_ps = seen->received_ps,
        .done_ps = seen->done_ps,
        .ideal_ps = seen->ideal_ps,
        .packets = seen->sender.sent_packets,
        .repeated_packets = seen->sender.repeated_packets,
        .timeouts = seen->sender.timeouts,
        .failed = seen->sender.failed != 0,
        .source_site = nodes[seen->sender.source].site,
        .destination_site = nodes[seen->sender.destination].site,
        .delivered_bytes = delivered_bytes(transport, seen),
        .operation = operation_of(&simulation->flows, number),
        .across = nodes[seen->sender.source].site != nodes[seen->sender.destination].site,
    };
    return 0;
}

uint32_t lh_netsim_hosts_count(const struct lh_netsim *simulation)
{
    return simulation->net.network.hosts_count;
}

uint32_t lh_netsim_links_count(const struct lh_netsim *simulation)
{
    return simulation->net.network.ports_count;
}

static int no_link(const struct lh_netsim *simulation, uint32_t number)
{
    return lh_fail(LH_ERANGE, "link %u: there are %u, from 0 on", number,
                   simulation->net.network.ports_count);
}

int lh_netsim_link(const struct lh_netsim *simulation, uint32_t number, struct lh_netsim_link *link)
{
    const struct netsim_network *net = &simulation->net.network;
    if (number >= net->ports_count)
        return no_link(simulation, number);
    const struct netsim_port *port = &net->ports[number];
    const struct netsim_port_more *more = &net->more[number];
    *link = (struct lh_netsim_link){
        .from = simulation->graph.nodes[port->owner].name,
        .to = simulation->graph.nodes[port->far].name,
        .rate_bps = more->rate_bps,
        .delay_ps = port->delay_ps,
        .sent_packets = port->sent_packets,
        .sent_bytes = port->sent_bytes,
        .sent_payload_bytes = port->sent_payload_bytes,
        .queue_bytes = port->queued_bytes,
        .queue_max_bytes = port->queued_max_bytes,
        .dropped_packets = more->dropped_packets,
        .lost_packets = more->lost_packets,
        .marked_packets = more->marked_packets,
        .pauses = more->pauses,
        .held_max_bytes = port->held_max_bytes,
        .paused_ps = more->paused_ps + (port->paused != 0 ? net->now_ps - more->paused_since_ps : 0),
    };
    return 0;
}

int lh_netsim_watch(struct lh_netsim *simulation, uint32_t link, lh_netsim_watcher *watcher, void *context)
{
    struct netsim_network *net = &simulation->net.network;
    if (link != UINT32_MAX && link >= net->ports_count)
        return no_link(simulation, link);
    if (watcher != NULL && simulation->protocol != NULL)
        return lh_fail(LH_EUNSUPPORTED, "packets of transport.kind = longhaul cannot be watched");
    if (watcher != NULL && net->watcher != NULL &&
        (net->watcher != watcher || net->watcher_context != context))
        return lh_fail(LH_EINVAL, "another watcher is set (remove it with NULL first)");
    net->watcher = watcher;
    net->watcher_context = context;
    for (uint32_t p = 0; p < net->ports_count; p++)
        if (watcher == NULL)
            net->ports[p].flags &= (uint8_t)~NETSIM_PORT_WATCHED;
        else if (link == UINT32_MAX || link == p)
            net->ports[p].flags |= NETSIM_PORT_WATCHED;
    return 0;
}

/* ---- sim world ------------------------------------------------------------------------------------- */

/* The public handle of a simulated world: checks what callers inside assert. */

/* Steps of all connections at one moment; past it one of them asks for `now` for ever. */
#define STEPS_MAX 100000u

struct lh_sim_world {
    struct sim_world *inside;
    uint32_t hosts;
    bool has_network;
    bool stopped; /* the network's pool was used up: time does not go on */
};

static int check_network(struct lh_netsim *simulation, uint32_t hosts)
{
    const struct netsim *network = netsim_of(simulation);
    if (network->network.hosts_count < hosts)
        return lh_fail(LH_EINVAL, "simulated world: %u hosts, but the network has %u", hosts,
                       network->network.hosts_count);
    if (network->network.now_ps != 0 || network->runs_on)
        return lh_fail(LH_EINVAL, "simulated world: the network has already run (create another)");
    return 0;
}

int lh_sim_world_create(const struct lh_sim_attr *attr, struct lh_sim_world **out)
{
    uint32_t hosts = attr->hosts;
    if (hosts == 0)
        hosts = attr->network != NULL ? netsim_of(attr->network)->network.hosts_count : 2;
    if (attr->name == NULL)
        return lh_fail(LH_EINVAL, "simulated world: no name");
    if (hosts > LH_SIM_HOSTS_MAX)
        return lh_fail(LH_ERANGE, "simulated world '%s': %u hosts: out of range (1 to %u)", attr->name,
                       hosts, LH_SIM_HOSTS_MAX);
    int result = attr->network == NULL ? 0 : check_network(attr->network, hosts);
    if (result != 0)
        return result;
    struct lh_sim_world *world = malloc(sizeof *world);
    if (world == NULL)
        return lh_fail(LH_ENOMEM, "no memory for simulated world '%s'", attr->name);
    *world = (struct lh_sim_world){.hosts = hosts, .has_network = attr->network != NULL};
    result = sim_world_open(attr->name, hosts, attr->seed, &attr->link, &world->inside);
    if (result != 0) {
        free(world);
        return result;
    }
    if (attr->network != NULL)
        sim_world_set_network(world->inside, netsim_of(attr->network));
    *out = world;
    return 0;
}

void lh_sim_world_destroy(struct lh_sim_world *world)
{
    if (world == NULL)
        return;
    sim_world_destroy(world->inside);
    free(world);
}

lh_time lh_sim_world_now(struct lh_sim_world *world)
{
    return sim_world_now(world->inside);
}

lh_time lh_sim_world_next_event(struct lh_sim_world *world)
{
    return sim_world_next_event(world->inside);
}

int lh_sim_world_advance(struct lh_sim_world *world, lh_time to)
{
    if (to == LH_TIME_NEVER)
        return lh_fail(LH_EINVAL, "advance: LH_TIME_NEVER: invalid time (use a finite one)");
    if (to < sim_world_now(world->inside))
        return lh_fail(LH_EINVAL, "advance to %llu ns: it is %llu ns already", (unsigned long long)to,
                       (unsigned long long)sim_world_now(world->inside));
    if (world->has_network && to >= NETSIM_TIME_MAX / NETSIM_PS_PER_NS)
        return lh_fail(LH_ERANGE,
                       "advance to %llu ns: out of range (a world with a network ends at %llu ns)",
                       (unsigned long long)to, (unsigned long long)(NETSIM_TIME_MAX / NETSIM_PS_PER_NS));
    int result = sim_world_advance(world->inside, world->stopped ? sim_world_now(world->inside) : to);
    world->stopped = result != 0;
    return result;
}

int lh_sim_world_turn(struct lh_sim_world *world, struct lh_connection *const *connections, size_t count,
                      lh_time limit)
{
    lh_time now = sim_world_now(world->inside);
    lh_time next = now;
    for (uint32_t steps = 0; next <= now; steps++) {
        next = LH_TIME_NEVER;
        for (size_t i = 0; i < count; i++) {
            lh_time own = LH_TIME_NEVER;
            int result = connections[i] == NULL ? 0 : lh_progress(connections[i], &own);
            if (result != 0)
                return result;
            next = lh_earlier(next, own);
        }
        if (steps == STEPS_MAX)
            return lh_fail(LH_ESTATE, "a connection never finishes its work at %llu ns",
                           (unsigned long long)now);
    }
    next = lh_earlier(lh_earlier(next, sim_world_next_event(world->inside)), limit);
    if (next == LH_TIME_NEVER)
        return lh_fail(LH_EINVAL,
                       "turn: no event is pending, and the limit is LH_TIME_NEVER (use a finite limit)");
    return lh_sim_world_advance(world, next);
}

int lh_sim_world_set_link(struct lh_sim_world *world, uint32_t from, uint32_t to,
                          const struct lh_link_spec *link)
{
    if (from >= world->hosts || to >= world->hosts)
        return lh_fail(LH_ERANGE, "hosts %u and %u: out of range (0 to %u)", from, to, world->hosts - 1);
    sim_world_set_direction(world->inside, from, to, link);
    return 0;
}

void lh_sim_world_counts(struct lh_sim_world *world, struct lh_sim_counts *counts)
{
    struct sim_counts inside = sim_world_counts(world->inside);
    *counts = (struct lh_sim_counts){
        .sent_packets = inside.sent,
        .delivered_packets = inside.delivered,
        .lost_packets = inside.lost,
        .overflowed_packets = inside.overflowed,
        .unknown_packets = inside.unknown,
    };
}

uint64_t lh_sim_world_trace(struct lh_sim_world *world)
{
    return sim_world_trace(world->inside);
}
