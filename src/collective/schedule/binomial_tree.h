/*
 * binomial_tree.h - each rank that has something passes half of the ranks that it serves to another one
 * (RDMC 4.3): broadcast and reduce of all blocks, scatter and gather of the parts of those ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_SCHEDULE_BINOMIAL_TREE_H
#define LH_COLLECTIVE_SCHEDULE_BINOMIAL_TREE_H

#include "collective/schedule/schedule.h"

extern const struct schedule binomial_broadcast;
extern const struct schedule binomial_reduce;
extern const struct schedule binomial_scatter;
extern const struct schedule binomial_gather;

#endif
