/*
 * picture_slowdowns.h - fct.svg: the distribution of slowdowns, of each class of flows or of each point.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_REPORT_PICTURE_SLOWDOWNS_H
#define LH_CLI_SIM_REPORT_PICTURE_SLOWDOWNS_H

#include "cli/results/folder.h"
#include "cli/sim/report/results.h"
#include "cli/sim/run/figures.h"

/* fct.dat: completion times and slowdowns as quantiles, all flows first, then each class that has any.
 * Needs the samples. CLI_PROCEED, or reports the cause. */
int cli_picture_data(const struct cli_folder *folder, const struct cli_figures *figures);

/* fct.svg, with its script fct.gp, which stays where gnuplot fails. CLI_PROCEED, or reports the cause. */
int cli_picture_slowdowns(const struct cli_sim_results *results, const struct cli_folder *folder);

#endif
