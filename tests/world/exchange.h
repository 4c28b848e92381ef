/*
 * exchange.h - the users of SDR queue pairs: receives, sends of all kinds, and a close look at the bitmaps.
 *
 * An exchange is one receive and what the peer makes of its clear-to-send: a whole send, a part, a
 * stream of chunks in any order (some twice, some never), one that is aborted, or none. The receive is
 * completed when all is there or its time is up, packets on the way or not.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_EXCHANGE_H
#define LH_TESTS_WORLD_EXCHANGE_H

#include "world/healing.h"

void exchange_make(struct world *world, struct pair *pair);
/* What the user of this side does now; keeps the earliest moment at which it wants to be asked again. */
void exchange_act(struct world *world, struct pair *pair, uint32_t side, lh_time *next);
void exchange_harvest(struct world *world, struct pair *pair, uint32_t side);
/* Before and after the side's queue pair is destroyed. */
void exchange_on_closing(struct world *world, struct pair *pair, uint32_t side);
void exchange_on_closed(struct pair *pair, uint32_t side);
bool exchange_over(const struct pair *pair);
void exchange_check(struct world *world, struct pair *pair);
/* What is left of it, and whether its users still wait. */
struct work_left exchange_left(const struct world *world, const struct pair *pair);

#endif
