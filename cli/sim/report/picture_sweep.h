/*
 * picture_sweep.h - sweep.svg: figures over the values of the swept keys.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_REPORT_PICTURE_SWEEP_H
#define LH_CLI_SIM_REPORT_PICTURE_SWEEP_H

#include "cli/results/folder.h"
#include "cli/sim/report/results.h"

/* sweep.svg, one panel a figure, with its script. CLI_PROCEED, or reports the cause. */
int cli_picture_sweep(const struct cli_sim_results *results, const struct cli_folder *folder);

#endif
