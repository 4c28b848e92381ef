/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/schedules.h"

#include "collective/schedule.h"

/* ---- ring ------------------------------------------------------------------------------------------ */

/* A part travels around the ring: n - 1 steps of reduce-scatter, n - 1 of all-gather. */

static uint32_t once_around(const struct schedule_shape *shape)
{
    return shape->ranks - 1;
}

static uint32_t twice_around(const struct schedule_shape *shape)
{
    return 2 * (shape->ranks - 1);
}

/* Step 0 sends the part of the rank before, so that the last part to come is the rank's own. */
static bool send_reduced(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                         struct schedule_transfer *transfer)
{
    uint32_t part = rank_before(shape, rank, step + 1);
    return index == 0 && transfer_set(transfer, rank_after(shape, rank, 1), part_at(shape, part), true);
}

static bool send_whole(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                       struct schedule_transfer *transfer)
{
    uint32_t part = rank_before(shape, rank, step);
    return index == 0 && transfer_set(transfer, rank_after(shape, rank, 1), part_at(shape, part), false);
}

static bool send_both(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                      struct schedule_transfer *transfer)
{
    uint32_t half = once_around(shape);
    return step < half ? send_reduced(shape, rank, step, index, transfer)
                       : send_whole(shape, rank, step - half, index, transfer);
}

static bool before(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                   uint32_t *peer)
{
    (void)step;
    *peer = rank_before(shape, rank, 1);
    return index == 0;
}

const struct schedule ring_allreduce = {
    .name = "ring",
    .collective = COLLECTIVE_ALLREDUCE,
    .steps = twice_around,
    .send = send_both,
    .source = before,
};

const struct schedule ring_reduce_scatter = {
    .name = "ring",
    .collective = COLLECTIVE_REDUCE_SCATTER,
    .steps = once_around,
    .send = send_reduced,
    .source = before,
};

const struct schedule ring_allgather = {
    .name = "ring",
    .collective = COLLECTIVE_ALLGATHER,
    .steps = once_around,
    .send = send_whole,
    .source = before,
};

/* ---- chain ----------------------------------------------------------------------------------------- */

static uint32_t steps(const struct schedule_shape *shape)
{
    return shape->ranks + shape->blocks - 2;
}

/* The rank at a place has block b before step place + b. */
static bool send(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                 struct schedule_transfer *transfer)
{
    uint32_t place = rank_before(shape, rank, shape->root);
    if (index > 0 || place == shape->ranks - 1 || step < place || step - place >= shape->blocks)
        return false;
    return transfer_set(transfer, rank_after(shape, rank, 1), (struct schedule_extent){step - place, 1},
                        false);
}

static bool source(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                   uint32_t *peer)
{
    (void)step;
    *peer = rank_before(shape, rank, 1);
    return index == 0 && rank != shape->root;
}

const struct schedule chain_broadcast = {
    .name = "chain",
    .collective = COLLECTIVE_BROADCAST,
    .steps = steps,
    .send = send,
    .source = source,
};

const struct schedule chain_reduce = {
    .name = "chain",
    .collective = COLLECTIVE_REDUCE,
    .reverse_of = &chain_broadcast,
};

/* ---- pairwise -------------------------------------------------------------------------------------- */

static bool pairwise_send(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                          struct schedule_transfer *transfer)
{
    uint32_t peer = rank_after(shape, rank, step + 1);
    return index == 0 && transfer_set(transfer, peer, pair_at(shape, rank, peer), false);
}

static bool pairwise_source(const struct schedule_shape *shape, uint32_t rank, uint32_t step,
                            uint32_t index, uint32_t *peer)
{
    *peer = rank_before(shape, rank, step + 1);
    return index == 0;
}

const struct schedule pairwise_alltoall = {
    .name = "pairwise",
    .collective = COLLECTIVE_ALLTOALL,
    .steps = once_around,
    .send = pairwise_send,
    .source = pairwise_source,
};

/* ---- direct ---------------------------------------------------------------------------------------- */

static uint32_t direct_steps(const struct schedule_shape *shape)
{
    (void)shape;
    return 1;
}

static bool between(const struct schedule_shape *shape, uint32_t from, uint32_t to, uint32_t step,
                    uint32_t index, struct schedule_transfer *transfer)
{
    (void)from;
    (void)step;
    return index == 0 && transfer_set(transfer, to, (struct schedule_extent){0, shape->blocks}, true);
}

/* Each begins with another one. */
static bool direct_send(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                        struct schedule_transfer *transfer)
{
    return index + 1 < shape->ranks &&
           between(shape, rank, rank_after(shape, rank, index + 1), step, 0, transfer);
}

static bool direct_source(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                          uint32_t *peer)
{
    (void)step;
    *peer = index < rank ? index : index + 1;
    return index + 1 < shape->ranks;
}

const struct schedule direct_allreduce = {
    .name = "direct",
    .collective = COLLECTIVE_ALLREDUCE,
    .exchanges = true,
    .steps = direct_steps,
    .send = direct_send,
    .source = direct_source,
    .between = between,
};

/* ---- dissemination --------------------------------------------------------------------------------- */

static uint32_t doubling_steps(const struct schedule_shape *shape)
{
    return log2_ceil(shape->ranks);
}

static bool dissemination_send(const struct schedule_shape *shape, uint32_t rank, uint32_t step,
                               uint32_t index, struct schedule_transfer *transfer)
{
    return index == 0 && transfer_set(transfer, rank_after(shape, rank, 1u << step),
                                      (struct schedule_extent){0, 1}, false);
}

static bool doubling_source(const struct schedule_shape *shape, uint32_t rank, uint32_t step,
                            uint32_t index, uint32_t *peer)
{
    *peer = rank_before(shape, rank, 1u << step);
    return index == 0;
}

const struct schedule dissemination_barrier = {
    .name = "dissemination",
    .collective = COLLECTIVE_BARRIER,
    .steps = doubling_steps,
    .send = dissemination_send,
    .source = doubling_source,
};

/* ---- sequential ------------------------------------------------------------------------------------ */

static bool send_all(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                     struct schedule_transfer *transfer)
{
    return index == 0 && rank == shape->root &&
           transfer_set(transfer, rank_after(shape, rank, step + 1),
                        (struct schedule_extent){0, shape->blocks}, false);
}

static bool send_part(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                      struct schedule_transfer *transfer)
{
    uint32_t peer = rank_after(shape, rank, step + 1);
    return index == 0 && rank == shape->root && transfer_set(transfer, peer, part_at(shape, peer), false);
}

static bool sequential_source(const struct schedule_shape *shape, uint32_t rank, uint32_t step,
                              uint32_t index, uint32_t *peer)
{
    *peer = shape->root;
    return index == 0 && rank == rank_after(shape, shape->root, step + 1);
}

const struct schedule sequential_broadcast = {
    .name = "sequential",
    .collective = COLLECTIVE_BROADCAST,
    .steps = once_around,
    .send = send_all,
    .source = sequential_source,
};

const struct schedule sequential_reduce = {
    .name = "sequential",
    .collective = COLLECTIVE_REDUCE,
    .reverse_of = &sequential_broadcast,
};

const struct schedule sequential_scatter = {
    .name = "sequential",
    .collective = COLLECTIVE_SCATTER,
    .steps = once_around,
    .send = send_part,
    .source = sequential_source,
};

const struct schedule sequential_gather = {
    .name = "sequential",
    .collective = COLLECTIVE_GATHER,
    .reverse_of = &sequential_scatter,
};

/* ---- bruck ----------------------------------------------------------------------------------------- */

/*
 * All-gather: before step k a rank has its part and those of the 2^k - 1 ranks after it, and sends
 * them 2^k ranks back. All-to-all: what a rank has for the one d ranks on travels 2^k ranks in step k where
 * bit k of d is set.
 */

/* ---- all-gather -------------------------------------------------------------------------------------- */

static bool send_parts(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                       struct schedule_transfer *transfer)
{
    struct schedule_extent extent;
    uint32_t distance = 1u << step, left = shape->ranks - distance;
    return parts_at(shape, rank, distance < left ? distance : left, index, &extent) &&
           transfer_set(transfer, rank_before(shape, rank, distance), extent, false);
}

static bool source_after(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                         uint32_t *peer)
{
    *peer = rank_after(shape, rank, 1u << step);
    return index == 0;
}

/* ---- all-to-all -------------------------------------------------------------------------------------- */

/* The index-th of the numbers whose bit is set. */
static uint32_t with_bit(uint32_t index, uint32_t bit)
{
    uint32_t below = index & ((1u << bit) - 1);
    return (index >> bit) << (bit + 1) | 1u << bit | below;
}

/* Of the parts that go a way d in all, the rank has that of the one which is as far before it as the bits of
 * d below the step's say. */
static bool send_ways(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                      struct schedule_transfer *transfer)
{
    uint32_t distance = 1u << step, way = with_bit(index, step);
    if (way >= shape->ranks)
        return false;
    uint32_t from = rank_before(shape, rank, way & (distance - 1));
    return transfer_set(transfer, rank_after(shape, rank, distance),
                        pair_at(shape, from, rank_after(shape, from, way)), false);
}

const struct schedule bruck_allgather = {
    .name = "bruck",
    .collective = COLLECTIVE_ALLGATHER,
    .steps = doubling_steps,
    .send = send_parts,
    .source = source_after,
};

const struct schedule bruck_reduce_scatter = {
    .name = "bruck",
    .collective = COLLECTIVE_REDUCE_SCATTER,
    .reverse_of = &bruck_allgather,
};

const struct schedule bruck_allreduce = {
    .name = "bruck",
    .collective = COLLECTIVE_ALLREDUCE,
    .first = &bruck_reduce_scatter,
    .then = &bruck_allgather,
};

const struct schedule bruck_alltoall = {
    .name = "bruck",
    .collective = COLLECTIVE_ALLTOALL,
    .steps = doubling_steps,
    .send = send_ways,
    .source = doubling_source,
};

/* ---- bcube ----------------------------------------------------------------------------------------- */

/*
 * All-gather: in each step a group grows by a factor, of which each member had the parts of its
 * own, smaller group; those at the same place of the smaller groups exchange these.
 */

/* The members of a group before a step have consecutive ranks. */
struct level {
    uint32_t group;
    uint32_t factor; /* 1: there are no more steps */
};

/* The least prime factor, but 4 in place of twice 2. */
static uint32_t factor_of(uint32_t ranks)
{
    if (ranks % 4 == 0)
        return 4;
    for (uint32_t factor = 2; factor * factor <= ranks; factor++)
        if (ranks % factor == 0)
            return factor;
    return ranks;
}

static struct level level_of(const struct schedule_shape *shape, uint32_t step)
{
    struct level level = {1, factor_of(shape->ranks)};
    while (step-- > 0) {
        level.group *= level.factor;
        level.factor = factor_of(shape->ranks / level.group);
    }
    return level;
}

static uint32_t bcube_steps(const struct schedule_shape *shape)
{
    uint32_t count = 0;
    for (uint32_t left = shape->ranks; left > 1; left /= factor_of(left))
        count++;
    return count;
}

/* The index-th of those at the same place of the other groups. */
static uint32_t partner(struct level level, uint32_t rank, uint32_t index)
{
    uint32_t whole = level.group * level.factor, base = rank - rank % whole;
    return base + (rank % whole + (index + 1) * level.group) % whole;
}

static bool bcube_between(const struct schedule_shape *shape, uint32_t from, uint32_t to, uint32_t step,
                          uint32_t index, struct schedule_transfer *transfer)
{
    struct level level = level_of(shape, step);
    struct schedule_extent extent;
    return parts_at(shape, from - from % level.group, level.group, index, &extent) &&
           transfer_set(transfer, to, extent, false);
}

static bool bcube_send(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                       struct schedule_transfer *transfer)
{
    struct level level = level_of(shape, step);
    uint32_t others = level.factor - 1;
    return bcube_between(shape, rank, partner(level, rank, index % others), step, index / others, transfer);
}

static bool bcube_source(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                         uint32_t *peer)
{
    struct level level = level_of(shape, step);
    *peer = partner(level, rank, index);
    return index + 1 < level.factor;
}

const struct schedule bcube_allgather = {
    .name = "bcube",
    .collective = COLLECTIVE_ALLGATHER,
    .steps = bcube_steps,
    .send = bcube_send,
    .source = bcube_source,
    .between = bcube_between,
};

const struct schedule bcube_reduce_scatter = {
    .name = "bcube",
    .collective = COLLECTIVE_REDUCE_SCATTER,
    .reverse_of = &bcube_allgather,
};

const struct schedule bcube_allreduce = {
    .name = "bcube",
    .collective = COLLECTIVE_ALLREDUCE,
    .first = &bcube_reduce_scatter,
    .then = &bcube_allgather,
};
