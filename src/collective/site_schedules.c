/*
 * hierarchical.c - a rank's *share* of the blocks is what it has after the reduce-scatter in its site: of m
 * ranks, an m-th. Blocks are also split into *cells*, as many as the largest site has ranks, and a cell into
 * pieces, one of each site: its owner. All other sites send their sums of a piece to the owner, which sends
 * the sum back: two steps across sites, however many there are.
 *
 * A cell is no larger than a share, so that at most two ranks of a site have shares of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "collective/schedule/hierarchical.h"

#include "collective/schedule/bruck.h"
#include "collective/schedule/sites.h"
#include "collective/schedule/split.h"

#define HOLDERS 2u /* of a cell, in a site */

static struct schedule_extent blocks_of(const struct schedule_shape *shape)
{
    return (struct schedule_extent){0, shape->blocks};
}

static struct schedule_extent common(struct schedule_extent a, struct schedule_extent b)
{
    uint32_t first = a.first > b.first ? a.first : b.first;
    uint32_t a_end = a.first + a.count, b_end = b.first + b.count, end = a_end < b_end ? a_end : b_end;
    return (struct schedule_extent){first, end > first ? end - first : 0};
}

static struct schedule_extent share_of(const struct schedule_shape *shape, uint32_t place)
{
    uint32_t site = site_of(shape, place);
    return split(blocks_of(shape), site_size(shape, site), place - site_first(shape, site), 1);
}

/* Of those that count equal parts of the blocks, which have something of part `part` of `parts`. */
struct overlap {
    uint32_t first, count;
};

static struct overlap overlap_of(uint32_t count, uint32_t part, uint32_t parts)
{
    uint32_t first = (uint32_t)((uint64_t)part * count / parts);
    uint32_t end = (uint32_t)(((uint64_t)(part + 1) * count + parts - 1) / parts);
    return (struct overlap){first, end - first};
}

static struct overlap cells_of(const struct schedule_shape *shape, uint32_t place)
{
    uint32_t site = site_of(shape, place);
    return overlap_of(largest_site(shape), place - site_first(shape, site), site_size(shape, site));
}

/* What a place has of the piece that its site owns of a cell, and another place gets. */
static struct schedule_extent owned(const struct schedule_shape *shape, uint32_t from, uint32_t to,
                                    uint32_t cell)
{
    struct schedule_extent whole = split(blocks_of(shape), largest_site(shape), cell, 1);
    struct schedule_extent piece = split(whole, sites_of(shape), site_of(shape, from), 1);
    return common(piece, common(share_of(shape, from), share_of(shape, to)));
}

/* ---- across sites: all-gather of what each owns ------------------------------------------------------ */

static uint32_t across_steps(const struct schedule_shape *shape)
{
    return sites_of(shape) > 1;
}

static bool across_between(const struct schedule_shape *shape, uint32_t from, uint32_t to, uint32_t step,
                           uint32_t index, struct schedule_transfer *transfer)
{
    struct overlap cells = cells_of(shape, from);
    (void)step;
    return index < cells.count &&
           transfer_set(transfer, to, owned(shape, from, to, cells.first + index), false);
}

/* To each other site, beginning with the next, cell by cell. */
static bool across_send(const struct schedule_shape *shape, uint32_t place, uint32_t step, uint32_t index,
                        struct schedule_transfer *transfer)
{
    struct overlap cells = cells_of(shape, place);
    uint32_t sites = sites_of(shape), of_site = cells.count * HOLDERS, distance = index / of_site + 1;
    uint32_t cell = cells.first + index % of_site / HOLDERS;
    (void)step;
    if (distance >= sites)
        return false;
    uint32_t site = (site_of(shape, place) + distance) % sites;
    struct overlap holders = overlap_of(site_size(shape, site), cell, largest_site(shape));
    transfer->count = 0;
    if (index % HOLDERS >= holders.count)
        return true;
    uint32_t peer = site_first(shape, site) + holders.first + index % HOLDERS;
    return transfer_set(transfer, peer, owned(shape, place, peer, cell), false);
}

static bool across_source(const struct schedule_shape *shape, uint32_t place, uint32_t step, uint32_t index,
                          uint32_t *peer)
{
    uint32_t own = site_of(shape, place), local = place - site_first(shape, own);
    (void)step;
    for (uint32_t site = 0; site < sites_of(shape); site++) {
        struct overlap from = overlap_of(site_size(shape, site), local, site_size(shape, own));
        if (site == own)
            continue;
        *peer = site_first(shape, site) + from.first + index;
        if (index < from.count)
            return true;
        index -= from.count;
    }
    return false;
}

static const struct schedule across_allgather = {
    .name = "across",
    .collective = COLLECTIVE_ALLGATHER,
    .steps = across_steps,
    .send = across_send,
    .source = across_source,
    .between = across_between,
};

static const struct schedule across_reduce_scatter = {
    .name = "across",
    .collective = COLLECTIVE_REDUCE_SCATTER,
    .reverse_of = &across_allgather,
};

/* ---- in each site: Bruck's all-gather of the shares -------------------------------------------------- */

static uint32_t inside_steps(const struct schedule_shape *shape)
{
    return log2_ceil(largest_site(shape));
}

static bool inside_send(const struct schedule_shape *shape, uint32_t place, uint32_t step, uint32_t index,
                        struct schedule_transfer *transfer)
{
    uint32_t site = site_of(shape, place), first = site_first(shape, site);
    struct schedule_shape local = site_shape(shape, site);
    if (step >= log2_ceil(local.ranks) ||
        !bruck_allgather.send(&local, place - first, step, index, transfer))
        return false;
    transfer->peer += first;
    return true;
}

static bool inside_source(const struct schedule_shape *shape, uint32_t place, uint32_t step, uint32_t index,
                          uint32_t *peer)
{
    uint32_t site = site_of(shape, place), first = site_first(shape, site);
    struct schedule_shape local = site_shape(shape, site);
    if (step >= log2_ceil(local.ranks) || !bruck_allgather.source(&local, place - first, step, index, peer))
        return false;
    *peer += first;
    return true;
}

static const struct schedule inside_allgather = {
    .name = "inside",
    .collective = COLLECTIVE_ALLGATHER,
    .steps = inside_steps,
    .send = inside_send,
    .source = inside_source,
};

static const struct schedule inside_reduce_scatter = {
    .name = "inside",
    .collective = COLLECTIVE_REDUCE_SCATTER,
    .reverse_of = &inside_allgather,
};

/* ---- all --------------------------------------------------------------------------------------------- */

static const struct schedule reduced = {
    .name = "reduced",
    .collective = COLLECTIVE_REDUCE_SCATTER,
    .first = &inside_reduce_scatter,
    .then = &across_reduce_scatter,
};

static const struct schedule gathered = {
    .name = "gathered",
    .collective = COLLECTIVE_ALLGATHER,
    .first = &across_allgather,
    .then = &inside_allgather,
};

const struct schedule hierarchical_allreduce = {
    .name = "hierarchical",
    .collective = COLLECTIVE_ALLREDUCE,
    .first = &reduced,
    .then = &gathered,
};
