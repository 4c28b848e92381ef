/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/paper_times.h"

#include <assert.h>
#include <math.h>

void ec_paper_start(struct ec_paper_times *coded, const struct lh_model_scheme *scheme,
                    const struct model_message *message)
{
    ec_missing_of(scheme, &message->loss, message->chunks, &coded->missing);
    double base_s = (message->chunks + coded->missing.parity_chunks) * message->inject_s;
    coded->inject_s = message->inject_s;
    coded->whole_s = base_s + message->rtt_s;
    coded->asked_s = coded->whole_s + (1 + scheme->beta) * message->rtt_s;
    coded->p_fallback = -expm1(coded->missing.log_none);
    coded->requested = coded->p_fallback > 0 ? fmax(1, coded->missing.mean / coded->p_fallback) : 1;
    /* Repairs by new parity come with a margin for what is lost of them: one round is enough. */
    struct model_loss repairs = message->loss;
    bool margin = scheme->kind == LH_MODEL_EC_MDS && scheme->fallback == LH_MODEL_FALLBACK_IR;
    if (margin)
        repairs = model_loss_of_chunks(0, 0, 1);
    repairs.bursty = false; /* what lacks lies far apart */
    model_repeat_start(&coded->repeat, &repairs, model_message_overhead(message), message->chunks);
}

/* ---- mean -------------------------------------------------------------------------------------------- */

/* E over N of the integral that repeat.c computes for one N, all staircases being apart (N <= O): with
 * g(z) = E[z^N] and z_k = 1 - p^k, the sum over k of
 *     O (1 - g(z_k)) + z_k (g'(z_k) - (g(z_{k+1}) - g(z_k)) / (z_{k+1} - z_k)). */
static double excess_of_few(const struct ec_paper_times *coded)
{
    const struct model_repeat *repeat = &coded->repeat;
    double sum = 0;
    for (unsigned k = 1; k <= repeat->levels; k++) {
        double missing = -expm1(repeat->log_pass[k]);
        double log_here = ec_missing_log(&coded->missing, missing);
        double next_missing = -expm1(repeat->log_pass[k + 1]);
        double log_next = ec_missing_log(&coded->missing, next_missing);
        double grows = log_next - log_here; /* expm1() would overflow where it is large */
        double secant = (grows > 1 ? exp(log_next) - exp(log_here) : exp(log_here) * expm1(grows)) /
                        (missing - next_missing);
        double bend = (1 - missing) * (ec_missing_slope(&coded->missing, missing) - secant);
        sum += repeat->overhead * -expm1(log_here) + bend;
    }
    return sum;
}

#define BLOCKS 16u

/* Blocks by the mean number of failed submessages: the more fail, the less their number varies. */
static unsigned blocks_of(double failed)
{
    return failed > 1e4 ? 1 : failed > 400 ? 4 : BLOCKS;
}

/* The same with the number of failed submessages cut into at most BLOCKS values, N its multiple. */
static double excess_of_many(const struct ec_paper_times *coded)
{
    double all = coded->missing.submessages;
    double share = 0; /* of submessages that fail */
    for (unsigned i = 0; i < 2; i++)
        share += coded->missing.kind[i].count / all * coded->missing.kind[i].above[0];
    double each = coded->missing.mean / (all * share);
    if (blocks_of(all * share) == 1)
        return model_repeat_excess(&coded->repeat, coded->missing.mean);
    double spread = 8 * sqrt(all * share * (1 - share)) + 16;
    double first = fmax(1, floor(all * share - spread));
    double last = fmin(all, ceil(all * share + spread));
    const unsigned blocks = blocks_of(all * share);
    double width = fmax(1, ceil((last - first + 1) / blocks));
    double log_failed = model_binomial_log(all, first, share);
    double sum = 0;
    double failed = first;
    for (unsigned block = 0; block < blocks && failed <= last; block++) {
        double chance = 0;
        double mean = 0;
        for (double end = failed + width; failed < end && failed <= last; failed++) {
            double of_this = exp(log_failed);
            chance += of_this;
            mean += of_this * failed;
            log_failed += log((all - failed) / (failed + 1)) + log(share) - log1p(-share);
        }
        if (chance > 1e-17)
            sum += chance * model_repeat_excess(&coded->repeat, mean / chance * each);
    }
    return sum;
}

double ec_paper_mean(const struct ec_paper_times *coded)
{
    if (coded->p_fallback <= 0)
        return coded->whole_s;
    double most =
        coded->missing.mean + 10 * sqrt(coded->missing.variance) + 4.0 * coded->missing.kind[0].most;
    double excess = most <= coded->repeat.overhead ? excess_of_few(coded) : excess_of_many(coded);
    return coded->whole_s + coded->p_fallback * (coded->asked_s - coded->whole_s) +
           (coded->missing.mean + excess) * coded->inject_s;
}

double ec_paper_formula(const struct lh_model_scheme *scheme, const struct model_message *message)
{
    double submessages = message->chunks / scheme->k;
    double fails = ec_missing_paper(scheme, message->loss.chunk);
    double p_fallback = -expm1(submessages * log1p(-fails));
    double failed = submessages * fails * scheme->k;
    double base_s = (message->chunks + ceil(message->chunks * scheme->m / scheme->k)) * message->inject_s;
    struct model_message repeats = *message;
    repeats.rto_s = (scheme->rto_rtts > 0 ? scheme->rto_rtts : 3) * message->rtt_s;
    repeats.loss.bursty = false;
    struct model_repeat repeat;
    model_repeat_start(&repeat, &repeats.loss, model_message_overhead(&repeats), message->chunks);
    return base_s + p_fallback * (1 + scheme->beta) * message->rtt_s +
           (failed + model_repeat_excess(&repeat, failed)) * message->inject_s + message->rtt_s;
}

/* ---- distribution ------------------------------------------------------------------------------------ */

/* Chance that a chunk has not arrived s after it was asked for; it was sent at a moment of 0 to window. */
static double missing_at(const struct ec_paper_times *coded, double window, double s)
{
    const struct model_repeat *repeat = &coded->repeat;
    double missing = fmax(0, window - s); /* not yet sent at all */
    double oldest = floor(s / repeat->overhead);
    double newest = fmax(0, floor((s - window) / repeat->overhead));
    for (double k = newest; k <= oldest && k < repeat->levels; k++) {
        double from = fmax(0, s - (k + 1) * repeat->overhead); /* sent k to k + 1 overheads ago */
        double to = fmin(window, s - k * repeat->overhead);
        if (to > from)
            missing += (to - from) * -expm1(repeat->log_pass[(unsigned)k + 1]);
    }
    return fmin(1, missing / window);
}

double ec_paper_cdf(const struct ec_paper_times *coded, double seconds)
{
    if (seconds < coded->whole_s)
        return 0;
    double s = (seconds - coded->asked_s) / coded->inject_s;
    double none = exp(coded->missing.log_none);
    if (coded->p_fallback <= 0)
        return 1;
    if (s < 0)
        return none;
    return fmax(none, exp(ec_missing_log(&coded->missing, missing_at(coded, coded->requested, s))));
}

#define HALVINGS 60
#define CLOSE    1e-10

double ec_paper_quantile(const struct ec_paper_times *coded, double share)
{
    assert(share >= 0 && share < 1);
    if (coded->p_fallback <= 0 || ec_paper_cdf(coded, coded->whole_s) >= share)
        return coded->whole_s;
    double low = coded->asked_s;
    double step = coded->repeat.overhead * coded->inject_s;
    double high = low + (coded->requested + 1) * coded->inject_s;
    /* Each step is a level of selective repeat, and behind the last of them everything has arrived. */
    for (unsigned k = 0; k <= coded->repeat.levels && ec_paper_cdf(coded, high) < share; k++) {
        low = high;
        high += step;
    }
    for (int i = 0; i < HALVINGS && high - low > CLOSE * high; i++) {
        double middle = (low + high) / 2;
        *(ec_paper_cdf(coded, middle) < share ? &low : &high) = middle;
    }
    return high;
}
