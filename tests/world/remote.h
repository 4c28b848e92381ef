/*
 * remote.h - users of one-sided operations: what they expose, write and read, and whether it came out right.
 *
 * Keys pass from user to user by other means. After a crash, what was exposed is exposed to the next
 * connection; operations that had begun ended with theirs. Some operations are not allowed: with a key that
 * is none, or of another connection, beyond the region, with an access or a notification that it lacks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_REMOTE_H
#define LH_TESTS_WORLD_REMOTE_H

#include <longhaul/queue.h>

#include "world/healing.h"

void remote_make(struct world *world, struct pair *pair);
/* The user of this side exposes memory and starts operations that are due; keeps the earliest moment to be
 * asked again. */
void remote_act(struct world *world, struct pair *pair, uint32_t side, lh_time *next);
/* An entry of an operation came out of a queue of that host, or a notification. */
void remote_on_entry(struct world *world, uint32_t host, uint32_t queue, const struct lh_completion *entry);
void remote_on_notification(struct world *world, uint32_t host, const struct lh_completion *entry);
/* Cancels the operation that the event names. */
void remote_cancel(struct world *world, const struct plan_event *event);
/* Revokes what the event names. */
void remote_revoke(struct world *world, const struct plan_event *event);
/* Looks at what has ended at one side. */
void remote_harvest(struct world *world, struct pair *pair, uint32_t side);
/* The side's connection is closed: its operations must have ended, and nothing is exposed any more. */
void remote_on_closed(struct world *world, struct pair *pair, uint32_t side);
/* Whether everything that has to end has ended. */
bool remote_over(const struct pair *pair);
/* What must hold when the run ends. */
void remote_check(struct world *world, struct pair *pair);
struct work_left remote_left(const struct world *world, const struct pair *pair);

#endif
