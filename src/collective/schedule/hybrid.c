/*
 * hybrid.c - the leader of a site is its first rank, of the root's site the root. Only leaders send and
 * receive across sites, and of the pipeline in its site a leader is the root: it never receives there.
 *
 * In the pipeline across sites a leader has block b before step b + lead; so its site's pipeline, whose root
 * sends block b in step b, begins lead steps later. The root's site begins at once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "collective/schedule/hybrid.h"

#include "collective/schedule/binomial_pipeline.h"
#include "collective/schedule/sites.h"
#include "collective/schedule/split.h"

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
