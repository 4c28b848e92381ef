/*
 * describe.h - a plan in words, and as the command line that runs it again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_DESCRIBE_H
#define LH_TESTS_WORLD_DESCRIBE_H

#include "world/world.h"

/* What is left of the plan: hosts, pairs, features, events. */
void describe_plan(FILE *out, const struct plan *plan);
/* "--seed 17 --only 3,5-9,loss,skew", or --without, whichever is shorter. */
void describe_command(FILE *out, const struct plan *plan);
/* Leaves out what the list names (numbers and ranges of events, names of features and of kinds of events);
 * with `only`, everything else. False when a word means nothing. */
bool describe_apply(struct plan *plan, const char *list, bool only);

#endif
