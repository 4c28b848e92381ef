/*
 * site_map.h - an order of the ranks, and the sites in it. A schedule counts *places*: rank 0 of its
 * formulas is the rank at place 0. So any assignment of ranks to sites works, and any order of a ring.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_SCHEDULE_SITE_MAP_H
#define LH_COLLECTIVE_SCHEDULE_SITE_MAP_H

#include <stdint.h>

/* Ranks of a site have consecutive places. The tables are the caller's. */
struct site_map {
    const uint32_t *rank_at;  /* of a place */
    const uint32_t *place_of; /* of a rank: the inverse */
    const uint32_t *site_of;  /* of a place */
    const uint32_t *first;    /* place of each site; one entry more: the number of ranks */
    uint32_t sites;
    uint32_t largest; /* ranks of a site */
};

/* Numbers that the tables of a map need. */
static inline uint32_t site_map_numbers(uint32_t ranks)
{
    return 4 * ranks + 1;
}

/* Makes the map of ranks whose sites are given by any numbers: sites in the order of their first ranks, ranks
 * of a site in their order. order: all ranks; NULL: 0, 1, 2 … numbers: site_map_numbers(ranks) of them, which
 * the map refers to. */
void site_map_build(struct site_map *map, const uint32_t *site_of_rank, const uint32_t *order,
                    uint32_t ranks, uint32_t *numbers);

#endif
