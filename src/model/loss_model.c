/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/binomial.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static double log_factorial(double n)
{
    int sign;
    return lgamma_r(n + 1, &sign); /* lgamma() would write to a global */
}

double model_binomial_log(double n, double x, double p)
{
    if (p <= 0 || p >= 1)
        return x == (p > 0 ? n : 0) ? 0 : -INFINITY;
    return log_factorial(n) - log_factorial(x) - log_factorial(n - x) + x * log(p) + (n - x) * log1p(-p);
}

double model_binomial_quantile(double mean, double n, double share)
{
    assert(mean >= 0 && mean <= n && share >= 0 && share < 1);
    double p = mean / n;
    /* Not even one, by Markov's inequality; and what follows can count on a mean that is no speck. */
    if (mean <= 1 - share)
        return 0;
    if (p >= 1)
        return n;
    /* From where next to nothing is left, downwards: some ten standard deviations. */
    double at = fmin(n, ceil(mean + 10 * sqrt(mean * (1 - p)) + 20));
    double chance = exp(model_binomial_log(n, at, p));
    double tail = chance;
    while (at > 0 && tail <= 1 - share) {
        chance *= at * (1 - p) / ((n - at + 1) * p);
        tail += chance;
        at--;
    }
    return at;
}

void model_binomial(unsigned n, double p, double *chance)
{
    assert(n <= MODEL_COUNT_MAX && p >= 0 && p <= 1);
    memset(chance, 0, (n + 1) * sizeof *chance);
    if (p <= 0 || p >= 1) {
        chance[p > 0 ? n : 0] = 1;
        return;
    }
    /* From the likeliest outwards, so that what is too small for a double is so truly. */
    unsigned top = (unsigned)fmin(n, floor((n + 1) * p));
    const double odds = p / (1 - p);
    chance[top] = exp(model_binomial_log(n, top, p));
    for (unsigned x = top; x < n; x++)
        chance[x + 1] = chance[x] * odds * (n - x) / (x + 1);
    for (unsigned x = top; x > 0; x--)
        chance[x - 1] = chance[x] / odds * x / (n - x + 1);
}

/* One chunk: [state of the packet before it][chunk lost][state of its last packet]; state 1 is lost. */
static void find_next(const struct model_loss *loss, double between, double next[2][2][2])
{
    for (int before = 0; before < 2; before++) {
        double first_lost = model_loss_after(loss, before == 1, between + 1);
        double last_lost = model_loss_after(loss, before == 1, between + loss->chunk_packets);
        double passes = (1 - first_lost) * exp((loss->chunk_packets - 1) * log1p(-loss->enter));
        next[before][0][0] = passes;
        next[before][0][1] = 0;
        next[before][1][0] = fmax(0, 1 - last_lost - passes);
        next[before][1][1] = last_lost;
    }
}

void model_lost_start(struct model_lost *lost, const struct model_loss *loss, double between)
{
    assert(between >= 0);
    lost->loss = loss;
    lost->n = 0;
    if (!loss->bursty)
        return;
    find_next(loss, between, lost->next);
    memset(lost->of_state, 0, sizeof lost->of_state);
    lost->of_state[0][0] = 1 - loss->packet;
    lost->of_state[1][0] = loss->packet; /* before the first chunk the link is in its steady state */
}

void model_lost_more(struct model_lost *lost)
{
    assert(lost->n < MODEL_COUNT_MAX);
    lost->n++;
    for (unsigned x = lost->n + 1; lost->loss->bursty && x-- > 0;) { /* x - 1 is still that of before */
        double now[2] = {0, 0};
        for (unsigned is_lost = 0; is_lost < 2 && is_lost <= x; is_lost++)
            for (unsigned state = 0; state < 2; state++)
                for (unsigned before = 0; before < 2; before++)
                    now[state] += lost->of_state[before][x - is_lost] * lost->next[before][is_lost][state];
        lost->of_state[0][x] = now[0];
        lost->of_state[1][x] = now[1];
    }
}

void model_lost_chances(const struct model_lost *lost, double *chance)
{
    if (!lost->loss->bursty)
        model_binomial(lost->n, lost->loss->chunk, chance);
    for (unsigned x = 0; lost->loss->bursty && x <= lost->n; x++)
        chance[x] = lost->of_state[0][x] + lost->of_state[1][x];
}

void model_lost_chunks(const struct model_loss *loss, unsigned n, double between, double *chance)
{
    struct model_lost lost;
    assert(n <= MODEL_COUNT_MAX);
    model_lost_start(&lost, loss, between);
    while (lost.n < n)
        model_lost_more(&lost);
    model_lost_chances(&lost, chance);
}
