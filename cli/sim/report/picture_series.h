/*
 * picture_series.h - queues.svg and rates.svg: queues and rates of links over time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_REPORT_PICTURE_SERIES_H
#define LH_CLI_SIM_REPORT_PICTURE_SERIES_H

#include "cli/results/folder.h"
#include "cli/sim/report/results.h"

/* queues.svg or rates.svg, one panel a point, with its script. CLI_PROCEED, or reports the cause. */
int cli_picture_series(const struct cli_sim_results *results, const struct cli_folder *folder, bool rates);

#endif
