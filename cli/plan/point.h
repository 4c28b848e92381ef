/*
 * point.h - one size and one loss: the plan, and the schemes that it is compared with.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PLAN_POINT_H
#define LH_CLI_PLAN_POINT_H

#include "cli/plan/order.h"

/* Plans for a size and a loss of the lists, and compares the schemes there. CLI_PROCEED, or reports the
 * cause. */
int cli_plan_point(const struct cli_plan_order *order, unsigned size, unsigned loss,
                   struct cli_plan_point *point);

#endif
