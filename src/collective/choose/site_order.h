/*
 * place_order.h - an order of ranks by what was measured of their paths: a ring over all places avoids slow
 * paths, then long ones; the first rank of a site has the best paths to the others.
 *
 * The lowest rate between neighbors counts, then the sum of their round trips. Rates within a quarter of an
 * octave are equal, and another order than the present one has to be better by PLACE_ORDER_GAIN, so that
 * noise changes nothing. Up to PLACE_ORDER_EXACT nodes (sites, or ranks of a site) all orders are compared;
 * beyond that parts of an order are turned round while that is better.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_CHOOSE_PLACE_ORDER_H
#define LH_COLLECTIVE_CHOOSE_PLACE_ORDER_H

#include <stddef.h>

#include "collective/choose/paths.h"

#define PLACE_ORDER_EXACT 8u
#define PLACE_ORDER_GAIN  1.25

/* Bytes of memory that place_order() needs, aligned for uint64_t. */
size_t place_order_memory(uint32_t ranks);
/* Writes the ranks in their new order, those of a site one after the other, by the present map and the paths
 * between all ranks (by sender * ranks + receiver; the slower direction counts, an unknown rate as
 * PATHS_RATE_BPS). The same on every processor. */
void place_order(const struct path_figures *pairs, uint32_t ranks, const struct site_map *map,
                 uint32_t *order, void *memory);

#endif
