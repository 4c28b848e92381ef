/*
 * histogram.h - times from nanoseconds to hours, counted in buckets of at most 1/16 of their value.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PATH_HISTOGRAM_H
#define LH_CLI_PATH_HISTOGRAM_H

#include <stdint.h>

#define PATH_HISTOGRAM_STEPS   16u
#define PATH_HISTOGRAM_BUCKETS (48u * PATH_HISTOGRAM_STEPS)

struct path_histogram {
    uint64_t bucket[PATH_HISTOGRAM_BUCKETS];
    uint64_t count;
    int64_t max_ns;
    double sum_ns;
};

/* Counts one time; a negative one as 0. */
void path_histogram_add(struct path_histogram *histogram, int64_t ns);
/* Of all times counted, in nanoseconds; 0 where there is none. The share is 0 to 1: 0.99 gives p99, as
 * the upper end of its bucket, at most the largest time. */
double path_histogram_mean_ns(const struct path_histogram *histogram);
int64_t path_histogram_quantile_ns(const struct path_histogram *histogram, double share);

#endif
