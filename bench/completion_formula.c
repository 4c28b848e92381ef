/* SPDX-License-Identifier: BSD-3-Clause */
#include "completion_formula.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* ---- selective repeat: section 4.2.2, appendix A ------------------------------------------------------ */

struct repeat {
    double inject_s;
    double overhead_s; /* O = RTO + T_inj */
    double loss;
};

static struct repeat repeat_of(const struct formula_path *path, double rto_s)
{
    return (struct repeat){path->inject_s, rto_s + path->inject_s, path->loss};
}

/* P(max X_i < q): chunks whose start lies in ((q - k O), (q - (k - 1) O)] have had k transmissions, so each
 * is there with probability 1 - p^k. */
static double repeat_cdf(const struct repeat *r, double chunks, double q)
{
    if (q <= chunks * r->inject_s)
        return 0;
    double log_sum = 0;
    double upper = chunks; /* chunks 1 … upper start at or before q - (k - 1) O */
    for (int k = 1; upper >= 1; k++) {
        double lower = floor((q - k * r->overhead_s) / r->inject_s);
        lower = lower < 0 ? 0 : lower > chunks ? chunks : lower;
        log_sum += (upper - lower) * log1p(-pow(r->loss, k));
        upper = lower;
    }
    return exp(log_sum);
}

double formula_ideal(const struct formula_path *path, double chunks)
{
    return chunks * path->inject_s + path->rtt_s;
}

#define TAIL_IGNORED 1e-12
#define HALVINGS     100 /* of a bisection: more than a double has bits */

double formula_sr_quantile(const struct formula_path *path, double rto_s, double chunks, double p)
{
    struct repeat r = repeat_of(path, rto_s);
    double low = chunks * r.inject_s;
    double high = low + 200 * r.overhead_s;
    if (path->loss <= 0)
        return formula_ideal(path, chunks);
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        *(repeat_cdf(&r, chunks, middle) < p ? &low : &high) = middle;
    }
    return high + path->rtt_s;
}

/* E[max X] = ∫ (1 - CDF); the integrand is smooth on the scale of T_inj and dies out after some O, each of
 * which is cut into so many steps. */
static double repeat_mean(const struct repeat *r, double chunks, unsigned steps)
{
    double start = chunks * r->inject_s;
    double step = r->overhead_s / steps;
    double sum = start;
    for (double q = start;; q += step) {
        double tail = 1 - repeat_cdf(r, chunks, q + step / 2);
        sum += tail * step;
        if (tail < TAIL_IGNORED)
            return sum;
    }
}

double formula_sr_mean(const struct formula_path *path, double rto_s, double chunks)
{
    struct repeat r = repeat_of(path, rto_s);
    return path->loss <= 0 ? formula_ideal(path, chunks) : repeat_mean(&r, chunks, 20000) + path->rtt_s;
}

/* ---- erasure code: section 4.2.3, appendix B ---------------------------------------------------------- */

static double log_choose(double n, double i)
{
    return lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1);
}

static double log_binomial(double n, double i, double p)
{
    if (p <= 0 || p >= 1)
        return i == (p > 0 ? n : 0) ? 0 : -INFINITY;
    return log_choose(n, i) + i * log(p) + (n - i) * log1p(-p);
}

/* 1 - P, summed from the side that is small: P is so close to 1 that 1 - P would be rounding. */
static double mds_fails(double loss, double k, double m)
{
    double sum = 0;
    for (double i = m + 1; i <= k + m; i++)
        sum += exp(log_binomial(k + m, i, loss));
    return sum;
}

double formula_mds_decodes(double loss, double k, double m)
{
    return 1 - mds_fails(loss, k, m);
}

double formula_xor_decodes(double loss, double k, double m)
{
    double n = k / m + 1;
    return exp(m * log1p(-mds_fails(loss, n - 1, 1)));
}

static double submessages(const struct formula_code *code, double chunks)
{
    return ceil(chunks / code->k);
}

double formula_ec_fallback(const struct formula_code *code, double chunks)
{
    return -expm1(submessages(code, chunks) * log(code->decodes));
}

static double base_s(const struct formula_path *path, const struct formula_code *code, double chunks)
{
    return (chunks + ceil(chunks * code->m / code->k)) * path->inject_s;
}

/* When the sender begins to repeat what failed. */
static double asked_s(const struct formula_path *path, const struct formula_code *code, double chunks)
{
    return base_s(path, code, chunks) + (1 + code->beta) * path->rtt_s;
}

/* The number of failed submessages: at most so many values stand for all, each for its neighbours too. Cut
 * as finely as one time of selective repeat, their mean takes a second, and differs in no digit shown. */
#define FAILURE_VALUES 65
#define FAILURE_STEPS  500

struct failures {
    unsigned count;
    double value[FAILURE_VALUES]; /* of 1 or more */
    double chance[FAILURE_VALUES];
    double none; /* the chance of no failure */
};

static struct failures failures_of(const struct formula_code *code, double chunks)
{
    double all = submessages(code, chunks);
    double p = 1 - code->decodes;
    double mean = all * p;
    double spread = 8 * sqrt(mean * code->decodes) + 16; /* beyond it less than TAIL_IGNORED */
    double first = fmax(1, floor(mean - spread));
    double last = fmin(all, ceil(mean + spread));
    double width = ceil((last - first + 1) / FAILURE_VALUES);
    struct failures f = {.none = exp(log_binomial(all, 0, p))};
    for (double from = first; from <= last; from += width) {
        double chance = 0;
        for (double i = from; i < from + width && i <= last; i++)
            chance += exp(log_binomial(all, i, p));
        f.value[f.count] = fmin(from + floor(width / 2), last);
        f.chance[f.count++] = chance;
    }
    return f;
}

double formula_ec_mean(const struct formula_path *path, const struct formula_code *code, double rto_s,
                       double chunks)
{
    struct failures f = failures_of(code, chunks);
    struct repeat r = repeat_of(path, rto_s);
    double asked = asked_s(path, code, chunks);
    double sum = f.none * base_s(path, code, chunks);
    for (unsigned i = 0; i < f.count; i++)
        if (f.chance[i] > TAIL_IGNORED)
            sum += f.chance[i] * (asked + repeat_mean(&r, f.value[i] * code->k, FAILURE_STEPS));
    return sum + path->rtt_s;
}

double formula_ec_quantile(const struct formula_path *path, const struct formula_code *code, double rto_s,
                           double chunks, double p)
{
    struct failures f = failures_of(code, chunks);
    if (f.none >= p)
        return base_s(path, code, chunks) + path->rtt_s;
    struct repeat r = repeat_of(path, rto_s);
    double asked = asked_s(path, code, chunks);
    double low = 0;
    double high = chunks * r.inject_s + 200 * r.overhead_s;
    for (int step = 0; step < HALVINGS; step++) {
        double middle = (low + high) / 2;
        double below = f.none;
        for (unsigned i = 0; i < f.count; i++)
            below += f.chance[i] * repeat_cdf(&r, f.value[i] * code->k, middle);
        *(below < p ? &low : &high) = middle;
    }
    return asked + high + path->rtt_s;
}

/* ---- schemes by name ---------------------------------------------------------------------------------- */

#define TAIL 0.999

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

struct formula_times formula_of(const char *scheme, const struct formula_path *path, double chunks)
{
    double ideal_s = formula_ideal(path, chunks);
    struct formula_times times = {.ideal_s = ideal_s, .sent_s = ideal_s};
    struct formula_code code = {.k = 32, .m = 8, .beta = 0.5};
    double rto_s = (starts_with(scheme, "sr-nack") ? 1 : 3) * path->rtt_s;
    if (!starts_with(scheme, "ec:")) {
        times.mean_s = formula_sr_mean(path, rto_s, chunks);
        times.tail_s = formula_sr_quantile(path, rto_s, chunks, TAIL);
        return times;
    }
    code.decodes = starts_with(scheme, "ec:mds") ? formula_mds_decodes(path->loss, code.k, code.m)
                                                 : formula_xor_decodes(path->loss, code.k, code.m);
    times.sent_s = base_s(path, &code, chunks) + path->rtt_s;
    times.mean_s = formula_ec_mean(path, &code, rto_s, chunks);
    times.tail_s = formula_ec_quantile(path, &code, rto_s, chunks, TAIL);
    return times;
}
