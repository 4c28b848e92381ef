/*
 * found_sites.h - sites by measured round trips, where none were named: ranks that are near each other, and
 * far from all others.
 *
 * Ranks are joined in the order of their round trips (single linkage). Where one is FOUND_SITES_RATIO times
 * that of the join before, and FOUND_SITES_GAP_NS longer, those joined so far are sites; of several such gaps
 * the greatest counts. It does so only if the round trips between each two sites are alike, as paths of one
 * distance are: those of a machine that is busy are not. Without a gap all are one site.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_CHOOSE_FOUND_SITES_H
#define LH_COLLECTIVE_CHOOSE_FOUND_SITES_H

#include "collective/choose/paths.h"

#define FOUND_SITES_RATIO  4u
#define FOUND_SITES_GAP_NS 1000000u
#define FOUND_SITES_ALIKE  2u /* between two sites, the longest and the shortest: less than that apart */

/* Writes the site of each rank: the number of its first rank. pairs: by sender * ranks + receiver, of
 * which the shorter direction counts. joins: 3 * ranks numbers, for use inside. */
void found_sites(const struct path_figures *pairs, uint32_t ranks, uint32_t *site_of, uint64_t *joins);

#endif
