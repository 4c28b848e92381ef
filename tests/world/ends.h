/*
 * ends.h - opening, running and losing the ends of a pair.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_ENDS_H
#define LH_TESTS_WORLD_ENDS_H

#include "world/world.h"

/* Opens both ends of a pair and lets them know each other. When memory was refused nothing is open, and
 * retry_ns says when to try again. */
void pair_open(struct world *world, struct pair *pair);
/* Opens what waits to be opened. Returns when to call again. */
lh_time pairs_open_due(struct world *world);
/* Ends it as its program would. `muted`: the host crashes, nothing of it reaches the network. */
void end_close(struct world *world, struct end *end, bool muted);

/* An inner connection may have been opened: from now on its packets count as the end's. */
void end_note_sub(struct world *world, struct end *end);

/* Everything that is due now on hosts that run, until nothing is. */
void ends_progress(struct world *world);
/* When something is due next. */
lh_time ends_next(struct world *world);
/* A packet came to a port. */
void ends_on_arrival(struct world *world, uint32_t host, uint16_t port, lh_time at_ns);

#endif
