/*
 * map.h - sizes over losses, on the terminal and as a picture.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PLAN_MAP_H
#define LH_CLI_PLAN_MAP_H

#include "cli/plan/order.h"

/* Sizes over losses, on the terminal and as a picture. */
int cli_plan_map(const struct cli_plan_order *order);

#endif
