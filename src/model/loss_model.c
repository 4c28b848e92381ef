/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/loss_model.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/prng.h"

/* ---- loss ------------------------------------------------------------------------------------------ */

/* 1 - (1 - p)^n, also when p is tiny. */
static double any_of(double p, double n)
{
    return -expm1(n * log1p(-p));
}

struct model_loss model_loss_of_packets(double packet, double burst, double chunk_packets)
{
    assert(packet >= 0 && packet < 1 && chunk_packets >= 1);
    struct model_loss loss = {.packet = packet, .chunk_packets = chunk_packets, .bursty = burst > 0};
    if (!loss.bursty) {
        loss.burst = 1 / (1 - packet);
        loss.enter = packet;
        loss.chunk = any_of(packet, chunk_packets);
        loss.leaves = 1 - loss.chunk;
        return loss;
    }
    loss.burst = burst;
    loss.enter = fmin(1, packet / (burst * (1 - packet)));
    double passes = (1 - packet) * exp((chunk_packets - 1) * log1p(-loss.enter));
    loss.chunk = packet + (1 - packet) * any_of(loss.enter, chunk_packets - 1);
    /* P(this one passes, the one before it was lost), over P(lost). */
    loss.leaves = loss.chunk > 0 ? fmin(1, passes * any_of(loss.enter, chunk_packets) / loss.chunk) : 1;
    assert(loss.chunk >= packet && loss.chunk <= 1);
    return loss;
}

#define HALVINGS 200 /* of a bisection: the first thousand bits of a double's range */

struct model_loss model_loss_of_chunks(double chunk, double burst, double chunk_packets)
{
    assert(chunk >= 0 && chunk < 1);
    if (burst <= 0 || chunk_packets <= 1) {
        struct model_loss loss =
            model_loss_of_packets(-expm1(log1p(-chunk) / chunk_packets), burst, chunk_packets);
        loss.chunk = chunk; /* not rounded twice */
        loss.leaves = loss.bursty ? loss.leaves : 1 - chunk;
        return loss;
    }
    double low = 0;
    double high = chunk;
    for (int i = 0; i < HALVINGS && high - low > 1e-15 * high; i++) {
        double middle = (low + high) / 2;
        bool too_much = middle > burst / (burst + 1) ||
                        model_loss_of_packets(middle, burst, chunk_packets).chunk > chunk;
        *(too_much ? &high : &low) = middle;
    }
    return model_loss_of_packets(low, burst, chunk_packets);
}

double model_loss_after(const struct model_loss *loss, bool after_lost, double steps)
{
    assert(steps >= 1);
    double memory = 1 - loss->enter - 1 / loss->burst;
    double fades = memory == 0 ? 0 : pow(memory, steps);
    return after_lost ? loss->packet + (1 - loss->packet) * fades : loss->packet * (1 - fades);
}

/* ---- confidence ------------------------------------------------------------------------------------ */

/* 97.5 % of a normal distribution lie below it: 2.5 % are left out at each end. */
#define NORMAL_975 1.959963984540054

struct model_confidence model_confidence_of(double hits, double samples)
{
    assert(hits >= 0 && hits <= samples);
    if (!(samples > 0))
        return (struct model_confidence){0, 1};
    double share = hits / samples;
    double z2 = NORMAL_975 * NORMAL_975;
    double widen = 1 + z2 / samples;
    double middle = (share + z2 / (2 * samples)) / widen;
    double half = NORMAL_975 * sqrt(share * (1 - share) / samples + z2 / (4 * samples * samples)) / widen;
    /* Exact at both ends, where rounding would leave a little. */
    return (struct model_confidence){
        .low = share > 0 ? fmax(middle - half, 0) : 0,
        .high = share < 1 ? fmin(middle + half, 1) : 1,
    };
}

/* ---- loss runs ------------------------------------------------------------------------------------- */

void model_loss_runs_add(struct model_loss_runs *runs, struct model_loss_before *before, bool lost)
{
    runs->packets++;
    runs->lost += lost;
    if (before->any && before->lost) {
        runs->after_lost++;
        runs->arrived_after_lost += !lost;
    } else if (before->any) {
        runs->after_arrived++;
        runs->lost_after_arrived += lost;
    }
    *before = (struct model_loss_before){.any = true, .lost = lost};
}

void model_loss_runs_join(struct model_loss_runs *runs, const struct model_loss_runs *others)
{
    runs->packets += others->packets;
    runs->lost += others->lost;
    runs->after_arrived += others->after_arrived;
    runs->lost_after_arrived += others->lost_after_arrived;
    runs->after_lost += others->after_lost;
    runs->arrived_after_lost += others->arrived_after_lost;
}

bool model_loss_runs_possible(const struct model_loss_runs *runs)
{
    return runs->lost <= runs->packets && runs->after_lost <= runs->lost &&
           runs->after_arrived <= runs->packets - runs->lost &&
           runs->lost_after_arrived <= runs->after_arrived && runs->lost_after_arrived <= runs->lost &&
           runs->arrived_after_lost <= runs->after_lost;
}

static double ratio(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

/* How many independent packets tell as much about the mean as one: neighbours of a two-state chain
 * correlate by 1 - (chance that a burst begins) - (chance that it ends), and that to the n-th power n
 * packets on. */
static double independent_share(const struct model_loss_runs *runs)
{
    if (runs->after_lost == 0)
        return 1;
    double correlation = 1 - ratio(runs->lost_after_arrived, runs->after_arrived) -
                         ratio(runs->arrived_after_lost, runs->after_lost);
    return correlation > 0 ? (1 - correlation) / (1 + correlation) : 1;
}

static void fit_bursts(const struct model_loss_runs *runs, struct model_loss_fit *fit)
{
    double ended = (double)runs->arrived_after_lost;
    double behind = (double)runs->after_lost;
    struct model_confidence ends = model_confidence_of(ended, behind);
    fit->burst_packets = ended > 0 ? behind / ended : fmax(behind, 1);
    fit->burst_low = fmax(1 / ends.high, 1);
    fit->burst_high = ends.low > 0 ? 1 / ends.low : INFINITY;
    fit->bursty = behind > 0 && 1 - ends.high > fit->loss;
}

struct model_loss_fit model_loss_runs_fit(const struct model_loss_runs *runs)
{
    return model_loss_runs_fit_part(runs, runs);
}

struct model_loss_fit model_loss_runs_fit_part(const struct model_loss_runs *runs,
                                               const struct model_loss_runs *all)
{
    assert(model_loss_runs_possible(runs) && model_loss_runs_possible(all));
    struct model_loss_fit fit = {.loss = ratio(runs->lost, runs->packets)};
    double packets = (double)runs->packets;
    double samples = runs->packets > 0 ? fmax(packets * independent_share(all), 1) : 0;
    struct model_confidence loss = model_confidence_of(fit.loss * samples, samples);
    fit.loss_low = loss.low;
    fit.loss_high = loss.high;
    fit_bursts(runs, &fit);
    assert(fit.loss_low <= fit.loss && fit.loss <= fit.loss_high);
    return fit;
}

/* ---- loss sampler ---------------------------------------------------------------------------------- */

/* Uniform in (0, 1]. */
static double positive_share(struct lh_prng *prng)
{
    return 1 - lh_prng_double(prng);
}

double model_sample_gap(struct lh_prng *prng, double log_pass)
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
    double at = model_sample_gap(prng, log_pass);
    for (; at < n; at += 1 + model_sample_gap(prng, log_pass)) /* as often as one is found */
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

double model_sample_binomial(struct lh_prng *prng, double n, double p)
{
    assert(n >= 0 && p >= 0 && p <= 1);
    if (p <= 0 || n <= 0)
        return 0;
    if (p > 0.5)
        return n - model_sample_binomial(prng, n, 1 - p);
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
        double lost_at = bursts->at + 1 + model_sample_gap(prng, bursts->log_enter);
        bursts->lost = lost_at < end;
        bursts->at = bursts->lost ? lost_at : end - 1;
        if (!bursts->lost)
            return false;
    }
    row->first = bursts->at;
    row->last = fmin(end - 1, bursts->at + model_sample_gap(prng, bursts->log_stay));
    bursts->at = row->last;
    bursts->lost = true;
    bursts->untold = false;
    return true;
}

/* ---- binomial -------------------------------------------------------------------------------------- */

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
