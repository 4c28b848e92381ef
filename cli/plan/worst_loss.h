/*
 * worst_loss.h - a plan for the highest of several losses: what it brings at the lowest.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PLAN_WORST_LOSS_H
#define LH_CLI_PLAN_WORST_LOSS_H

#include "cli/plan/order.h"

/* Fills in point->worst. CLI_PROCEED, or reports the cause. */
int cli_plan_worst(const struct cli_plan_order *order, struct cli_plan_point *point);
#define CLI_PLAN_WORST_MAX 512
/* The same in sentences, a line each; returns out. */
char *cli_plan_worst_format(const struct cli_plan_order *order, const struct cli_plan_point *point,
                            char out[static CLI_PLAN_WORST_MAX]);

#endif
