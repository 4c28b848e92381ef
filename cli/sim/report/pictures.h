/*
 * pictures.h - the pictures of a simulation, by gnuplot.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_REPORT_PICTURES_H
#define LH_CLI_SIM_REPORT_PICTURES_H

#include "cli/results/folder.h"
#include "cli/sim/report/results.h"

/* All pictures of the results, in the folder that their own folders are in. CLI_PROCEED, or reports the
 * cause; their scripts are then there all the same. */
int cli_pictures(const struct cli_sim_results *results, const struct cli_folder *folder);

#endif
