/*
 * mean.h - means over seeds, with their confidence intervals.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_REPORT_MEAN_H
#define LH_CLI_SIM_REPORT_MEAN_H

/* Mean of count values, and half the width of its 95 % confidence interval (Student's t; NaN for one
 * value). */
double cli_mean_ci95(const double *values, unsigned count, double *half);

#endif
