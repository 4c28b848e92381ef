/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/choose/flow_time.h"

#include <assert.h>

#define TOGETHER_MAX 16u /* of collective/run/pieces.h */

struct flow {
    const struct schedule *schedule;
    const struct schedule_shape *shape;
    const struct flow_network *network;
    struct lh_prng *prng;
    double block_bytes;
    uint32_t together; /* blocks of a message */
    uint32_t step;
    double *held;  /* of a rank's block, of an all-to-all of the block: since when */
    double *ports; /* until when they are busy: of each rank PORTS */
    double *link;  /* likewise, from site to site */
    double work;   /* of all ranks, until now */
    double end;
};

/* LOAD: when a rank has sent all, at the earliest: from when it had the first block on. */
enum port { OUT, IN, OUT_ACROSS, LOAD, PORTS };

static uint32_t sites_of(const struct schedule_shape *shape)
{
    return shape->map ? shape->map->sites : 1;
}

static bool is_alltoall(const struct schedule *schedule)
{
    return schedule->collective == COLLECTIVE_ALLTOALL;
}

static bool is_barrier(const struct schedule *schedule)
{
    return schedule->collective == COLLECTIVE_BARRIER;
}

/* Of a barrier, whose one block all ranks send and receive in each step: what they hold before the step, and
 * after it. */
#define BARRIER_ROWS 2u

/* An all-to-all has a row of each rank, others as many places of each. */
static size_t held_count(const struct schedule_shape *shape)
{
    size_t places = shape->blocks < BARRIER_ROWS ? BARRIER_ROWS : shape->blocks;
    return (size_t)shape->ranks * places;
}

static size_t numbers(const struct schedule_shape *shape)
{
    return held_count(shape) + PORTS * (size_t)shape->ranks + (size_t)sites_of(shape) * sites_of(shape);
}

size_t flow_time_memory(const struct schedule_shape *shape)
{
    return numbers(shape) * sizeof(double);
}

static double later(double a, double b)
{
    return a > b ? a : b;
}

static double *held_by(const struct flow *flow, uint32_t rank, uint32_t block)
{
    if (is_barrier(flow->schedule))
        return &flow->held[(size_t)rank * BARRIER_ROWS + flow->step % BARRIER_ROWS];
    return &flow->held[is_alltoall(flow->schedule) ? block : (size_t)rank * flow->shape->blocks + block];
}

/* Each rank receives one message in each step of a barrier. */
static void hold(struct flow *flow, const struct schedule_transfer *transfer, uint32_t block,
                 double arrived)
{
    double *held = held_by(flow, transfer->peer, block), before = *held;
    if (is_barrier(flow->schedule))
        held = &flow->held[(size_t)transfer->peer * BARRIER_ROWS + (flow->step + 1) % BARRIER_ROWS];
    *held = transfer->reduce || is_barrier(flow->schedule) ? later(before, arrived) : arrived;
}

static double *link_between(const struct flow *flow, uint32_t from, uint32_t to)
{
    const struct site_map *map = flow->shape->map;
    if (!map || map->site_of[map->place_of[from]] == map->site_of[map->place_of[to]])
        return NULL;
    return &flow->link[map->site_of[map->place_of[from]] * map->sites + map->site_of[map->place_of[to]]];
}

static struct flow_pair pair_of(const struct flow *flow, uint32_t from, uint32_t to, bool across)
{
    const struct flow_hop *hop = across ? &flow->network->across : &flow->network->inside;
    if (flow->network->pairs)
        return flow->network->pairs[from * flow->shape->ranks + to];
    return (struct flow_pair){hop->latency_s, hop->byte_s, hop->loss_byte};
}

static double repair(const struct flow *flow, const struct flow_hop *hop, const struct flow_pair *pair)
{
    double lost = flow->block_bytes * pair->loss_byte;
    if (!flow->prng || hop->samples == 0)
        return hop->repair_s + (lost < 1 ? lost : 1) * 2 * pair->latency_s;
    return hop->samples_s[lh_prng_below(flow->prng, hop->samples)];
}

/* When a block has left: in both directions by turns, one behind the other in each. */
static double leave(double *ports, bool across, double ready, double port_s)
{
    double *out = &ports[across ? OUT_ACROSS : OUT];
    ports[LOAD] = (ports[LOAD] > 0 ? ports[LOAD] : ready) + port_s;
    return *out = later(later(ready, *out) + port_s, ports[LOAD]);
}

/* Before when the processors of a machine cannot have done this, and all before it. */
static double work(struct flow *flow, double work_s)
{
    flow->work += work_s;
    return flow->network->processors > 0 ? flow->work / flow->network->processors : 0;
}

/* When a block that leaves after `ready` arrives: through ports, and a link. first: of a message. */
static double carry(struct flow *flow, uint32_t from, uint32_t to, double ready, bool first, double *link)
{
    const struct flow_hop *inside = &flow->network->inside, *across = &flow->network->across;
    const struct flow_pair pair = pair_of(flow, from, to, link != NULL);
    double message_s = first ? (link ? across : inside)->message_s : 0;
    double port_s = flow->block_bytes * (link ? inside->byte_s : pair.byte_s) + message_s;
    double worked = work(flow, port_s);
    double sent = leave(&flow->ports[from * PORTS], link != NULL, ready, port_s);
    if (link) {
        *link = later(sent - port_s, *link) + flow->block_bytes * pair.byte_s;
        return later(sent, *link) + pair.latency_s;
    }
    double *in = &flow->ports[to * PORTS + IN];
    *in = later(sent + pair.latency_s, *in + port_s);
    return later(*in, worked);
}

/* A contribution that is exchanged is there from the beginning. */
static void send_block(struct flow *flow, uint32_t from, const struct schedule_transfer *transfer,
                       uint32_t index)
{
    uint32_t block = transfer->first + index;
    double ready = flow->schedule->exchanges ? 0 : *held_by(flow, from, block);
    double *link = link_between(flow, from, transfer->peer);
    double arrived = carry(flow, from, transfer->peer, ready, index % flow->together == 0, link);
    const struct flow_pair pair = pair_of(flow, from, transfer->peer, link != NULL);
    arrived += repair(flow, link ? &flow->network->across : &flow->network->inside, &pair);
    if (transfer->reduce) {
        double sum_s = flow->block_bytes * flow->network->sum_byte_s;
        arrived = later(arrived + sum_s, work(flow, sum_s));
    }
    hold(flow, transfer, block, arrived);
    flow->end = later(flow->end, arrived);
}

static void send_step(struct flow *flow, uint32_t rank, uint32_t step)
{
    struct schedule_cursor cursor = {0};
    struct schedule_transfer transfer;
    while (schedule_next_send(flow->schedule, flow->shape, rank, step, &cursor, &transfer))
        for (uint32_t i = 0; i < transfer.count; i++)
            send_block(flow, rank, &transfer, i);
}

static uint32_t blocks_together(double message_bytes, double block_bytes)
{
    double most = message_bytes / block_bytes;
    return most < 1 ? 1 : most < TOGETHER_MAX ? (uint32_t)most : TOGETHER_MAX;
}

double flow_time(const struct schedule *schedule, const struct schedule_shape *shape, double bytes,
                 const struct flow_network *network, struct lh_prng *prng, void *memory)
{
    struct flow flow = {.schedule = schedule, .shape = shape, .network = network, .prng = prng};
    size_t count = numbers(shape);
    flow.block_bytes = bytes / shape->blocks;
    flow.together = blocks_together(network->message_bytes, flow.block_bytes);
    flow.held = memory;
    flow.ports = flow.held + held_count(shape);
    flow.link = flow.ports + PORTS * (size_t)shape->ranks;
    for (size_t i = 0; i < count; i++)
        flow.held[i] = 0;
    uint32_t steps = schedule_steps(schedule, shape);
    for (flow.step = 0; flow.step < steps; flow.step++)
        for (uint32_t rank = 0; rank < shape->ranks; rank++)
            send_step(&flow, rank, flow.step);
    assert(flow.end > 0 || shape->ranks == 1);
    return flow.end;
}
