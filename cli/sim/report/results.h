/*
 * results.h - what came out of all runs of a plan, and its ways to paper.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_REPORT_RESULTS_H
#define LH_CLI_SIM_REPORT_RESULTS_H

#include "cli/sim/run/run.h"
#include "cli/sim/scenario/sweep.h"

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

#endif
