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

/* Durations of all seeds together. */
static double pooled(const struct cli_sim_results *results, unsigned point, unsigned figure)
{
    double values[CLI_FIGURES] = {0};
    struct cli_operations all = {0};
    unsigned seeds = cli_sim_seeds(results, point);
    for (unsigned seed = 0; seed < seeds; seed++)
        all.count += cli_sim_result(results, point, seed)->figures.operations.count;
    all.seconds = calloc(all.count + 1, sizeof *all.seconds);
    if (!all.seconds)
        return NAN;
    all.count = 0;
    for (unsigned seed = 0; seed < seeds; seed++) {
        const struct cli_operations *some = &cli_sim_result(results, point, seed)->figures.operations;
        for (size_t i = 0; i < some->count; i++)
            all.seconds[all.count++] = some->seconds[i];
    }
    cli_operations_sum_up(&all, values);
    cli_operations_free(&all);
    return values[figure];
}

static bool is_pooled(unsigned figure)
{
    return figure == CLI_FIGURE_OPERATION_P50 || figure == CLI_FIGURE_OPERATION_P99 ||
           figure == CLI_FIGURE_OPERATION_MAX;
}

double cli_sim_mean(const struct cli_sim_results *results, unsigned point, unsigned figure, double *half)
{
    *half = NAN;
    if (is_pooled(figure))
        return pooled(results, point, figure);
    unsigned seeds = cli_sim_seeds(results, point), known = 0;
    double *values = calloc(seeds, sizeof *values), mean = NAN;
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
