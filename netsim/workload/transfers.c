/*
 * transfers.c - see transfers.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/workload/transfers.h"

#include <assert.h>

static bool next_of_schedule(const struct transfers *transfers, struct transfer *transfer)
{
    const struct schedule_shape *shape = &transfers->shape;
    uint32_t steps = schedule_steps(transfers->schedule, shape);
    while (transfer->step < steps) {
        if (schedule_next_send(transfers->schedule, shape, transfer->from, transfer->step,
                               &transfer->cursor, &transfer->rest))
            return true;
        transfer->cursor = (struct schedule_cursor){0};
        transfer->from = (transfer->from + 1) % shape->ranks;
        transfer->step += transfer->from == 0;
    }
    return false;
}

bool transfers_next(const struct transfers *transfers, struct transfer *transfer)
{
    struct schedule_transfer *rest = &transfer->rest;
    assert(transfers->together >= 1);
    if (rest->count == 0 && !next_of_schedule(transfers, transfer))
        return false;
    transfer->to = rest->peer;
    transfer->first = rest->first;
    transfer->count = rest->count < transfers->together ? rest->count : transfers->together;
    transfer->reduce = rest->reduce;
    rest->first += transfer->count;
    rest->count -= transfer->count;
    return true;
}

uint32_t transfers_count(const struct transfers *transfers, uint32_t most, uint64_t *blocks)
{
    struct transfer transfer = {0};
    uint32_t count = 0;
    *blocks = 0;
    for (; count <= most && transfers_next(transfers, &transfer); count++)
        *blocks += transfer.count;
    return count;
}

/* Bytes before a block: products have at most 48 bits. */
static uint64_t offset(uint64_t bytes, uint32_t blocks, uint64_t block)
{
    return bytes / blocks * block + bytes % blocks * block / blocks;
}

uint64_t transfer_bytes(const struct transfers *transfers, const struct transfer *transfer, uint64_t bytes)
{
    uint32_t blocks = transfers->shape.blocks;
    uint64_t first = transfer->first % blocks;
    return offset(bytes, blocks, first + transfer->count) - offset(bytes, blocks, first);
}
