/*
 * bruck.c - all-gather: before step k a rank has its part and those of the 2^k - 1 ranks after it, and sends
 * them 2^k ranks back. All-to-all: what a rank has for the one d ranks on travels 2^k ranks in step k where
 * bit k of d is set.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "collective/schedule/bruck.h"

#include "collective/schedule/split.h"

static uint32_t steps(const struct schedule_shape *shape)
{
    return log2_ceil(shape->ranks);
}

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

static bool source_before(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                          uint32_t *peer)
{
    *peer = rank_before(shape, rank, 1u << step);
    return index == 0;
}

const struct schedule bruck_allgather = {
    .name = "bruck",
    .collective = COLLECTIVE_ALLGATHER,
    .steps = steps,
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
    .steps = steps,
    .send = send_ways,
    .source = source_before,
};
