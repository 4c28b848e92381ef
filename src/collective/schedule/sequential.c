/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/schedule/sequential.h"

#include "collective/schedule/split.h"

static uint32_t steps(const struct schedule_shape *shape)
{
    return shape->ranks - 1;
}

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

static bool source(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                   uint32_t *peer)
{
    *peer = shape->root;
    return index == 0 && rank == rank_after(shape, shape->root, step + 1);
}

const struct schedule sequential_broadcast = {
    .name = "sequential",
    .collective = COLLECTIVE_BROADCAST,
    .steps = steps,
    .send = send_all,
    .source = source,
};

const struct schedule sequential_reduce = {
    .name = "sequential",
    .collective = COLLECTIVE_REDUCE,
    .reverse_of = &sequential_broadcast,
};

const struct schedule sequential_scatter = {
    .name = "sequential",
    .collective = COLLECTIVE_SCATTER,
    .steps = steps,
    .send = send_part,
    .source = source,
};

const struct schedule sequential_gather = {
    .name = "sequential",
    .collective = COLLECTIVE_GATHER,
    .reverse_of = &sequential_scatter,
};
