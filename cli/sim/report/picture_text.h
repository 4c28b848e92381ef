/*
 * picture_text.h - what all pictures of a simulation share: their title, and where their data is.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_REPORT_PICTURE_TEXT_H
#define LH_CLI_SIM_REPORT_PICTURE_TEXT_H

#include "cli/results/folder.h"
#include "cli/sim/report/results.h"
#include "cli/sim/run/run.h"

#define CLI_PICTURE_TITLE_MAX 320
/* The title into out[CLI_PICTURE_TITLE_MAX]; also when only the first points, or the first seed, are
 * shown. */
void cli_picture_title(const struct cli_sim_results *results, unsigned shown, char *out);
/* A run's folder as seen from the folder of the pictures, with a slash; "" when they are the same. */
void cli_picture_path(const struct cli_folder *folder, const struct cli_sim_run *run, char *out,
                      size_t size);

#endif
