/*
 * binomial_tree.c - distances are halved from step to step, so that a rank serves consecutive ones: what it
 * scatters is in one piece, and of sites that are aligned each gets a block once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "collective/schedule/binomial_tree.h"

#include "collective/schedule/split.h"

static uint32_t steps(const struct schedule_shape *shape)
{
    return log2_ceil(shape->ranks);
}

static uint32_t distance_in(const struct schedule_shape *shape, uint32_t step)
{
    return 1u << (steps(shape) - 1 - step);
}

/* How many ranks the one that receives from this one in the step serves, itself among them; 0: there is
 * none. */
static uint32_t passes(const struct schedule_shape *shape, uint32_t rank, uint32_t distance)
{
    uint32_t place = rank_before(shape, rank, shape->root);
    if (place % (2 * distance) != 0 || place + distance >= shape->ranks)
        return 0;
    uint32_t left = shape->ranks - place - distance;
    return distance < left ? distance : left;
}

static bool send_all(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                     struct schedule_transfer *transfer)
{
    uint32_t distance = distance_in(shape, step);
    return index == 0 && passes(shape, rank, distance) > 0 &&
           transfer_set(transfer, rank_after(shape, rank, distance),
                        (struct schedule_extent){0, shape->blocks}, false);
}

static bool send_parts(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                       struct schedule_transfer *transfer)
{
    struct schedule_extent extent;
    uint32_t distance = distance_in(shape, step), count = passes(shape, rank, distance);
    uint32_t peer = rank_after(shape, rank, distance);
    return count > 0 && parts_at(shape, peer, count, index, &extent) &&
           transfer_set(transfer, peer, extent, false);
}

static bool source(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                   uint32_t *peer)
{
    uint32_t distance = distance_in(shape, step), place = rank_before(shape, rank, shape->root);
    *peer = rank_before(shape, rank, distance);
    return index == 0 && place % (2 * distance) == distance;
}

const struct schedule binomial_broadcast = {
    .name = "binomial-tree",
    .collective = COLLECTIVE_BROADCAST,
    .steps = steps,
    .send = send_all,
    .source = source,
};

const struct schedule binomial_reduce = {
    .name = "binomial-tree",
    .collective = COLLECTIVE_REDUCE,
    .reverse_of = &binomial_broadcast,
};

const struct schedule binomial_scatter = {
    .name = "binomial-tree",
    .collective = COLLECTIVE_SCATTER,
    .steps = steps,
    .send = send_parts,
    .source = source,
};

const struct schedule binomial_gather = {
    .name = "binomial-tree",
    .collective = COLLECTIVE_GATHER,
    .reverse_of = &binomial_scatter,
};
