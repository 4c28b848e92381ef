/*
 * site_order.h - sites by measured round trips, where none were named: ranks that are near each other, and
 * far from all others.
 *
 * Ranks are joined in the order of their round trips (single linkage). Where one is FOUND_SITES_RATIO times
 * that of the join before, and FOUND_SITES_GAP_NS longer, those joined so far are sites; of several such gaps
 * the greatest counts. It does so only if the round trips between each two sites are alike, as paths of one
 * distance are: those of a machine that is busy are not. Without a gap all are one site.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_CHOOSE_SITE_ORDER_H
#define LH_COLLECTIVE_CHOOSE_SITE_ORDER_H

#include <stddef.h>

#include "collective/choose/schedule_choice.h"

/* Writes the site of each rank: the number of its first rank. pairs: by sender * ranks + receiver, of
 * which the shorter direction counts. joins: 3 * ranks numbers, for use inside. */
void found_sites(const struct path_figures *pairs, uint32_t ranks, uint32_t *site_of, uint64_t *joins);

/* ---- place order ----------------------------------------------------------------------------------- */

/*
 * An order of ranks by what was measured of their paths: a ring over all places avoids slow
 * paths, then long ones; the first rank of a site has the best paths to the others.
 *
 * The lowest rate between neighbors counts, then the sum of their round trips. Rates within a quarter of an
 * octave are equal, and another order than the present one has to be better by PLACE_ORDER_GAIN, so that
 * noise changes nothing. Up to PLACE_ORDER_EXACT nodes (sites, or ranks of a site) all orders are compared;
 * beyond that parts of an order are turned round while that is better.
 */

/* Bytes of memory that place_order() needs, aligned for uint64_t. */
size_t place_order_memory(uint32_t ranks);
/* Writes the ranks in their new order, those of a site one after the other, by the present map and the paths
 * between all ranks (by sender * ranks + receiver; the slower direction counts, an unknown rate as
 * PATHS_RATE_BPS). The same on every processor. */
void place_order(const struct path_figures *pairs, uint32_t ranks, const struct site_map *map,
                 uint32_t *order, void *memory);

#endif
