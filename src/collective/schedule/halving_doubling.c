/*
 * halving_doubling.c - the ranks below the greatest power of two p exchange halves of what they still have
 * to reduce, then the sums the same way back. Each rank from p on first adds its blocks to those of one
 * below, and gets the sums at the end.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "collective/schedule/halving_doubling.h"

#include "collective/schedule/split.h"

enum phase { FOLD, HALVE, DOUBLE, UNFOLD };

static uint32_t core(const struct schedule_shape *shape)
{
    return 1u << log2_floor(shape->ranks);
}

static bool folds(const struct schedule_shape *shape)
{
    return shape->ranks != core(shape);
}

static uint32_t steps(const struct schedule_shape *shape)
{
    return 2 * log2_floor(shape->ranks) + (folds(shape) ? 2 : 0);
}

/* distance: of the partners in an exchange. */
static enum phase phase_of(const struct schedule_shape *shape, uint32_t step, uint32_t *distance)
{
    uint32_t exchanges = log2_floor(shape->ranks);
    *distance = 0;
    if (folds(shape) && step-- == 0)
        return FOLD;
    if (step < exchanges) {
        *distance = 1u << (exchanges - 1 - step);
        return HALVE;
    }
    step -= exchanges;
    if (step == exchanges)
        return UNFOLD;
    *distance = 1u << step;
    return DOUBLE;
}

/* Of one part per rank below p, `count` from a multiple of count on, that of a rank among them. */
static struct schedule_extent parts_around(const struct schedule_shape *shape, uint32_t rank,
                                           uint32_t count)
{
    return split((struct schedule_extent){0, shape->blocks}, core(shape), rank & ~(count - 1), count);
}

static bool send(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                 struct schedule_transfer *transfer)
{
    uint32_t distance, p = core(shape);
    struct schedule_extent all = {0, shape->blocks};
    enum phase phase = phase_of(shape, step, &distance);
    if (index > 0)
        return false;
    if (phase == FOLD)
        return rank >= p && transfer_set(transfer, rank - p, all, true);
    if (phase == UNFOLD)
        return rank < shape->ranks - p && transfer_set(transfer, rank + p, all, false);
    if (rank >= p)
        return false;
    uint32_t peer = rank ^ distance;
    if (phase == HALVE)
        return transfer_set(transfer, peer, parts_around(shape, peer, distance), true);
    return transfer_set(transfer, peer, parts_around(shape, rank, distance), false);
}

static bool source(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                   uint32_t *peer)
{
    uint32_t distance, p = core(shape);
    enum phase phase = phase_of(shape, step, &distance);
    if (index > 0)
        return false;
    if (phase == FOLD) {
        *peer = rank + p;
        return *peer < shape->ranks;
    }
    *peer = phase == UNFOLD ? rank - p : rank ^ distance;
    return phase == UNFOLD ? rank >= p : rank < p;
}

const struct schedule halving_doubling = {
    .name = "halving-doubling",
    .collective = COLLECTIVE_ALLREDUCE,
    .steps = steps,
    .send = send,
    .source = source,
};
