/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/normal_margin.h"

#include <math.h>

#define MARGIN_MAX 6.0 /* one in a billion */

/* E[(X - z)+] = phi(z) - z * Q(z). */
static double lost_at(double z)
{
    return exp(-z * z / 2) / sqrt(2 * M_PI) - z * erfc(z / M_SQRT2) / 2;
}

double normal_margin(double lost)
{
    double low = 0, high = MARGIN_MAX;
    for (int i = 0; i < 30; i++) {
        double middle = (low + high) / 2;
        if (lost_at(middle) > lost)
            low = middle;
        else
            high = middle;
    }
    return high > MARGIN_MAX / (1 << 29) ? high : 0;
}
