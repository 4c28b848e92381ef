/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/schedule/chain.h"

#include "collective/schedule/split.h"

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
