/*
 * json.h - plans as JSON.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PLAN_JSON_H
#define LH_CLI_PLAN_JSON_H

#include "cli/plan/order.h"

/* CLI_PROCEED, or reports the cause. */
int cli_plan_json(const struct cli_plan_order *order);

#endif
