/*
 * sim_find.h - the ready scenarios: those that come with Longhaul.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_SIM_FIND_H
#define CLI_SIM_FIND_H

#include <stdbool.h>
#include <stddef.h>

/* The path of the scenario that was named: a file as it is, or a ready one without its ending, as
 * cli_sim_list() prints it. CLI_PROCEED, or says what is wrong. */
int cli_sim_find(const char *name, char *path, size_t size);
/* The path of a distribution of sizes that comes with Longhaul, by its name without a folder. false: there is
 * none. */
bool cli_sim_find_sizes(const char *name, char *path, size_t size);
/* Prints the ready ones, each with its first comment, and the distributions. Returns the exit status. */
int cli_sim_list(void);

#endif
