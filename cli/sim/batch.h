/*
 * batch.h - all runs of a plan in sequence, and their report.
 *
 * When a run fails or a signal comes, the runs before are still reported.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_BATCH_H
#define LH_CLI_SIM_BATCH_H

#include "cli/sim/scenario/sweep.h"

/* output: the folder for all files; json: the file for summary.json, "-" for stdout instead of the table.
 * NULL: none. Both are found to be writable before the first run. Returns the exit status. */
int cli_sim_batch(const struct cli_sim_plan *plan, const char *output, const char *json);

#endif
