/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/bounded_missing.h"

#include <assert.h>
#include <math.h>

#include "model/binomial.h"

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

double sr_bounded_quantile(double mean, double chunks, double share)
{
    assert(mean >= 0 && mean <= chunks && share >= 0 && share < 1);
    double p = mean / chunks;
    /* Not even one, by Markov's inequality; and what follows can count on a mean that is no speck. */
    if (mean <= 1 - share)
        return 0;
    if (p >= 1)
        return chunks;
    /* From where next to nothing is left, downwards: some ten standard deviations. */
    double at = fmin(chunks, ceil(mean + 10 * sqrt(mean * (1 - p)) + 20));
    double chance = exp(model_binomial_log(chunks, at, p));
    double tail = chance;
    while (at > 0 && tail <= 1 - share) {
        chance *= at * (1 - p) / ((chunks - at + 1) * p);
        tail += chance;
        at--;
    }
    return at;
}
