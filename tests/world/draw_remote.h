/*
 * draw_remote.h - the one-sided operations of a plan.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_DRAW_REMOTE_H
#define LH_TESTS_WORLD_DRAW_REMOTE_H

#include "world/draw.h"

/* What is exposed, and what peers do with it. Last, of its own generator: all else is as it was. */
void draw_remote(struct plan *plan, struct lh_prng *prng);

#endif
