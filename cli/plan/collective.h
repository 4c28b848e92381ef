/*
 * collective.h - longhaul plan --collective: schedule, blocks and schemes that suit a collective.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PLAN_COLLECTIVE_H
#define LH_CLI_PLAN_COLLECTIVE_H

/* The command, from its arguments on. Returns the exit status. */
int cli_plan_collective(int argc, char **argv);

#endif
