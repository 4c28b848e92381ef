/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/reference_scheme.h"

#include <assert.h>
#include <math.h>

#include "base/prng.h"
#include "model/loss_model.h"
#include "model/predictor.h"
#include "model/repeat_model.h"

/* ---- go back n ------------------------------------------------------------------------------------- */

#define GO_BACK_N_FEW 12.0

/* Sum of a^n and of n a^n over n = 0 ... count - 1. */
static void power_sums(double a, double count, double *powers, double *weighted)
{
    double last = pow(a, count);
    *powers = (1 - last) / (1 - a);
    *weighted = a >= 1 ? 0 : (a * (1 - last) / (1 - a) - count * last) / (1 - a);
}

void go_back_n_start(struct go_back_n *go, const struct model_message *message)
{
    const struct model_loss *loss = &message->loss;
    *go = (struct go_back_n){
        .packets = message->packets,
        .inject_s = message->packet_inject_s,
        .clean_s = message->ideal_s,
        .timeout_s = message->rto_s + message->packet_inject_s,
        .burst_more = 1 - 1 / loss->burst,
        .first_loss = loss->enter,
        .again = loss->packet,
    };
    double a = go->burst_more;
    go->nak_s = message->rtt_s + go->inject_s * (2 + a / (1 - a));
    go->losses = loss->packet + (go->packets - 1) * loss->enter;
    double powers;
    double weighted;
    power_sums(a, go->packets - 1, &powers, &weighted);
    go->unseen = loss->packet * pow(a, go->packets - 1) + loss->enter * powers;
    assert(go->losses >= 0 && go->unseen <= go->losses + 1e-9);
}

double go_back_n_mean(const struct go_back_n *go)
{
    /* A loss with n packets behind it costs (1 - a^n) C + a^n (RTO + T) - T n a^n: a NAK that comes has
     * seen a shorter rest of its burst. */
    double a = go->burst_more;
    double powers;
    double weighted;
    power_sums(a, go->packets - 1, &powers, &weighted);
    double behind = go->packets - 1;
    double shorter = go->again * behind * pow(a, behind) + go->first_loss * weighted;
    return go->clean_s + go->losses * go->nak_s + go->unseen * (go->timeout_s - go->nak_s) -
           shorter * go->inject_s + go->losses * go->again / (1 - go->again) * go->timeout_s;
}

/* Of `count` places with n = 0 ... count - 1 packets behind them: sum of min(n + 1, window). */
static double capped_sum(double count, double window)
{
    double rising = fmin(count, floor(window));
    return rising * (rising + 1) / 2 + (count - rising) * window;
}

double go_back_n_repeated(const struct go_back_n *go)
{
    double nak_window =
        fmax(1, go->nak_s / go->inject_s - 1); /* sent from the lost packet on until the NAK */
    double timeout_window = go->timeout_s / go->inject_s;
    double per_place = go->packets > 0 ? go->losses / go->packets : 0;
    double naks = per_place * capped_sum(go->packets, nak_window);
    double timeouts = per_place * go->again / (1 - go->again) * capped_sum(go->packets, timeout_window);
    return naks + timeouts;
}

/* ---- distribution ------------------------------------------------------------------------------------ */

/* P(timeouts <= most), of `losses` first losses each repeated until it arrives, `more` of them surely. */
static double timeouts_cdf(const struct go_back_n *go, double losses, double maximum)
{
    if (maximum < 0)
        return 0;
    double of_this = exp(losses * log1p(-go->again));
    double sum = of_this;
    for (double x = 1; x <= maximum && of_this > 1e-16 * sum;
         x++) { /* geometric: some 100 at again = 0.5 */
        of_this *= go->again * (losses + x - 1) / x;
        sum += of_this;
    }
    return fmin(1, sum);
}

static double cdf_of_few(const struct go_back_n *go, double extra_s)
{
    double share = fmin(0.999, go->losses / go->packets);
    double unseen = go->losses > 0 ? fmin(1, go->unseen) : 0;
    double maximum = fmin(go->packets, floor(extra_s / fmin(go->nak_s, go->timeout_s) + 1e-9));
    double any = -expm1(go->packets * log1p(-share));
    double at_all = any > 0 ? fmin(1, unseen * (1 - go->again) / any) : 0; /* nobody saw the last one */
    double chance = 1 - any;
    double sum = 0;
    /* Chances fall off behind the mean, which is GO_BACK_N_FEW at most. */
    for (double losses = 0; losses <= maximum && (losses <= go->losses || chance > 1e-13); losses++) {
        double left_s = extra_s - losses * go->nak_s;
        double seen = timeouts_cdf(go, losses, floor(left_s / go->timeout_s + 1e-9));
        left_s += go->nak_s - go->timeout_s;
        double lost_last = timeouts_cdf(go, losses, floor(left_s / go->timeout_s + 1e-9));
        sum += chance * (losses > 0 ? (1 - at_all) * seen + at_all * lost_last : seen);
        chance *= (go->packets - losses) / (losses + 1) * share / (1 - share);
    }
    return fmin(1, sum);
}

/* Sum of `losses` costs, each C + (timeouts) (RTO + T): three cumulants, and Edgeworth. */
static double cdf_of_many(const struct go_back_n *go, double extra_s)
{
    double q = go->again;
    double mean = q / (1 - q); /* of a geometric number of timeouts */
    double second = q * (1 + q) / ((1 - q) * (1 - q));
    double third = q * (1 + 4 * q + q * q) / ((1 - q) * (1 - q) * (1 - q));
    double c = go->nak_s;
    double t = go->timeout_s;
    double m1 = c + t * mean;
    double m2 = c * c + 2 * c * t * mean + t * t * second;
    double m3 = c * c * c + 3 * c * c * t * mean + 3 * c * t * t * second + t * t * t * third;
    double n = go->packets;
    double p = fmin(1, go->losses / n);
    double variance = n * p * (m2 - p * m1 * m1);
    double skew = n * p * (m3 - 3 * p * m1 * m2 + 2 * p * p * m1 * m1 * m1) / pow(variance, 1.5);
    double expected = go_back_n_mean(go) - go->clean_s;
    double z = (extra_s - expected) / sqrt(variance);
    double density = exp(-z * z / 2) / sqrt(2 * M_PI);
    double normal = erfc(-z / sqrt(2)) / 2;
    return fmin(1, fmax(0, normal - density * skew * (z * z - 1) / 6));
}

double go_back_n_cdf(const struct go_back_n *go, double seconds)
{
    double extra_s = seconds - go->clean_s;
    if (extra_s < 0)
        return 0;
    if (go->losses <= 0)
        return 1;
    return go->losses <= GO_BACK_N_FEW ? cdf_of_few(go, extra_s) : cdf_of_many(go, extra_s);
}

#define HALVINGS 60
#define CLOSE    1e-8

double go_back_n_quantile(const struct go_back_n *go, double share)
{
    assert(share >= 0 && share < 1);
    if (go_back_n_cdf(go, go->clean_s) >= share)
        return go->clean_s;
    double low = go->clean_s;
    double high = low + go->nak_s;
    while (go_back_n_cdf(go, high) < share && high < 1e300) /* doubles */
        high += high - low;
    for (int i = 0; i < HALVINGS && high - low > CLOSE * high; i++) {
        double middle = (low + high) / 2;
        *(go_back_n_cdf(go, middle) < share ? &low : &high) = middle;
    }
    return high;
}

/* ---- one message ------------------------------------------------------------------------------------ */

/* One completion time, in seconds. */
static double go_back_n_sample(const struct model_message *message, struct lh_prng *prng)
{
    const struct model_loss *loss = &message->loss;
    const double t = message->packet_inject_s;
    const double log_pass = log1p(-loss->enter);
    const double log_stay = log1p(-1 / loss->burst);
    double seconds = message->ideal_s;
    if (loss->packet <= 0)
        return seconds;
    double at = lh_prng_chance(prng, loss->packet) ? 0 : 1 + model_sample_gap(prng, log_pass);
    /* Once a loss. */
    for (; at < message->packets; at += 1 + model_sample_gap(prng, log_pass)) {
        double behind = message->packets - 1 - at;
        double more = model_sample_gap(prng, log_stay);
        seconds += more < behind ? message->rtt_s + (2 + more) * t : message->rto_s + t;
        seconds += model_sample_gap(prng, log(loss->packet)) * (message->rto_s + t); /* lost again */
    }
    assert(seconds >= message->ideal_s);
    return seconds;
}

/* ---- scheme ---------------------------------------------------------------------------------------- */

/* ---- go-back-N --------------------------------------------------------------------------------------- */

static_assert(sizeof(struct go_back_n) <= MODEL_STATE_BYTES, "fits");

static struct go_back_n *state_of(const struct model_prediction *prediction)
{
    return (struct go_back_n *)(void *)prediction->state;
}

static double rto(const struct lh_model_scheme *scheme)
{
    (void)scheme;
    return MODEL_RTO_DEFAULT;
}

static int start(struct model_prediction *prediction, const struct lh_model_path *path)
{
    (void)path;
    go_back_n_start(state_of(prediction), &prediction->message);
    return 0;
}

static double mean(const struct model_prediction *prediction)
{
    return go_back_n_mean(state_of(prediction));
}

static double quantile(const struct model_prediction *prediction, double share)
{
    return go_back_n_quantile(state_of(prediction), share);
}

static double cdf(const struct model_prediction *prediction, double seconds)
{
    return go_back_n_cdf(state_of(prediction), seconds);
}

static double overhead_bytes(const struct model_prediction *prediction)
{
    const struct model_message *message = &prediction->message;
    return go_back_n_repeated(state_of(prediction)) * message->message_wire_bytes / message->packets;
}

static double sample(const struct model_prediction *prediction, struct lh_prng *prng, uint8_t *cells)
{
    (void)cells;
    return go_back_n_sample(&prediction->message, prng);
}

static const struct model_predictor go_back_n_predictor = {
    .rto_rtts = rto,
    .start = start,
    .mean = mean,
    .quantile = quantile,
    .cdf = cdf,
    .overhead_bytes = overhead_bytes,
    .sample = sample,
};

const struct scheme_entry go_back_n_entry = {
    .shown = {.kind = LH_MODEL_GBN,
              .name = "gbn",
              .help = "go-back-N, as in reliable connections of NICs; no parameters",
              .compared = "gbn"},
    .predictor = &go_back_n_predictor,
    .parameters = "rto",
};

/* ---- no loss ----------------------------------------------------------------------------------------- */

static double ideal(const struct model_prediction *prediction)
{
    return prediction->message.ideal_s;
}

static double ideal_quantile(const struct model_prediction *prediction, double share)
{
    (void)share;
    return prediction->message.ideal_s;
}

static double ideal_cdf(const struct model_prediction *prediction, double seconds)
{
    return seconds >= prediction->message.ideal_s;
}

static double nothing(const struct model_prediction *prediction)
{
    (void)prediction;
    return 0;
}

static double ideal_sample(const struct model_prediction *prediction, struct lh_prng *prng, uint8_t *cells)
{
    (void)prng, (void)cells;
    return prediction->message.ideal_s;
}

static const struct model_predictor ideal_predictor = {
    .mean = ideal,
    .quantile = ideal_quantile,
    .cdf = ideal_cdf,
    .overhead_bytes = nothing,
    .sample = ideal_sample,
};

const struct scheme_entry ideal_entry = {
    .shown = {.kind = LH_MODEL_IDEAL,
              .name = "ideal",
              .help = "no loss: the bound of all schemes; no parameters"},
    .predictor = &ideal_predictor,
    .parameters = "none",
};
