/*
 * summary.h - the results of a simulation for programs: summary.json and sweep.csv.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_REPORT_SUMMARY_H
#define LH_CLI_SIM_REPORT_SUMMARY_H

#include "cli/results/folder.h"
#include "cli/sim/report/results.h"

/* Everything. */
void cli_sim_json(const struct cli_sim_results *results, FILE *out);
/* sweep.csv, a row a point. CLI_PROCEED, or reports the cause. */
int cli_sim_sweep_csv(const struct cli_sim_results *results, const struct cli_folder *folder);

#endif
