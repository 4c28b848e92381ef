/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/switches.h"

#include <assert.h>
#include <string.h>

#include "netsim/run/simulation_run.h"
#include "netsim/topology/topology.h"

#define WIRE_BYTES_MAX 4300u
#define CABLES_MAX     4u /* of a way: up to a spine and down again */
#define BITS_PER_BYTE  8u

/* A network alone needs few packets; with traffic of its own it must never run out of them. */
#define PACKETS_QUIET 4096u
#define PACKETS_BUSY  65536u

static uint64_t between(struct lh_prng *prng, uint64_t low, uint64_t high)
{
    return low + lh_prng_below(prng, high - low + 1);
}

/* ---- drawing ----------------------------------------------------------------------------------------- */

static void draw_shape(struct plan_switches *own, uint32_t hosts, struct lh_prng *prng)
{
    uint64_t kind = lh_prng_below(prng, 3);
    own->topology = kind == 0 && hosts == 2 ? NETSIM_TWO_HOSTS
                    : kind == 1             ? NETSIM_DUMBBELL
                                            : NETSIM_LEAF_SPINE;
    own->hosts_each = (hosts + 1) / 2;
    own->spines = (uint32_t)between(prng, 1, 3);
    own->rate_bps = (uint64_t)100000000 << lh_prng_below(prng, 11);
    own->core_rate_bps = own->rate_bps >> lh_prng_below(prng, 4);
    own->delay_ns = (lh_time)100 << lh_prng_below(prng, 12);
    own->core_delay_ns = (lh_time)100 << lh_prng_below(prng, 14);
}

static void draw_faults(struct plan_switches *own, struct lh_prng *prng)
{
    bool faulty = lh_prng_chance(prng, 0.4);
    own->faults.loss = lh_prng_double(prng) * 0.1;
    own->faults.corrupt = lh_prng_double(prng) * 0.05;
    own->faults.reorder = lh_prng_double(prng) * 0.1;
    own->faults.jitter_ns = lh_prng_below(prng, 2 * own->delay_ns);
    own->faults.seed = lh_prng_next(prng) | 1;
    if (!faulty)
        own->faults = (struct lh_link_spec){0};
}

/* A chunk leaves as a burst, and there is no congestion control yet: a queue that holds less than one
 * drops its end, each time again. */
static uint64_t largest_burst(const struct plan *plan)
{
    uint64_t maximum = WIRE_BYTES_MAX;
    for (uint32_t i = 0; i < plan->pair_count; i++) {
        const struct lh_attr *attr = &plan->pairs[i].attr[0];
        uint64_t wire_bytes = attr->chunk_bytes / attr->mtu_bytes * (attr->mtu_bytes + 150);
        maximum = wire_bytes > maximum ? wire_bytes : maximum;
    }
    return maximum;
}

static void draw_queues(struct plan_switches *own, uint64_t burst_bytes, struct lh_prng *prng)
{
    own->buffer_bytes = (uint64_t)65536 << lh_prng_below(prng, 7);
    own->queue_bytes = 2 * burst_bytes << lh_prng_below(prng, 4);
    if (own->buffer_bytes < 2 * own->queue_bytes)
        own->buffer_bytes = 2 * own->queue_bytes;
    bool endless = lh_prng_chance(prng, 0.3);
    if (endless)
        own->queue_bytes = 0;
    own->alpha = lh_prng_chance(prng, 0.3) ? 1 : 0;
    own->spray = lh_prng_chance(prng, 0.4);
    own->pfc = lh_prng_chance(prng, 0.3);
}

void switches_draw(struct plan *plan, struct lh_prng *prng)
{
    struct plan_switches *own = &plan->switches;
    draw_shape(own, plan->hosts, prng);
    draw_faults(own, prng);
    draw_queues(own, largest_burst(plan), prng);
    bool busy = lh_prng_chance(prng, 0.3);
    uint32_t flows = (uint32_t)between(prng, 1, PLAN_FLOWS_MAX);
    for (uint32_t i = 0; i < PLAN_FLOWS_MAX; i++) {
        struct plan_flow *flow = &own->flows[i];
        flow->from = (uint8_t)lh_prng_below(prng, plan->hosts);
        uint64_t other = lh_prng_below(prng, plan->hosts - 1);
        flow->to = (uint8_t)(other < flow->from ? other : other + 1);
        flow->bytes = between(prng, 1, 300000);
        flow->at_ns = lh_prng_below(prng, plan->heal_ns);
    }
    own->flow_count = busy ? flows : 0;
}

/* ---- building ---------------------------------------------------------------------------------------- */

static struct netsim_config config_of(const struct plan_switches *own)
{
    return (struct netsim_config){
        .topology = {.kind = (enum netsim_topology_kind)own->topology,
                     .hosts = own->hosts_each,
                     .leaves = 2,
                     .spines = own->spines,
                     .rate_bps = own->rate_bps,
                     .core_rate_bps = own->core_rate_bps,
                     .delay_ps = own->delay_ns * NETSIM_PS_PER_NS,
                     .core_delay_ps = own->core_delay_ns * NETSIM_PS_PER_NS,
                     .faults = own->faults},
        .switches = {.buffer_bytes = own->buffer_bytes,
                     .queue_bytes = own->queue_bytes,
                     .alpha = own->alpha,
                     .spray = own->spray,
                     .pfc = own->pfc,
                     .pfc_xoff_bytes = own->buffer_bytes / 32,
                     .pfc_xon_bytes = own->buffer_bytes / 64},
        .transport = {.payload_bytes = 1024,
                      .header_bytes = 98,
                      .ack_bytes = 64,
                      .window_bytes = 65536,
                      .rto = 3,
                      .reorder_packets = 3,
                      .data_priority = 3,
                      .ack_priority = 6},
        .packets_max = own->flow_count > 0 ? PACKETS_BUSY : PACKETS_QUIET,
    };
}

/* Zeroed, but for the packets at its end, which are many and need not be. */
static struct netsim_arena arena_of(struct world *world, const struct netsim_arena *counted, size_t packets)
{
    assert(counted->used_bytes != SIZE_MAX &&
           counted->used_bytes >= packets * sizeof(struct netsim_packet));
    unsigned char *base = world_memory(world, counted->used_bytes);
    memset(base, 0, counted->used_bytes - packets * sizeof(struct netsim_packet));
    return (struct netsim_arena){.base = base, .capacity_bytes = counted->used_bytes};
}

static struct netsim_flow_list flows_of(struct world *world, const struct plan_switches *own)
{
    struct netsim_flow_list list = {.count = own->flow_count};
    list.flows = world_memory(world, 2 * PLAN_FLOWS_MAX * sizeof *list.flows);
    for (uint32_t i = 0; i < own->flow_count; i++)
        list.flows[i] = (struct netsim_flow_request){.bytes = own->flows[i].bytes,
                                                     .start_ps = own->flows[i].at_ns * NETSIM_PS_PER_NS,
                                                     .source = own->flows[i].from,
                                                     .destination = own->flows[i].to};
    netsim_flow_list_sort(&list, list.flows + PLAN_FLOWS_MAX);
    return list;
}

void switches_open(struct world *world)
{
    if (!plan_has(world->plan, FEATURE_switches))
        return;
    const struct netsim_config config = config_of(&world->plan->switches);
    struct netsim_graph *graph = world_memory(world, sizeof *graph);
    struct netsim_flow_list *flows = world_memory(world, sizeof *flows);
    struct netsim_arena counting = {0};
    struct lh_prng prng;
    world->network = world_memory(world, sizeof *world->network);
    lh_prng_seed(&prng, world->plan->seed);
    int error = netsim_topology_build(&config.topology, &counting, graph);
    assert(error == 0);
    struct netsim_arena arena = arena_of(world, &counting, 0);
    error = netsim_topology_build(&config.topology, &arena, graph);
    assert(error == 0);
    *flows = flows_of(world, &world->plan->switches);
    counting = (struct netsim_arena){0};
    netsim_setup(world->network, &config, graph, flows, &prng, &counting);
    arena = arena_of(world, &counting, config.packets_max);
    netsim_setup(world->network, &config, graph, flows, &prng, &arena);
    const struct netsim_packet_pool *pool = &world->network->network.pool;
    assert((unsigned char *)(pool->packets + pool->capacity) == arena.base + arena.used_bytes);
    sim_world_set_network(world->sim, world->network);
}

void switches_heal(struct world *world)
{
    if (world->network == NULL)
        return;
    for (uint32_t p = 0; p < world->network->network.ports_count; p++) {
        struct lh_link_state *faults = world->network->network.more[p].faults;
        if (faults)
            faults->spec = (struct lh_link_spec){.seed = faults->spec.seed};
    }
}

/* ---- what is known of it ----------------------------------------------------------------------------- */

lh_time switches_min_ns(const struct plan *plan)
{
    if (!plan_has(plan, FEATURE_switches))
        return 0;
    return plan->switches.topology == NETSIM_TWO_HOSTS ? plan->switches.delay_ns
                                                       : 2 * plan->switches.delay_ns;
}

lh_time switches_max_ns(const struct plan *plan, uint64_t bytes)
{
    if (!plan_has(plan, FEATURE_switches))
        return 0;
    const struct plan_switches *own = &plan->switches;
    for (uint32_t i = 0; i < own->flow_count; i++)
        bytes += own->flows[i].bytes;
    uint64_t slowest_bps = own->core_rate_bps < own->rate_bps ? own->core_rate_bps : own->rate_bps;
    uint64_t waiting = 2 * bytes + CABLES_MAX * (own->buffer_bytes + WIRE_BYTES_MAX);
    lh_time light_ns = CABLES_MAX * (own->delay_ns + own->core_delay_ns + 2 * own->faults.jitter_ns);
    return light_ns + waiting * BITS_PER_BYTE * LH_NS_PER_S / slowest_bps;
}

bool switches_corrupt(const struct plan *plan)
{
    return plan_has(plan, FEATURE_switches) && plan->switches.faults.corrupt > 0;
}

void switches_describe(FILE *out, const struct plan *plan)
{
    static const char *const kinds[] = {"two hosts", "dumbbell", "leaf-spine"};
    const struct plan_switches *own = &plan->switches;
    char faults[LH_LINK_TEXT_MAX];
    if (!plan_has(plan, FEATURE_switches))
        return;
    fprintf(out,
            "  switches: %s, %u spines, %llu and %llu Mbit/s, %llu and %llu ns, buffer %llu, queue %llu, "
            "alpha %g, "
            "spray %d, pfc %d, faults %s\n",
            kinds[own->topology], own->spines, (unsigned long long)(own->rate_bps / 1000000),
            (unsigned long long)(own->core_rate_bps / 1000000), (unsigned long long)own->delay_ns,
            (unsigned long long)own->core_delay_ns, (unsigned long long)own->buffer_bytes,
            (unsigned long long)own->queue_bytes, own->alpha, own->spray, own->pfc,
            lh_link_format(&own->faults, faults, sizeof faults));
    for (uint32_t i = 0; i < own->flow_count; i++)
        fprintf(out, "  others' traffic: %llu bytes from host %u to %u at %llu us\n",
                (unsigned long long)own->flows[i].bytes, own->flows[i].from, own->flows[i].to,
                (unsigned long long)(own->flows[i].at_ns / LH_NS_PER_US));
}
