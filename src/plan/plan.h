/*
 * plan.h - the planner, for its other parts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PLAN_PLAN_H
#define LH_PLAN_PLAN_H

#include <longhaul/plan.h>

/* lh_plan_make(3), for messages by themselves or for those of a stream. */
int plan_make(const struct lh_plan_question *question, bool stream, struct lh_plan *plan);

#endif
