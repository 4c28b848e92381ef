/*
 * sites.h - the sites of a shape, counted in places; without a map there is one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_SCHEDULE_SITES_H
#define LH_COLLECTIVE_SCHEDULE_SITES_H

#include "collective/schedule/schedule.h"

static inline uint32_t sites_of(const struct schedule_shape *shape)
{
    return shape->map ? shape->map->sites : 1;
}

static inline uint32_t site_of(const struct schedule_shape *shape, uint32_t place)
{
    return shape->map ? shape->map->site_of[place] : 0;
}

/* The place of its first rank. */
static inline uint32_t site_first(const struct schedule_shape *shape, uint32_t site)
{
    return shape->map ? shape->map->first[site] : 0;
}

static inline uint32_t site_size(const struct schedule_shape *shape, uint32_t site)
{
    return shape->map ? shape->map->first[site + 1] - shape->map->first[site] : shape->ranks;
}

static inline uint32_t largest_site(const struct schedule_shape *shape)
{
    return shape->map ? shape->map->largest : shape->ranks;
}

/* A collective of a site's ranks alone, whose places are counted from its first. */
static inline struct schedule_shape site_shape(const struct schedule_shape *shape, uint32_t site)
{
    return (struct schedule_shape){.ranks = site_size(shape, site), .blocks = shape->blocks};
}

#endif
