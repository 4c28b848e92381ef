/*
 * transpose.c - of a site of m ranks, number j sends to those elsewhere whose number in their site is j
 * modulo m, for all of its site; they come to it first. A part crosses each level at most once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "collective/schedule/transpose.h"

#include "collective/schedule/sites.h"
#include "collective/schedule/split.h"

static uint32_t steps(const struct schedule_shape *shape)
{
    return largest_site(shape) - 1 + sites_of(shape) - 1;
}

/* Where a rank is. */
struct seat {
    uint32_t site, number;
    uint32_t size; /* of the site */
};

static struct seat seat_of(const struct schedule_shape *shape, uint32_t place)
{
    uint32_t site = site_of(shape, place);
    return (struct seat){site, place - site_first(shape, site), site_size(shape, site)};
}

/* Whether the step is one across sites, and becomes its number. */
static bool is_across(const struct schedule_shape *shape, uint32_t *step)
{
    uint32_t inside = largest_site(shape) - 1;
    if (*step < inside)
        return false;
    *step -= inside;
    return true;
}

/* How many of a site's ranks have a number that is `number` modulo `size`. */
static uint32_t column(const struct schedule_shape *shape, uint32_t site, uint32_t number, uint32_t size)
{
    uint32_t there = site_size(shape, site);
    return number < there ? (there - number - 1) / size + 1 : 0;
}

/* The index-th of all ranks that are reached by this number of a site; every site's column is as long as
 * that of the largest, so a place may have nobody: then the peer is the place itself. */
static bool destination(const struct schedule_shape *shape, struct seat from, uint32_t index,
                        uint32_t *place)
{
    uint32_t rows = (largest_site(shape) - 1) / from.size + 1, site = index / rows, row = index % rows;
    if (site >= sites_of(shape))
        return false;
    *place = row < column(shape, site, from.number, from.size)
                 ? site_first(shape, site) + from.number + row * from.size
                 : UINT32_MAX;
    return true;
}

static bool between(const struct schedule_shape *shape, uint32_t from, uint32_t to, uint32_t step,
                    uint32_t index, struct schedule_transfer *transfer)
{
    struct seat sender = seat_of(shape, from), receiver = seat_of(shape, to);
    uint32_t place;
    if (is_across(shape, &step)) /* what all of the sender's site have for the receiver */
        return index < sender.size &&
               transfer_set(transfer, to, pair_at(shape, site_first(shape, sender.site) + index, to),
                            false);
    if (!destination(shape, receiver, index, &place))
        return false;
    transfer->count = 0;
    return place == UINT32_MAX || transfer_set(transfer, to, pair_at(shape, from, place), false);
}

static bool send(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                 struct schedule_transfer *transfer)
{
    struct seat from = seat_of(shape, rank);
    uint32_t round = step;
    if (!is_across(shape, &round)) {
        uint32_t to = (from.number + step + 1) % from.size;
        return step + 1 < from.size &&
               between(shape, rank, site_first(shape, from.site) + to, step, index, transfer);
    }
    uint32_t site = (from.site + round + 1) % sites_of(shape), row = index / from.size;
    return row < column(shape, site, from.number, from.size) &&
           between(shape, rank, site_first(shape, site) + from.number + row * from.size, step,
                   index % from.size, transfer);
}

static bool source(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                   uint32_t *peer)
{
    struct seat to = seat_of(shape, rank);
    uint32_t round = step, sites = sites_of(shape);
    if (!is_across(shape, &round)) {
        *peer = site_first(shape, to.site) + (to.number + to.size - (step + 1) % to.size) % to.size;
        return index == 0 && step + 1 < to.size;
    }
    uint32_t site = (to.site + sites - round - 1) % sites;
    *peer = site_first(shape, site) + to.number % site_size(shape, site);
    return index == 0;
}

const struct schedule transpose_alltoall = {
    .name = "transpose",
    .collective = COLLECTIVE_ALLTOALL,
    .steps = steps,
    .send = send,
    .source = source,
    .between = between,
};
