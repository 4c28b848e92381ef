/*
 * summary.c - mean and percentiles of samples, without sorting them all.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/model.h>

#include <assert.h>
#include <math.h>

#include "base/error.h"

static void swap(double *a, double *b)
{
    double kept = *a;
    *a = *b;
    *b = kept;
}

/* Puts the value of this rank (from 0) into its place, smaller ones before it: quickselect with a median of
 * three, and equal values on both sides, so that many equal ones do not make it slow. */
static double select_rank(double *values, size_t count, size_t rank)
{
    size_t low = 0;
    size_t high = count - 1;
    while (low < high) { /* each round leaves out a value at least, half of them as a rule */
        size_t middle = low + (high - low) / 2;
        if (values[middle] < values[low])
            swap(&values[middle], &values[low]);
        if (values[high] < values[low])
            swap(&values[high], &values[low]);
        if (values[high] < values[middle])
            swap(&values[high], &values[middle]);
        double pivot = values[middle];
        size_t i = low;
        size_t j = high;
        while (i <= j) {
            while (values[i] < pivot)
                i++;
            while (pivot < values[j])
                j--;
            if (i > j)
                break;
            swap(&values[i], &values[j]);
            i++;
            if (j == 0)
                break;
            j--;
        }
        if (rank <= j)
            high = j;
        else if (rank >= i)
            low = i;
        else
            break;
    }
    return values[rank];
}

/* Nearest rank. */
static double quantile(double *values, size_t count, double share)
{
    size_t rank = (size_t)ceil(share * (double)count);
    rank = rank > 0 ? rank - 1 : 0;
    return select_rank(values, count, rank < count ? rank : count - 1);
}

int lh_model_summarize(double *seconds, size_t count, struct lh_model_summary *summary)
{
    if (count == 0 || !seconds)
        return lh_fail(LH_EINVAL, "no samples to summarize; draw at least 1");
    double mean = 0;
    double squares = 0;
    for (size_t i = 0; i < count; i++) { /* Welford: no large sums are subtracted */
        if (isnan(seconds[i]))
            return lh_fail(LH_EINVAL, "sample %zu is not a number; was it drawn?", i);
        double off = seconds[i] - mean;
        mean += off / (double)(i + 1);
        squares += off * (seconds[i] - mean);
    }
    double n = (double)count;
    *summary = (struct lh_model_summary){
        .mean_s = mean,
        .mean_error_s = count > 1 ? sqrt(squares / (n - 1) / n) : 0,
        .p50_s = quantile(seconds, count, 0.5),
        .p99_s = quantile(seconds, count, 0.99),
        .p999_s = quantile(seconds, count, 0.999),
    };
    assert(summary->p50_s <= summary->p99_s && summary->p99_s <= summary->p999_s);
    return 0;
}
