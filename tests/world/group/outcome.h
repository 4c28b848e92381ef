/*
 * outcome.h - whether a collective ended as it may: with the right data, or with an error that has a reason.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_GROUP_OUTCOME_H
#define LH_TESTS_WORLD_GROUP_OUTCOME_H

#include "world/group/state.h"

/* A call is done. */
void outcome_check(struct world *world, uint32_t host, uint32_t event, struct lh_collective_result result);
/* A call was refused: whether it may be. */
void outcome_check_refusal(struct world *world, uint32_t host, uint32_t event, int error);
/* At the end: nothing has changed since. */
void outcome_check_kept(struct world *world, uint32_t host, uint32_t event);

#endif
