/*
 * commands.h - the commands that carry out a plan.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PLAN_COMMANDS_H
#define LH_CLI_PLAN_COMMANDS_H

#include "cli/plan/order.h"

/* The commands that do what was planned, to be typed as they stand. False: there is no plan,
 * or only the model can do it. */
#define CLI_PLAN_COMMAND_MAX 256
struct cli_plan_commands {
    char recv[CLI_PLAN_COMMAND_MAX];
    char send[CLI_PLAN_COMMAND_MAX];
};
bool cli_plan_commands(const struct cli_plan_point *point, struct cli_plan_commands *commands);
/* Bytes in flight that fill the link with that choice. */
uint64_t cli_plan_in_flight(const struct lh_plan_question *question, const struct lh_plan_choice *choice);
/* A sentence where that is more than the default window, else ""; returns out. */
char *cli_plan_window_format(const struct cli_plan_point *point, char out[static CLI_PLAN_COMMAND_MAX]);

#endif
