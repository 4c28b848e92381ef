/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/bounded_missing.h"

#include <assert.h>
#include <math.h>

/* What all further repeats may leave, beside what is summed up already. */
#define REST_IGNORED 1e-16

double sr_bounded_missing(double loss, double overhead, double chunks, double s)
{
    assert(loss >= 0 && loss < 1 && overhead >= 1 && chunks >= 1 && s >= 0);
    double sum = 0, done = 0;
    double k = floor(s / overhead) + 1; /* earlier repeats have all been sent */
    double chance = exp(k * log(loss));
    /* Each round is a repeat more, and worth the less by p. */
    while (done < chunks && (chunks - done) * chance > REST_IGNORED * sum) {
        double waiting = fmin(chunks, ceil(k * overhead - s));
        sum += (waiting - done) * chance;
        done = waiting;
        chance *= loss;
        k++;
    }
    return sum;
}
