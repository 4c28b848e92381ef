/*
 * ready_scenarios.h - the ready scenarios: those that come with Longhaul.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_SCENARIO_READY_SCENARIOS_H
#define LH_CLI_SIM_SCENARIO_READY_SCENARIOS_H

#include <stdbool.h>
#include <stddef.h>

/* The path of the scenario that was named: a file as it is, or a ready one without its ending, as
 * cli_scenarios_list() prints it. CLI_PROCEED, or reports the cause. */
int cli_scenario_path(const char *name, char *path, size_t size);
/* The path of a distribution of sizes that comes with Longhaul, by its name without a folder. false: there is
 * none. */
bool cli_sizes_path(const char *name, char *path, size_t size);
/* Prints the ready ones, each with its first comment, and the distributions. Returns the exit status. */
int cli_scenarios_list(void);

#endif
