/*
 * sim_report.h - the results of a simulation as tables, summaries, notes and pictures.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_SIM_REPORT_H
#define LH_CLI_SIM_SIM_REPORT_H

#include <stdbool.h>

#include "cli/results/result_file.h"
#include "cli/sim/scenario.h"
#include "cli/sim/sim_results.h"

/* ---- results --------------------------------------------------------------------------------------- */

/* What came out of all runs of a plan, and its ways to paper. */

struct cli_sim_results {
    const struct cli_sim_plan *plan;
    const char *title;
    struct cli_sim_run *runs; /* plan->seeds of each point, point by point */
    unsigned done;            /* the first ones; the rest was not run */
};

/* Points of which any run is done, and how many runs of a point are. */
unsigned cli_sim_points(const struct cli_sim_results *results);
unsigned cli_sim_seeds(const struct cli_sim_results *results, unsigned point);

const struct cli_sim_run *cli_sim_result(const struct cli_sim_results *results, unsigned point,
                                         unsigned seed);
/* Over the seeds of a point; *half: of the 95 % confidence interval, NaN with one seed. Percentiles of
 * operations are those of all seeds together, without an interval. */
double cli_sim_mean(const struct cli_sim_results *results, unsigned point, unsigned figure, double *half);

/* ---- table ----------------------------------------------------------------------------------------- */

void cli_sim_report(const struct cli_sim_results *results);

/* ---- mean ------------------------------------------------------------------------------------------ */

/* Means over seeds, with their confidence intervals. */

/* Mean of count values, and half the width of its 95 % confidence interval (Student's t; NaN for one
 * value). */
double cli_mean_ci95(const double *values, unsigned count, double *half);

/* ---- notes ----------------------------------------------------------------------------------------- */

/* Notes on the results, on stderr. */

/* Before the first run: what is asked for and not written, since there is no folder for it; more load than
 * cables carry. */
void cli_sim_notes_before(const struct cli_sim_plan *plan, bool has_folder);
/* Of results: retransmissions without loss; truncated captures. */
void cli_sim_notes_after(const struct cli_sim_results *results);

/* ---- sim summary ----------------------------------------------------------------------------------- */

/* The results of a simulation for programs: summary.json and sweep.csv. */

/* Everything. */
void cli_sim_json(const struct cli_sim_results *results, FILE *out);
/* sweep.csv, a row a point. CLI_PROCEED, or reports the cause. */
int cli_sim_sweep_csv(const struct cli_sim_results *results, const struct cli_folder *folder);

/* ---- sim pictures ---------------------------------------------------------------------------------- */

/* Queues.svg and rates.svg: queues and rates of links over time. */

/* ---- picture slowdowns ----------------------------------------------------------------------------- */

/* Fct.svg: the distribution of slowdowns, of each class of flows or of each point. */

/* fct.dat: completion times and slowdowns as quantiles, all flows first, then each class that has any.
 * Needs the samples. CLI_PROCEED, or reports the cause. */
int cli_picture_data(const struct cli_folder *folder, const struct cli_figures *figures);

/* ---- pictures -------------------------------------------------------------------------------------- */

/* The pictures of a simulation, by gnuplot. */

/* All pictures of the results, in the folder that their own folders are in. CLI_PROCEED, or reports the
 * cause; their scripts are then there all the same. */
int cli_pictures(const struct cli_sim_results *results, const struct cli_folder *folder);

#endif
