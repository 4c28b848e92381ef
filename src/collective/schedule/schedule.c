/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/schedule/schedule.h"

#include <assert.h>

#include "base/error.h"
#include "collective/schedule/split.h"

static int check_blocks(const struct schedule *schedule, const struct schedule_shape *shape)
{
    if (shape->blocks == 0 || shape->blocks > SCHEDULE_BLOCKS_MAX)
        return lh_fail(LH_EINVAL, "%s: %u blocks: out of range (1 to %u)", schedule->name, shape->blocks,
                       SCHEDULE_BLOCKS_MAX);
    if (schedule->collective == COLLECTIVE_ALLTOALL &&
        (uint64_t)shape->ranks * shape->blocks > SCHEDULE_BLOCKS_MAX)
        return lh_fail(LH_EINVAL, "%s: %u blocks of %u ranks: out of range (use at most %u blocks)",
                       schedule->name, shape->blocks, shape->ranks, SCHEDULE_BLOCKS_MAX / shape->ranks);
    return 0;
}

int schedule_shape_check(const struct schedule *schedule, const struct schedule_shape *shape)
{
    if (shape->ranks == 0 || shape->ranks > SCHEDULE_RANKS_MAX)
        return lh_fail(LH_EINVAL, "%s: %u ranks: out of range (1 to %u)", schedule->name, shape->ranks,
                       SCHEDULE_RANKS_MAX);
    if (shape->root >= shape->ranks)
        return lh_fail(LH_EINVAL, "%s: root %u: out of range (0 to %u)", schedule->name, shape->root,
                       shape->ranks - 1);
    if (shape->site_ranks > shape->ranks)
        return lh_fail(LH_EINVAL, "%s: %u ranks per site: out of range (0 to %u)", schedule->name,
                       shape->site_ranks, shape->ranks);
    return check_blocks(schedule, shape);
}

uint32_t schedule_steps(const struct schedule *schedule, const struct schedule_shape *shape)
{
    return shape->ranks > 1 ? schedule->steps(shape) : 0;
}

bool schedule_next_send(const struct schedule *schedule, const struct schedule_shape *shape, uint32_t rank,
                        uint32_t step, struct schedule_cursor *cursor, struct schedule_transfer *transfer)
{
    assert(rank < shape->ranks && step < schedule_steps(schedule, shape));
    while (schedule->send(shape, rank, step, cursor->index++, transfer)) {
        assert(transfer->peer < shape->ranks && transfer->peer != rank);
        if (transfer->count > 0)
            return true;
    }
    cursor->index--;
    return false;
}

/* What its sources send to it: a receive is nowhere described twice. */
bool schedule_next_receive(const struct schedule *schedule, const struct schedule_shape *shape,
                           uint32_t rank, uint32_t step, struct schedule_cursor *cursor,
                           struct schedule_transfer *transfer)
{
    uint32_t peer;
    assert(rank < shape->ranks && step < schedule_steps(schedule, shape));
    for (; schedule->source(shape, rank, step, cursor->source, &peer); cursor->source++, cursor->index = 0)
        while (schedule->send(shape, peer, step, cursor->index++, transfer))
            if (transfer->peer == rank && transfer->count > 0) {
                transfer->peer = peer;
                return true;
            }
    return false;
}

struct schedule_extent schedule_part(const struct schedule_shape *shape, uint32_t rank)
{
    if (shape->extents)
        return shape->extents[rank];
    return split((struct schedule_extent){0, shape->blocks}, shape->ranks, rank, 1);
}

struct schedule_extent schedule_pair(const struct schedule_shape *shape, uint32_t source,
                                     uint32_t destination)
{
    if (shape->extents)
        return shape->extents[source * shape->ranks + destination];
    return split((struct schedule_extent){source * shape->blocks, shape->blocks}, shape->ranks, destination,
                 1);
}
