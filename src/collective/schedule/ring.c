/*
 * ring.c - a part travels around the ring: n - 1 steps of reduce-scatter, n - 1 of all-gather.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "collective/schedule/ring.h"

#include "collective/schedule/split.h"

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
