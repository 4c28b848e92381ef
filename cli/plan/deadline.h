/*
 * deadline.h - messages that may be incomplete: what bounded completion brings.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PLAN_DEADLINE_H
#define LH_CLI_PLAN_DEADLINE_H

#include "cli/plan/order.h"

/* Fills in point->deadline where some may be missing. CLI_PROCEED, or reports the cause. */
int cli_plan_deadline(const struct cli_plan_order *order, struct cli_plan_point *point);
/* False: more than that would be missing. */
bool cli_plan_deadline_found(const struct cli_plan_point *point);
#define CLI_PLAN_DEADLINE_MAX 768
/* The same in sentences, a line each; returns out. */
char *cli_plan_deadline_format(const struct cli_plan_order *order, const struct cli_plan_point *point,
                               char out[static CLI_PLAN_DEADLINE_MAX]);

#endif
