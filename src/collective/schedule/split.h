/*
 * split.h - equal parts of blocks, and the numbers that schedules of powers of two need.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_SCHEDULE_SPLIT_H
#define LH_COLLECTIVE_SCHEDULE_SPLIT_H

#include "collective/schedule/schedule.h"

/* Parts first to first + count - 1 of an extent that is split into equal parts: their sizes differ by a
 * block at most. */
static inline struct schedule_extent split(struct schedule_extent whole, uint32_t parts, uint32_t first,
                                           uint32_t count)
{
    uint32_t begin = (uint32_t)((uint64_t)whole.count * first / parts);
    uint32_t end = (uint32_t)((uint64_t)whole.count * (first + count) / parts);
    return (struct schedule_extent){whole.first + begin, end - begin};
}

/* Of value > 0. */
static inline uint32_t log2_floor(uint32_t value)
{
    return 31 - (uint32_t)__builtin_clz(value);
}

static inline uint32_t log2_ceil(uint32_t value)
{
    return value > 1 ? log2_floor(value - 1) + 1 : 0;
}

/* (rank + distance) mod ranks, of distance <= ranks. */
static inline uint32_t rank_after(const struct schedule_shape *shape, uint32_t rank, uint32_t distance)
{
    uint32_t sum = rank + distance;
    return sum < shape->ranks ? sum : sum - shape->ranks;
}

static inline uint32_t rank_before(const struct schedule_shape *shape, uint32_t rank, uint32_t distance)
{
    return rank >= distance ? rank - distance : rank + shape->ranks - distance;
}

/* The rank at a place. */
static inline uint32_t rank_at(const struct schedule_shape *shape, uint32_t place)
{
    return shape->map ? shape->map->rank_at[place] : place;
}

/* schedule_part() and schedule_pair() of places. */
static inline struct schedule_extent part_at(const struct schedule_shape *shape, uint32_t place)
{
    return schedule_part(shape, rank_at(shape, place));
}

static inline struct schedule_extent pair_at(const struct schedule_shape *shape, uint32_t source,
                                             uint32_t destination)
{
    return schedule_pair(shape, rank_at(shape, source), rank_at(shape, destination));
}

/* The index-th extent of the parts of consecutive places, place 0 after the last: equal parts have one, or
 * two where they wrap around; given extents, or those of a map, are each by itself. False: there are no
 * more. */
static inline bool parts_at(const struct schedule_shape *shape, uint32_t first, uint32_t count,
                            uint32_t index, struct schedule_extent *extent)
{
    uint32_t until_last = count < shape->ranks - first ? count : shape->ranks - first;
    struct schedule_extent all = {0, shape->blocks};
    if (shape->extents || shape->map) {
        if (index < count)
            *extent = part_at(shape, rank_after(shape, first, index));
        return index < count;
    }
    if (index == 0)
        *extent = split(all, shape->ranks, first, until_last);
    else
        *extent = split(all, shape->ranks, 0, count - until_last);
    return index < 2;
}

/* Sets what a transfer copies, or reduces, and returns true. */
static inline bool transfer_set(struct schedule_transfer *transfer, uint32_t peer,
                                struct schedule_extent extent, bool reduce)
{
    *transfer = (struct schedule_transfer){
        .peer = peer, .first = extent.first, .count = extent.count, .reduce = reduce};
    return true;
}

#endif
