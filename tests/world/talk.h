/*
 * talk.h - the users of a connection: what they send and receive, and whether it came out right.
 *
 * A talk is the list of a pair's messages, each way in the order of their times. When a host crashes, the
 * messages that either side had begun end with the connection; the next connection goes on with those
 * after them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_TALK_H
#define LH_TESTS_WORLD_TALK_H

#include <longhaul/queue.h>

#include "world/healing.h"

void talk_make(struct world *world, struct pair *pair);
/* The user of this side sends and posts what is due; keeps the earliest moment to be asked again. */
void talk_act(struct world *world, struct pair *pair, uint32_t side, lh_time *next);
/* An entry came out of a queue of that host. */
void talk_on_entry(struct world *world, uint32_t host, uint32_t queue, const struct lh_completion *entry);
/* Cancels one request of the message that the event made. */
void talk_cancel(struct world *world, const struct plan_event *event);
/* Looks at what has ended at one side. */
void talk_harvest(struct world *world, struct pair *pair, uint32_t side);
/* What the product counted, before it goes: as many messages as its users saw. */
void talk_check_counters(struct world *world, struct pair *pair, uint32_t side,
                         const struct lh_stats *stats);
/* The side's connection is closed: every request of it must have ended. */
void talk_on_closed(struct world *world, struct pair *pair, uint32_t side);
/* Whether everything that has to end has ended. */
bool talk_over(const struct pair *pair);
/* What must hold of each message when the run ends. */
void talk_check(struct world *world, struct pair *pair);
/* What is left of it: messages that are not over. */
struct work_left talk_left(const struct world *world, const struct pair *pair);

#endif
