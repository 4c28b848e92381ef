/*
 * draw.h - what a seed decides of a group: its ranks, what they call, and what happens to them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_GROUP_DRAW_H
#define LH_TESTS_WORLD_GROUP_DRAW_H

#include "world/draw.h"

/* How many ranks; before the links are drawn. */
void draw_ranks(struct plan *plan, struct lh_prng *prng);
/* The rest. wild: there are faults. */
void draw_group(struct plan *plan, struct lh_prng *prng, bool wild);
/* Then which hops may lose a part of what crosses them, and their deadlines. */
void draw_bounded(struct plan *plan, struct lh_prng *prng);

#endif
