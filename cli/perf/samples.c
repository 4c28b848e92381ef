/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/perf/samples.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

void cli_samples_sort(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
}

double cli_samples_mean(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return count ? sum / (double)count : 0;
}

double cli_samples_percentile(const double *sorted, size_t count, double share)
{
    assert(count && share > 0 && share <= 1);
    /* The small term undoes what 0.999 * 1000 is above 999 in binary. */
    size_t rank = (size_t)ceil(share * (double)count - 1e-9);
    if (rank < 1)
        rank = 1;
    return sorted[(rank < count ? rank : count) - 1];
}
