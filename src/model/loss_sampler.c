/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/loss_sampler.h"

#include <assert.h>
#include <math.h>

/* Uniform in (0, 1]. */
static double positive_share(struct lh_prng *prng)
{
    return 1 - lh_prng_double(prng);
}

double model_draw_gap(struct lh_prng *prng, double log_pass)
{
    assert(log_pass <= 0);
    if (log_pass == 0)
        return INFINITY;
    return floor(log(positive_share(prng)) / log_pass);
}

/* ---- binomial ---------------------------------------------------------------------------------------- */

#define FEW 16.0 /* expected: below, they are found one after another */

static double count_by_gaps(struct lh_prng *prng, double n, double p)
{
    const double log_pass = log1p(-p);
    double count = 0;
    double at = model_draw_gap(prng, log_pass);
    for (; at < n; at += 1 + model_draw_gap(prng, log_pass)) /* as often as one is found */
        count++;
    return count;
}

static double log_factorial(double n)
{
    int sign;
    return lgamma_r(n + 1, &sign);
}

/* BTRS: W. Hoermann, The generation of binomial random variates, 1993. For n p >= 10 and p <= 0.5. */
static double count_by_rejection(struct lh_prng *prng, double n, double p)
{
    const double spread = sqrt(n * p * (1 - p));
    const double b = 1.15 + 2.53 * spread;
    const double a = -0.0873 + 0.0248 * b + 0.01 * p;
    const double centre = n * p + 0.5;
    const double easy = 0.92 - 4.2 / b;
    const double alpha = (2.83 + 5.1 / b) * spread;
    const double log_odds = log(p) - log1p(-p);
    const double mode = floor((n + 1) * p);
    const double log_mode = log_factorial(mode) + log_factorial(n - mode);
    for (;;) { /* accepted with a chance of over 0.8 each time */
        double u = lh_prng_double(prng) - 0.5;
        double v = positive_share(prng);
        double edge = 0.5 - fabs(u);
        double count = floor((2 * a / edge + b) * u + centre);
        if (!(count >= 0) || count > n)
            continue;
        if (edge >= 0.07 && v <= easy)
            return count;
        double log_ratio =
            log_mode - log_factorial(count) - log_factorial(n - count) + (count - mode) * log_odds;
        if (log(v * alpha / (a / (edge * edge) + b)) <= log_ratio)
            return count;
    }
}

double model_draw_binomial(struct lh_prng *prng, double n, double p)
{
    assert(n >= 0 && p >= 0 && p <= 1);
    if (p <= 0 || n <= 0)
        return 0;
    if (p > 0.5)
        return n - model_draw_binomial(prng, n, 1 - p);
    return n * p < FEW ? count_by_gaps(prng, n, p) : count_by_rejection(prng, n, p);
}

/* ---- bursts ------------------------------------------------------------------------------------------ */

void model_bursts_start(struct model_bursts *bursts, const struct model_loss *loss)
{
    *bursts = (struct model_bursts){
        .loss = loss, .log_enter = log1p(-loss->enter), .log_stay = log1p(-1 / loss->burst), .at = -1};
}

void model_bursts_skip(struct model_bursts *bursts, struct lh_prng *prng, double from)
{
    assert(from > bursts->at);
    double share = bursts->at < 0 ? bursts->loss->packet
                                  : model_loss_after(bursts->loss, bursts->lost, from - bursts->at);
    bursts->at = from;
    bursts->lost = lh_prng_chance(prng, share);
    bursts->untold = bursts->lost;
}

bool model_bursts_next(struct model_bursts *bursts, struct lh_prng *prng, double end,
                       struct model_burst *row)
{
    assert(bursts->at < end);
    if (!bursts->untold) {
        if (bursts->lost) { /* a row that went up to here has ended, or was cut off by the end */
            if (bursts->at + 1 >= end)
                return false;
            bursts->at++;
            bursts->lost = false;
        }
        double lost_at = bursts->at + 1 + model_draw_gap(prng, bursts->log_enter);
        bursts->lost = lost_at < end;
        bursts->at = bursts->lost ? lost_at : end - 1;
        if (!bursts->lost)
            return false;
    }
    row->first = bursts->at;
    row->last = fmin(end - 1, bursts->at + model_draw_gap(prng, bursts->log_stay));
    bursts->at = row->last;
    bursts->lost = true;
    bursts->untold = false;
    return true;
}
