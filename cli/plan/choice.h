/*
 * choice.h - the question at one point, and what the planner chose there.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PLAN_CHOICE_H
#define LH_CLI_PLAN_CHOICE_H

#include "cli/plan/order.h"

/* The question for a size and a loss of the lists. */
void cli_plan_question(const struct cli_plan_order *order, unsigned size, unsigned loss,
                       struct lh_plan_question *question);
/* The planner's choice, or what it would be without limits. */
const struct lh_plan_choice *cli_plan_choice(const struct cli_plan_point *point);

/* Above this loss of chunks, retransmissions take time of the link that the model ignores. */
#define CLI_PLAN_CHUNK_LOSS_SURE 0.1
#define CLI_PLAN_CHUNK_LOSS_NOTE                                                                           \
    "chunk loss above 10 %: the model ignores the time of retransmissions on the link, so times are too "  \
    "short"
/* The share of chunks that is lost with the planner's choice is above that. */
bool cli_plan_loses_much(const struct cli_plan_point *point);

#endif
