/*
 * table.h - plans on stdout.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PLAN_TABLE_H
#define LH_CLI_PLAN_TABLE_H

#include "cli/plan/order.h"

/* One point with all its schemes, and several with a row each. */
void cli_plan_table(const struct cli_plan_order *order, const struct cli_plan_point *point);
int cli_plan_sweep(const struct cli_plan_order *order);

#endif
