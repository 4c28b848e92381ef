/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/schedules.h"

#include "collective/schedule.h"

/* ---- hierarchical ---------------------------------------------------------------------------------- */

/*
 * A rank's *share* of the blocks is what it has after the reduce-scatter in its site: of m
 * ranks, an m-th. Blocks are also split into *cells*, as many as the largest site has ranks, and a cell into
 * pieces, one of each site: its owner. All other sites send their sums of a piece to the owner, which sends
 * the sum back: two steps across sites, however many there are.
 *
 * A cell is no larger than a share, so that at most two ranks of a site have shares of it.
 */

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

/* ---- hybrid ---------------------------------------------------------------------------------------- */

/*
 * The leader of a site is its first rank, of the root's site the root. Only leaders send and
 * receive across sites, and of the pipeline in its site a leader is the root: it never receives there.
 *
 * In the pipeline across sites a leader has block b before step b + lead; so its site's pipeline, whose root
 * sends block b in step b, begins lead steps later. The root's site begins at once.
 */

static uint32_t leader_of(const struct schedule_shape *shape, uint32_t site)
{
    return site == site_of(shape, shape->root) ? shape->root : site_first(shape, site);
}

static struct schedule_shape across(const struct schedule_shape *shape)
{
    return (struct schedule_shape){
        .ranks = sites_of(shape), .blocks = shape->blocks, .root = site_of(shape, shape->root)};
}

static struct schedule_shape inside(const struct schedule_shape *shape, uint32_t site)
{
    struct schedule_shape local = site_shape(shape, site);
    local.root = leader_of(shape, site) - site_first(shape, site);
    return local;
}

/* Of l dimensions, a block may wait as long at a vertex, and as long again at the first of a pair. */
static uint32_t lead_of(const struct schedule_shape *shape)
{
    uint32_t sites = sites_of(shape), dimensions = log2_floor(sites);
    return sites == 1U << dimensions ? dimensions + (dimensions > 1) : 2 * dimensions + 1;
}

static uint32_t steps(const struct schedule_shape *shape)
{
    return lead_of(shape) + log2_ceil(largest_site(shape)) + shape->blocks - 1;
}

/* The step of its site's pipeline; false: that does not run. */
static bool inside_step(const struct schedule_shape *shape, uint32_t site,
                        const struct schedule_shape *local, uint32_t *step)
{
    uint32_t lead = site == site_of(shape, shape->root) ? 0 : lead_of(shape);
    if (*step < lead || *step - lead >= schedule_steps(&pipeline_broadcast, local))
        return false;
    *step -= lead;
    return true;
}

static bool across_runs(const struct schedule_shape *shape, uint32_t place,
                        const struct schedule_shape *leaders, uint32_t step)
{
    return place == leader_of(shape, site_of(shape, place)) &&
           step < schedule_steps(&pipeline_broadcast, leaders);
}

/* First across sites, then inside. */
static bool send(const struct schedule_shape *shape, uint32_t place, uint32_t step, uint32_t index,
                 struct schedule_transfer *transfer)
{
    uint32_t site = site_of(shape, place), first = site_first(shape, site);
    struct schedule_shape leaders = across(shape), local = inside(shape, site);
    transfer->count = 0;
    if (index == 0) {
        if (across_runs(shape, place, &leaders, step) &&
            pipeline_broadcast.send(&leaders, site, step, 0, transfer))
            transfer->peer = leader_of(shape, transfer->peer);
        return true;
    }
    if (index > 1 || !inside_step(shape, site, &local, &step) ||
        !pipeline_broadcast.send(&local, place - first, step, 0, transfer))
        return false;
    transfer->peer += first;
    return true;
}

static bool source(const struct schedule_shape *shape, uint32_t place, uint32_t step, uint32_t index,
                   uint32_t *peer)
{
    uint32_t site = site_of(shape, place), first = site_first(shape, site);
    struct schedule_shape leaders = across(shape), local = inside(shape, site);
    if (place == leader_of(shape, site)) {
        if (!across_runs(shape, place, &leaders, step) ||
            !pipeline_broadcast.source(&leaders, site, step, index, peer))
            return false;
        *peer = leader_of(shape, *peer);
        return true;
    }
    if (!inside_step(shape, site, &local, &step) ||
        !pipeline_broadcast.source(&local, place - first, step, index, peer))
        return false;
    *peer += first;
    return true;
}

const struct schedule hybrid_broadcast = {
    .name = "hybrid",
    .collective = COLLECTIVE_BROADCAST,
    .steps = steps,
    .send = send,
    .source = source,
};

const struct schedule hybrid_reduce = {
    .name = "hybrid",
    .collective = COLLECTIVE_REDUCE,
    .reverse_of = &hybrid_broadcast,
};

/* ---- transpose ------------------------------------------------------------------------------------- */

/*
 * Of a site of m ranks, number j sends to those elsewhere whose number in their site is j
 * modulo m, for all of its site; they come to it first. A part crosses each level at most once.
 */

static uint32_t transpose_steps(const struct schedule_shape *shape)
{
    return largest_site(shape) - 1 + sites_of(shape) - 1;
}

/* Where a rank is. */
struct socket_slot {
    uint32_t site, number;
    uint32_t size; /* of the site */
};

static struct socket_slot slot_of(const struct schedule_shape *shape, uint32_t place)
{
    uint32_t site = site_of(shape, place);
    return (struct socket_slot){site, place - site_first(shape, site), site_size(shape, site)};
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
static bool destination(const struct schedule_shape *shape, struct socket_slot from, uint32_t index,
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
    struct socket_slot sender = slot_of(shape, from), receiver = slot_of(shape, to);
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

static bool transpose_send(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                           struct schedule_transfer *transfer)
{
    struct socket_slot from = slot_of(shape, rank);
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

static bool transpose_source(const struct schedule_shape *shape, uint32_t rank, uint32_t step,
                             uint32_t index, uint32_t *peer)
{
    struct socket_slot to = slot_of(shape, rank);
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
    .steps = transpose_steps,
    .send = transpose_send,
    .source = transpose_source,
    .between = between,
};
