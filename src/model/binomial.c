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
struct transition {
    double chance[2][2][2];
};

static struct transition transition_of(const struct model_loss *loss, double between)
{
    struct transition of;
    for (int before = 0; before < 2; before++) {
        double first_lost = model_loss_after(loss, before == 1, between + 1);
        double last_lost = model_loss_after(loss, before == 1, between + loss->chunk_packets);
        double passes = (1 - first_lost) * exp((loss->chunk_packets - 1) * log1p(-loss->enter));
        of.chance[before][0][0] = passes;
        of.chance[before][0][1] = 0;
        of.chance[before][1][0] = fmax(0, 1 - last_lost - passes);
        of.chance[before][1][1] = last_lost;
    }
    return of;
}

static void follow_bursts(const struct model_loss *loss, unsigned n, double between, double *chance)
{
    double of_state[2][MODEL_COUNT_MAX + 1] = {{0}};
    const struct transition next = transition_of(loss, between);
    of_state[0][0] = 1 - loss->packet;
    of_state[1][0] = loss->packet; /* before the first chunk the link is in its steady state */
    for (unsigned sent = 0; sent < n; sent++) {
        for (unsigned x = sent + 2; x-- > 0;) { /* downwards: x - 1 is still that of before */
            double now[2] = {0, 0};
            for (unsigned lost = 0; lost < 2 && lost <= x; lost++)
                for (unsigned state = 0; state < 2; state++)
                    for (unsigned before = 0; before < 2; before++)
                        now[state] += of_state[before][x - lost] * next.chance[before][lost][state];
            of_state[0][x] = now[0];
            of_state[1][x] = now[1];
        }
    }
    for (unsigned x = 0; x <= n; x++)
        chance[x] = of_state[0][x] + of_state[1][x];
}

void model_lost_chunks(const struct model_loss *loss, unsigned n, double between, double *chance)
{
    assert(n <= MODEL_COUNT_MAX && between >= 0);
    if (loss->bursty)
        follow_bursts(loss, n, between, chance);
    else
        model_binomial(n, loss->chunk, chance);
}
