/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/schedule.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* ---- site map -------------------------------------------------------------------------------------- */

/* O(ranks * sites). */
void site_map_build(struct site_map *map, const uint32_t *site_of_rank, const uint32_t *order,
                    uint32_t ranks, uint32_t *numbers)
{
    uint32_t *rank_at = numbers, *place_of = rank_at + ranks, *site_of = place_of + ranks;
    uint32_t *first = site_of + ranks, place = 0, sites = 0;
    for (uint32_t i = 0; i < ranks; i++) {
        uint32_t site = 0, rank = order ? order[i] : i;
        while (site < sites && site_of_rank[rank_at[first[site]]] != site_of_rank[rank])
            site++;
        if (site < sites)
            continue;
        first[sites] = place;
        for (uint32_t j = i; j < ranks; j++) {
            uint32_t other = order ? order[j] : j;
            if (site_of_rank[other] != site_of_rank[rank])
                continue;
            rank_at[place] = other;
            place_of[other] = place;
            site_of[place++] = sites;
        }
        sites++;
    }
    assert(place == ranks);
    first[sites] = ranks;
    *map = (struct site_map){
        .rank_at = rank_at, .place_of = place_of, .site_of = site_of, .first = first, .sites = sites};
    for (uint32_t site = 0; site < sites; site++)
        if (first[site + 1] - first[site] > map->largest)
            map->largest = first[site + 1] - first[site];
}

/* ---- schedule -------------------------------------------------------------------------------------- */

static int check_blocks(const struct schedule *schedule, const struct schedule_shape *shape)
{
    if (shape->blocks == 0 || shape->blocks > SCHEDULE_BLOCKS_MAX)
        return lh_fail(LH_EINVAL, "%s: %u blocks: out of range (1 to %u)", schedule->name, shape->blocks,
                       SCHEDULE_BLOCKS_MAX);
    if (schedule->collective == COLLECTIVE_ALLTOALL && !shape->extents &&
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
    if (shape->map && (shape->map->sites == 0 || shape->map->first[shape->map->sites] != shape->ranks))
        return lh_fail(LH_EINVAL, "%s: map of sites: not of %u ranks (site_map_build() makes one)",
                       schedule->name, shape->ranks);
    return check_blocks(schedule, shape);
}

/* Of a shape whose root is a place. */
static uint32_t steps_of(const struct schedule *schedule, const struct schedule_shape *shape)
{
    if (schedule->reverse_of)
        return steps_of(schedule->reverse_of, shape);
    if (schedule->first)
        return steps_of(schedule->first, shape) + steps_of(schedule->then, shape);
    return shape->ranks > 1 ? schedule->steps(shape) : 0;
}

/* ---- schedules made of others ------------------------------------------------------------------------ */

static bool sums(const struct schedule *schedule)
{
    return schedule->collective == COLLECTIVE_REDUCE || schedule->collective == COLLECTIVE_REDUCE_SCATTER;
}

/* The one of two to which a step belongs; it becomes a step of that one. */
static const struct schedule *half_of(const struct schedule *schedule, const struct schedule_shape *shape,
                                      uint32_t *step)
{
    uint32_t steps = steps_of(schedule->first, shape);
    if (*step < steps)
        return schedule->first;
    *step -= steps;
    return schedule->then;
}

static uint32_t mirrored(const struct schedule *schedule, const struct schedule_shape *shape, uint32_t step)
{
    return steps_of(schedule->reverse_of, shape) - 1 - step;
}

/* ---- transfers of a step: of places ------------------------------------------------------------------ */

static bool next_receive(const struct schedule *schedule, const struct schedule_shape *shape,
                         uint32_t place, uint32_t step, struct schedule_cursor *cursor,
                         struct schedule_transfer *transfer);

static bool next_send(const struct schedule *schedule, const struct schedule_shape *shape, uint32_t place,
                      uint32_t step, struct schedule_cursor *cursor, struct schedule_transfer *transfer)
{
    if (schedule->first) {
        const struct schedule *half = half_of(schedule, shape, &step);
        return next_send(half, shape, place, step, cursor, transfer);
    }
    if (schedule->reverse_of) {
        uint32_t back = mirrored(schedule, shape, step);
        bool any = next_receive(schedule->reverse_of, shape, place, back, cursor, transfer);
        transfer->reduce = sums(schedule);
        return any;
    }
    while (schedule->send(shape, place, step, cursor->index++, transfer)) {
        if (transfer->count == 0)
            continue;
        assert(transfer->peer < shape->ranks && transfer->peer != place);
        return true;
    }
    cursor->index--;
    return false;
}

/* What a source sends to the place, or, with a count of 0, to another. */
static bool between(const struct schedule *schedule, const struct schedule_shape *shape, uint32_t from,
                    uint32_t to, uint32_t step, uint32_t index, struct schedule_transfer *transfer)
{
    if (schedule->between)
        return schedule->between(shape, from, to, step, index, transfer);
    bool any = schedule->send(shape, from, step, index, transfer);
    if (any && transfer->peer != to)
        transfer->count = 0;
    return any;
}

/* What its sources send to it: a receive is nowhere described twice. */
static bool next_receive(const struct schedule *schedule, const struct schedule_shape *shape,
                         uint32_t place, uint32_t step, struct schedule_cursor *cursor,
                         struct schedule_transfer *transfer)
{
    uint32_t peer;
    if (schedule->first) {
        const struct schedule *half = half_of(schedule, shape, &step);
        return next_receive(half, shape, place, step, cursor, transfer);
    }
    if (schedule->reverse_of) {
        uint32_t back = mirrored(schedule, shape, step);
        bool any = next_send(schedule->reverse_of, shape, place, back, cursor, transfer);
        transfer->reduce = sums(schedule);
        return any;
    }
    for (; schedule->source(shape, place, step, cursor->source, &peer); cursor->source++, cursor->index = 0)
        while (between(schedule, shape, peer, place, step, cursor->index++, transfer))
            if (transfer->count > 0) {
                transfer->peer = peer;
                return true;
            }
    return false;
}

/* ---- transfers of a step: of ranks ------------------------------------------------------------------- */

static uint32_t place_of(const struct schedule_shape *shape, uint32_t rank)
{
    return shape->map ? shape->map->place_of[rank] : rank;
}

static struct schedule_shape of_places(const struct schedule_shape *shape)
{
    struct schedule_shape placed = *shape;
    placed.root = place_of(shape, shape->root);
    return placed;
}

uint32_t schedule_steps(const struct schedule *schedule, const struct schedule_shape *shape)
{
    struct schedule_shape placed = of_places(shape);
    return steps_of(schedule, &placed);
}

bool schedule_next_send(const struct schedule *schedule, const struct schedule_shape *shape, uint32_t rank,
                        uint32_t step, struct schedule_cursor *cursor, struct schedule_transfer *transfer)
{
    assert(rank < shape->ranks && step < schedule_steps(schedule, shape));
    struct schedule_shape placed = of_places(shape);
    bool any = next_send(schedule, &placed, place_of(shape, rank), step, cursor, transfer);
    if (any)
        transfer->peer = rank_at(shape, transfer->peer);
    return any;
}

bool schedule_next_receive(const struct schedule *schedule, const struct schedule_shape *shape,
                           uint32_t rank, uint32_t step, struct schedule_cursor *cursor,
                           struct schedule_transfer *transfer)
{
    assert(rank < shape->ranks && step < schedule_steps(schedule, shape));
    struct schedule_shape placed = of_places(shape);
    bool any = next_receive(schedule, &placed, place_of(shape, rank), step, cursor, transfer);
    if (any)
        transfer->peer = rank_at(shape, transfer->peer);
    return any;
}

/* ---- parts ------------------------------------------------------------------------------------------- */

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
