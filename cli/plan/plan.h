/*
 * plan.h - longhaul plan.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PLAN_PLAN_H
#define LH_CLI_PLAN_PLAN_H

/* The command, with its own argc and argv; returns the exit status. */
int cli_plan(int argc, char **argv);

#endif
