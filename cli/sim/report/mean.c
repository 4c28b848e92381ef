/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/report/mean.h"

#include "cli/perf/samples.h"

#include <math.h>

double cli_mean_ci95(const double *values, unsigned count, double *half)
{
    /* Student's t, two-sided 95 %, for 1 degree of freedom and on. */
    static const double t95[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                 2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                 2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
    double mean = cli_samples_mean(values, count), squares = 0;
    *half = NAN;
    if (count < 2)
        return count ? mean : NAN;
    for (unsigned i = 0; i < count; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    unsigned degrees = count - 1;
    double t = degrees <= sizeof t95 / sizeof t95[0] ? t95[degrees - 1] : 1.96;
    *half = t * sqrt(squares / degrees / count);
    return mean;
}
