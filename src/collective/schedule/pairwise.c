/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/schedule/pairwise.h"

#include "collective/schedule/split.h"

static uint32_t steps(const struct schedule_shape *shape)
{
    return shape->ranks - 1;
}

static bool send(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                 struct schedule_transfer *transfer)
{
    uint32_t peer = rank_after(shape, rank, step + 1);
    return index == 0 && transfer_set(transfer, peer, pair_at(shape, rank, peer), false);
}

static bool source(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                   uint32_t *peer)
{
    *peer = rank_before(shape, rank, step + 1);
    return index == 0;
}

const struct schedule pairwise_alltoall = {
    .name = "pairwise",
    .collective = COLLECTIVE_ALLTOALL,
    .steps = steps,
    .send = send,
    .source = source,
};
