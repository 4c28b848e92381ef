/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/confidence.h"

#include <assert.h>
#include <math.h>

/* 97.5 % of a normal distribution lie below it: 2.5 % are left out at each end. */
#define NORMAL_975 1.959963984540054

struct model_confidence model_confidence_of(double hits, double draws)
{
    assert(hits >= 0 && hits <= draws);
    if (!(draws > 0))
        return (struct model_confidence){0, 1};
    double share = hits / draws;
    double z2 = NORMAL_975 * NORMAL_975;
    double widen = 1 + z2 / draws;
    double middle = (share + z2 / (2 * draws)) / widen;
    double half = NORMAL_975 * sqrt(share * (1 - share) / draws + z2 / (4 * draws * draws)) / widen;
    /* Exact at both ends, where rounding would leave a little. */
    return (struct model_confidence){
        .low = share > 0 ? fmax(middle - half, 0) : 0,
        .high = share < 1 ? fmin(middle + half, 1) : 1,
    };
}
