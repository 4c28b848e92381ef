/*
 * sim_picture.h - pictures of results: scripts for gnuplot and their data, beside the other files.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_SIM_PICTURE_H
#define CLI_SIM_PICTURE_H

#include "sim_results.h"

/* fct.dat: completion times and slowdowns as quantiles, all flows first, then each class that has any.
 * Needs the samples. CLI_PROCEED, or says what is wrong. */
int cli_picture_data(const struct cli_folder *folder, const struct cli_figures *figures);

/* All pictures of the results, in the folder that their own folders are in. CLI_PROCEED, or says what
 * is wrong; their scripts are then there all the same. */
int cli_pictures(const struct cli_sim_results *results, const struct cli_folder *folder);

/* sim_picture_series.c: queues.svg or rates.svg, one panel a point. */
int cli_picture_series(const struct cli_sim_results *results, const struct cli_folder *folder, bool rates);
/* sim_picture_sweep.c: sweep.svg, one panel a figure. */
int cli_picture_sweep(const struct cli_sim_results *results, const struct cli_folder *folder);

#define CLI_PICTURE_TITLE_MAX 320
/* The title into out[CLI_PICTURE_TITLE_MAX]; it says when only the first points, or the first seed, are
 * shown. */
void cli_picture_title(const struct cli_sim_results *results, unsigned shown, char *out);
/* A run's folder as seen from the folder of the pictures, with a slash; "" when they are the same. */
void cli_picture_path(const struct cli_folder *folder, const struct cli_sim_run *run, char *out,
                      size_t size);

#endif
