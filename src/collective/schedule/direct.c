/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/schedule/direct.h"

#include "collective/schedule/split.h"

static uint32_t steps(const struct schedule_shape *shape)
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
static bool send(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                 struct schedule_transfer *transfer)
{
    return index + 1 < shape->ranks &&
           between(shape, rank, rank_after(shape, rank, index + 1), step, 0, transfer);
}

static bool source(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
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
    .steps = steps,
    .send = send,
    .source = source,
    .between = between,
};
