/*
 * overdue.h - deadlines of receives: each ends within its own, by its host's clock, while that host runs.
 *
 * A deadline counts from the post of its receive, or from the end of the one before it, whichever is later.
 * While the host stands still, its first worker is held up, or its clock jumps, nothing can end: what is due
 * then ends when the host runs again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_OVERDUE_H
#define LH_TESTS_WORLD_OVERDUE_H

#include "world/world.h"

/* All that was due now has run. */
void overdue_on_moment(struct world *world);
/* The clock of the host jumps, between two such moments. */
void overdue_on_jump(struct world *world, uint32_t host);
/* The end has posted a receive, of a message of so many bytes, or a buffer of them when that is less. */
void overdue_on_posted(struct world *world, struct end *end, uint32_t event, uint64_t bytes);
/* It is over; result: NULL when it was canceled. Entries come in any order: it is checked when all that were
 * posted before it are over. */
void overdue_on_over(struct world *world, struct end *end, uint32_t event, const struct lh_result *result);
/* The next connection of the end begins anew. */
void overdue_on_closed(struct end *end);

#endif
