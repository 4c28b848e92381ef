/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/series.h"

#include <assert.h>
#include <math.h>

/* Below this, four terms of exp() give 13 digits, and the closed form would lose as many. */
#define SMALL 2e-3

/* Sum of -(x + x^2 / 2 + x^3 / 6 + x^4 / 24) over an arithmetic progression, by its central moments. */
static double small_terms(double first, double rise, double count)
{
    double middle = first + rise * (count - 1) / 2;
    double n2 = count * count;
    double second = rise * rise * (n2 - 1) / 12;
    double fourth = rise * rise * rise * rise * (n2 - 1) * (3 * n2 - 7) / 240;
    double x2 = middle * middle + second;
    double x3 = middle * (middle * middle + 3 * second);
    double x4 = middle * middle * (middle * middle + 6 * second) + fourth;
    return -count * (middle + x2 / 2 + x3 / 6 + x4 / 24);
}

double model_series_missing(double first, double rise, double count)
{
    assert(rise >= 0 && count >= 0);
    if (count <= 0)
        return 0;
    double last = fmin(0, first + (count - 1) * rise);
    if (count < 2 || rise <= 0)
        return -expm1(fmin(0, first)) * count;
    if (first > -SMALL)
        return small_terms(first, rise, count);
    return count - exp(last) * expm1(-count * rise) / expm1(-rise);
}
