/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/path/histogram.h"

/* Times below PATH_HISTOGRAM_STEPS have a bucket each; above, each power of two has that many. */
static unsigned bucket_of(uint64_t ns)
{
    unsigned octave = 0;
    while (ns >= 2 * PATH_HISTOGRAM_STEPS) {
        ns >>= 1;
        octave++;
    }
    unsigned bucket = octave * PATH_HISTOGRAM_STEPS + (unsigned)ns;
    return bucket < PATH_HISTOGRAM_BUCKETS ? bucket : PATH_HISTOGRAM_BUCKETS - 1;
}

static int64_t bucket_end(unsigned bucket)
{
    if (bucket < 2 * PATH_HISTOGRAM_STEPS)
        return (int64_t)bucket;
    unsigned octave = bucket / PATH_HISTOGRAM_STEPS - 1;
    uint64_t step = bucket % PATH_HISTOGRAM_STEPS + PATH_HISTOGRAM_STEPS;
    return (int64_t)(((step + 1) << octave) - 1);
}

void path_histogram_add(struct path_histogram *histogram, int64_t ns)
{
    if (ns < 0)
        ns = 0;
    histogram->bucket[bucket_of((uint64_t)ns)]++;
    histogram->count++;
    histogram->sum_ns += (double)ns;
    if (ns > histogram->max_ns)
        histogram->max_ns = ns;
}

double path_histogram_mean_ns(const struct path_histogram *histogram)
{
    return histogram->count ? histogram->sum_ns / (double)histogram->count : 0;
}

int64_t path_histogram_quantile_ns(const struct path_histogram *histogram, double share)
{
    double wanted = share * (double)histogram->count;
    uint64_t seen = 0;
    for (unsigned i = 0; histogram->count && i < PATH_HISTOGRAM_BUCKETS; i++) {
        seen += histogram->bucket[i];
        if ((double)seen >= wanted && seen)
            return bucket_end(i) < histogram->max_ns ? bucket_end(i) : histogram->max_ns;
    }
    return histogram->max_ns;
}
