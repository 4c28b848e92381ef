/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/hybrid/strength.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

#define NEGLIGIBLE 1e-12 /* share of a sum that is not worth a further term */

/* P(X > spared), X ~ Binomial(n, p): from its first term on. */
static double binomial_above(uint32_t n, double p, uint32_t spared)
{
    double term = 1, sum = 0;
    for (uint32_t i = 1; i <= spared + 1; i++) /* C(n, x) p^x, x = spared + 1 <= n */
        term *= (double)(n - spared - 1 + i) / i * p;
    term *= pow(1 - p, (double)(n - spared - 1));
    for (uint32_t x = spared + 1; x <= n; x++) {
        sum += term;
        if (x > p * n && term < sum * NEGLIGIBLE)
            break;
        term *= (double)(n - x) / (x + 1) * p / (1 - p);
    }
    return fmin(1, sum);
}

/* The same of the geometric Poisson distribution: x P(x) = (bursts (1 - r) + 2 r (x - 1)) P(x - 1)
 * - r^2 (x - 2) P(x - 2), r = 1 - 1 / burst (Johnson, Kotz and Kemp, Univariate Discrete Distributions). */
static double bursts_above(double mean, double burst, uint32_t spared)
{
    double bursts = mean / burst, r = 1 - 1 / burst;
    double before = 0, chance = exp(-bursts), sum = chance;
    for (uint32_t x = 1; x <= spared; x++) {
        double next = ((bursts * (1 - r) + 2 * r * (x - 1)) * chance - r * r * (x - 2.0) * before) / x;
        before = chance;
        chance = fmax(0, next);
        sum += chance;
    }
    return fmax(0, 1 - sum);
}

double hybrid_failure(const struct hybrid_loss *loss, uint32_t sent, uint32_t needed)
{
    assert(loss->chunk >= 0 && loss->chunk < 1 && loss->burst >= 1);
    if (needed == 0)
        return 0;
    if (sent < needed)
        return 1;
    if (loss->burst > 1)
        return bursts_above(sent * loss->chunk, loss->burst, sent - needed);
    return binomial_above(sent, loss->chunk, sent - needed);
}

static bool suffices(const struct hybrid_loss *loss, uint32_t sent, uint32_t needed, double failure)
{
    return hybrid_failure(loss, sent, needed) <= failure;
}

/* Few are the rule, so steps double until they are enough; then halves. One more chunk never makes a failure
 * likelier, but for bursts so dense that no number of chunks is enough. */
uint32_t hybrid_strength(const struct hybrid_loss *loss, uint32_t in_flight, uint32_t needed,
                         double failure, uint32_t most)
{
    uint32_t from = needed > in_flight ? needed - in_flight : 0, end = from;
    for (uint32_t step = 1; end < most && !suffices(loss, in_flight + end, needed, failure); step *= 2) {
        from = end + 1;
        end += step;
    }
    if (end > most)
        end = most;
    while (from < end) { /* from - 1 is not enough, end is, or is all there are */
        uint32_t middle = from + (end - from) / 2;
        if (suffices(loss, in_flight + middle, needed, failure))
            end = middle;
        else
            from = middle + 1;
    }
    return end;
}
