/*
 * samples.h - mean and percentiles of a set of measurements.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PERF_SAMPLES_H
#define LH_CLI_PERF_SAMPLES_H

#include <stddef.h>

/* Sorts ascending, in place. */
void cli_samples_sort(double *values, size_t count);
double cli_samples_mean(const double *values, size_t count);
/* The smallest of the sorted values that at least that share (above 0, up to 1) of them do not exceed:
 * nearest rank, so it is always one that was measured. count at least 1. */
double cli_samples_percentile(const double *sorted, size_t count, double share);

#endif
