/*
 * bcube.c - all-gather: in each step a group grows by a factor, of which each member had the parts of its
 * own, smaller group; those at the same place of the smaller groups exchange these.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "collective/schedule/bcube.h"

#include "collective/schedule/split.h"

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

static uint32_t steps(const struct schedule_shape *shape)
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

static bool between(const struct schedule_shape *shape, uint32_t from, uint32_t to, uint32_t step,
                    uint32_t index, struct schedule_transfer *transfer)
{
    struct level level = level_of(shape, step);
    struct schedule_extent extent;
    return parts_at(shape, from - from % level.group, level.group, index, &extent) &&
           transfer_set(transfer, to, extent, false);
}

static bool send(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                 struct schedule_transfer *transfer)
{
    struct level level = level_of(shape, step);
    uint32_t others = level.factor - 1;
    return between(shape, rank, partner(level, rank, index % others), step, index / others, transfer);
}

static bool source(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                   uint32_t *peer)
{
    struct level level = level_of(shape, step);
    *peer = partner(level, rank, index);
    return index + 1 < level.factor;
}

const struct schedule bcube_allgather = {
    .name = "bcube",
    .collective = COLLECTIVE_ALLGATHER,
    .steps = steps,
    .send = send,
    .source = source,
    .between = between,
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
