/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/onesided/regions.h"

#include <assert.h>
#include <stddef.h>

#include <longhaul/error.h>

static_assert((REGIONS_MAX & (REGIONS_MAX - 1)) == 0, "places are bits of a key");

static uint32_t place_of(uint64_t key)
{
    return (uint32_t)key & (REGIONS_MAX - 1);
}

bool regions_add(struct regions *regions, struct region *region, uint64_t random)
{
    if (regions->count == REGIONS_MAX)
        return false;
    uint32_t place = place_of(random);
    while (regions->places[place]) /* at most REGIONS_MAX times */
        place = (place + 1) & (REGIONS_MAX - 1);
    region->key = (random & ~(uint64_t)(REGIONS_MAX - 1)) | place;
    regions->places[place] = region;
    regions->count++;
    return true;
}

void regions_remove(struct regions *regions, const struct region *region)
{
    assert(regions->places[place_of(region->key)] == region);
    regions->places[place_of(region->key)] = NULL;
    regions->count--;
}

struct region *regions_find(const struct regions *regions, uint64_t key)
{
    struct region *region = regions->places[place_of(key)];
    return region && region->key == key ? region : NULL;
}

int region_check(const struct region *region, uint32_t access, uint64_t offset, uint64_t bytes)
{
    if (!region || (region->access & access) != access)
        return LH_EKEY;
    if (offset > region->bytes || bytes > region->bytes - offset)
        return LH_ERANGE;
    return 0;
}
