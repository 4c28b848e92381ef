/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/schedule/dissemination.h"

#include "collective/schedule/split.h"

static uint32_t steps(const struct schedule_shape *shape)
{
    return log2_ceil(shape->ranks);
}

static bool send(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                 struct schedule_transfer *transfer)
{
    return index == 0 && transfer_set(transfer, rank_after(shape, rank, 1u << step),
                                      (struct schedule_extent){0, 1}, false);
}

static bool source(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                   uint32_t *peer)
{
    *peer = rank_before(shape, rank, 1u << step);
    return index == 0;
}

const struct schedule dissemination_barrier = {
    .name = "dissemination",
    .collective = COLLECTIVE_BARRIER,
    .steps = steps,
    .send = send,
    .source = source,
};
