/*
 * draw_engines.h - lives with engines: who shares one, which queues it has, how they are polled, and what
 * happens to its peers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_DRAW_ENGINES_H
#define LH_TESTS_WORLD_DRAW_ENGINES_H

#include "world/draw.h"

/* How many hosts and pairs there are, and the engine of each host. Before the links are drawn. */
void draw_engines(struct plan *plan, struct lh_prng *prng);
/* Between which hosts a pair lies, once its own part is drawn, and which of its ends share an engine. */
void draw_peer(struct plan *plan, uint32_t number, struct lh_prng *prng);
/* The messages of one pair, the events from `first` on, may be many small ones instead. */
void draw_small(struct plan *plan, uint32_t first, struct lh_prng *prng);
/* Whose receives choose messages by their tags. */
void draw_matches(struct plan *plan, struct lh_prng *prng);
/* Connections that are renewed, hosts that die for ever, floods. */
void draw_peer_faults(struct plan *plan, struct lh_prng *prng);

#endif
