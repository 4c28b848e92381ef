/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/schedule/site_map.h"

#include <assert.h>

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
