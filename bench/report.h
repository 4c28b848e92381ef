/*
 * report.h - what every benchmark prints: medians over repeats, and one JSON line a result.
 *
 * {"name":…,"value":…,"unit":…,"reference":…,"reference_value":…,"ratio":…,"runs":…}
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_BENCH_REPORT_H
#define LH_BENCH_REPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* CLOCK_THREAD_CPUTIME_ID: what else runs on the core is not counted. */
static inline double report_seconds(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static inline int report_compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The q-quantile (0 to 1) of values, which get sorted; nearest rank. */
static inline double report_quantile(double *values, size_t count, double q)
{
    qsort(values, count, sizeof *values, report_compare);
    size_t rank = (size_t)(q * (double)count);
    return values[rank < count ? rank : count - 1];
}

static inline double report_mean(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

/* Where the JSON lines go: the file after "--json" in the arguments, or nowhere. Appends. */
static inline FILE *report_open(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "--json") == 0) {
            FILE *file = fopen(argv[i + 1], "a");
            if (!file)
                perror(argv[i + 1]);
            return file;
        }
    return NULL;
}

static inline void report_line(FILE *file, const char *name, double value, const char *unit,
                               const char *reference, double reference_value, unsigned runs)
{
    if (!file)
        return;
    fprintf(file,
            "{\"name\":\"%s\",\"value\":%.6g,\"unit\":\"%s\",\"reference\":\"%s\",\"reference_value\":%.6g,"
            "\"ratio\":%.4g,\"runs\":%u}\n",
            name, value, unit, reference, reference_value,
            reference_value > 0 ? value / reference_value : 0, runs);
}

#endif
