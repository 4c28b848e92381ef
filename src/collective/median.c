/*
 * median.c - heapsort: no more than n log n steps, whatever a peer sends, and no memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "collective/median.h"

static void swap(double *a, double *b)
{
    double held = *a;
    *a = *b;
    *b = held;
}

/* The greatest of a heap of count values is first, but for the one at `at`, which moves down. */
static void sift(double *values, uint32_t at, uint32_t count)
{
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && values[child + 1] > values[child])
            child++;
        if (values[at] >= values[child])
            return;
        swap(&values[at], &values[child]);
    }
}

static void sort(double *values, uint32_t count)
{
    for (uint32_t at = count / 2; at-- > 0;)
        sift(values, at, count);
    for (uint32_t left = count; left-- > 1;) {
        swap(&values[0], &values[left]);
        sift(values, 0, left);
    }
}

double median_of(double *values, uint32_t count)
{
    sort(values, count);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}
