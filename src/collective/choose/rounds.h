/*
 * rounds.h - which ranks measure the path between them, round by round, so that no pair disturbs another: a
 * rank is in one pair at a time, and so is the link between two sites.
 *
 * Inside a site each measures with each. Across, each rank measures with one at least of each other site:
 * that takes, of sites of one size, as many rounds as ranks and not their square, and rounds_fill() infers
 * the rest.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_CHOOSE_ROUNDS_H
#define LH_COLLECTIVE_CHOOSE_ROUNDS_H

#include "collective/choose/paths.h"

#define ROUNDS_NONE UINT32_MAX

/* All rounds; the first rounds_inside() are inside sites. */
uint32_t rounds_count(const struct site_map *map);
uint32_t rounds_inside(const struct site_map *map);
/* The rank that a rank measures with in a round; ROUNDS_NONE: none. */
uint32_t rounds_partner(const struct site_map *map, uint32_t rank, uint32_t round);
/* Sets the rates that are 0 between ranks of different sites: as fast as each of the two was with the other's
 * site, at most. pairs: by sender * ranks + receiver. */
void rounds_fill(const struct site_map *map, struct path_figures *pairs);

#endif
