/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/report/results.h"

#include "cli/sim/report/mean.h"

#include <math.h>
#include <stdlib.h>

const struct cli_sim_run *cli_sim_result(const struct cli_sim_results *results, unsigned point,
                                         unsigned seed)
{
    return &results->runs[(size_t)point * results->plan->seeds + seed];
}

unsigned cli_sim_points(const struct cli_sim_results *results)
{
    return (results->done + results->plan->seeds - 1) / results->plan->seeds;
}

unsigned cli_sim_seeds(const struct cli_sim_results *results, unsigned point)
{
    unsigned seeds = results->plan->seeds, left = results->done - point * seeds;
    return left < seeds ? left : seeds;
}

double cli_sim_mean(const struct cli_sim_results *results, unsigned point, unsigned figure, double *half)
{
    unsigned seeds = cli_sim_seeds(results, point), known = 0;
    double *values = calloc(seeds, sizeof *values), mean = NAN;
    *half = NAN;
    if (!values)
        return NAN;
    for (unsigned seed = 0; seed < seeds; seed++) {
        double value = cli_sim_result(results, point, seed)->figures.value[figure];
        if (isfinite(value))
            values[known++] = value;
    }
    mean = cli_mean_ci95(values, known, half);
    free(values);
    return mean;
}
