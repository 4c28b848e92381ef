/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/bounded/predictor.h"

#include <assert.h>
#include <math.h>

#include "model/longhaul_timing.h"
#include "schemes/bounded/missing.h"
#include "schemes/bounded/model_params.h"

struct bounded_times {
    double before;               /* segments before the last, */
    double before_share;         /* each so much of the message's bytes */
    double apart_s;              /* from the first chunk of one to that of the next */
    double sent_s;               /* a message that lacks nothing and needs no parity is complete */
    double end_s;                /* all are, or the deadline has passed */
    struct bounded_missing full; /* a segment that is not the last; the last where there is one only */
    struct bounded_missing last;
};

static_assert(sizeof(struct bounded_times) <= MODEL_STATE_BYTES, "fits");

static struct bounded_times *state_of(const struct model_prediction *prediction)
{
    return (struct bounded_times *)(void *)prediction->state;
}

static void longhaul(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                     struct model_message *message)
{
    model_timing_by_report(path, scheme->rto_rtts, message);
}

static int start_segment(struct bounded_missing *segment, const struct model_prediction *prediction,
                         const struct lh_model_path *path, uint64_t bytes)
{
    struct lh_model_path of = *path;
    struct model_message message;
    of.message_bytes = bytes;
    int failed = model_message_of(&of, 0, &message);
    if (failed)
        return failed;
    message.window_s = prediction->message.window_s;
    bounded_missing_start(segment, &prediction->scheme, &message);
    return 0;
}

static int start(struct model_prediction *prediction, const struct lh_model_path *path)
{
    struct bounded_times *times = state_of(prediction);
    double deadline_s = prediction->scheme.deadline_s > 0 ? prediction->scheme.deadline_s : INFINITY;
    uint64_t bytes = model_message_segment(path);
    uint64_t before = (path->message_bytes - 1) / bytes;
    int failed = start_segment(&times->last, prediction, path, path->message_bytes - before * bytes);
    if (!failed)
        failed = start_segment(&times->full, prediction, path, before > 0 ? bytes : path->message_bytes);
    if (failed)
        return failed;
    times->before = (double)before;
    times->before_share = before > 0 ? (double)bytes / (double)path->message_bytes : 0;
    times->apart_s = times->full.data_s + times->full.parity * times->full.inject_s;
    double last_s = times->before * times->apart_s;
    times->sent_s = fmin(deadline_s, last_s + times->last.data_s + times->last.rtt_s);
    times->end_s = last_s + bounded_missing_settled(&times->last);
    if (before > 0)
        times->end_s = fmax(times->end_s, last_s - times->apart_s + bounded_missing_settled(&times->full));
    /* Without a window or parity both are the same sum, rounded in another order. */
    times->end_s = fmax(times->sent_s, fmin(deadline_s, times->end_s));
    return 0;
}

/* ---- when -------------------------------------------------------------------------------------------- */

static double cdf(const struct model_prediction *prediction, double seconds)
{
    const struct bounded_times *times = state_of(prediction);
    if (seconds >= times->end_s)
        return 1;
    double since = seconds - times->before * times->apart_s;
    double log_chance =
        since >= bounded_missing_settled(&times->last) ? 0 : bounded_missing_log_whole(&times->last, since);
    /* Those before it that have not settled are whole. */
    double settled = floor((seconds - bounded_missing_settled(&times->full)) / times->apart_s) + 1;
    double open = times->before - fmax(0, fmin(times->before, settled));
    if (open > 0)
        log_chance += open * bounded_missing_log_whole(&times->full, INFINITY);
    return exp(log_chance);
}

#define STEPS 128

/* Integral of 1 - P. */
static double open_between(const struct model_prediction *prediction, double from, double to)
{
    double sum = 0;
    for (int i = 0; i < STEPS && from < to; i++)
        sum += 1 - cdf(prediction, from + (to - from) * (i + 0.5) / STEPS);
    return sum * (to - from) / STEPS;
}

static double mean(const struct model_prediction *prediction)
{
    const struct bounded_times *times = state_of(prediction);
    double parity_s = times->sent_s + times->last.parity * times->last.inject_s;
    double middle_s = fmin(parity_s, times->end_s);
    return times->sent_s + open_between(prediction, times->sent_s, middle_s) +
           open_between(prediction, middle_s, times->end_s);
}

#define HALVINGS 60

static double quantile(const struct model_prediction *prediction, double share)
{
    const struct bounded_times *times = state_of(prediction);
    double low = times->sent_s, high = times->end_s;
    if (cdf(prediction, low) >= share)
        return low;
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        *(cdf(prediction, middle) < share ? &low : &high) = middle;
    }
    return high;
}

static double draw(const struct model_prediction *prediction, struct lh_prng *prng, uint8_t *cells)
{
    (void)cells;
    return quantile(prediction, lh_prng_double(prng));
}

/* ---- how much ---------------------------------------------------------------------------------------- */

/* Segments follow each other, so a deadline cuts one off, and what is behind it. */
static double delivered(const struct model_prediction *prediction)
{
    const struct bounded_times *times = state_of(prediction);
    double end_s = prediction->scheme.deadline_s > 0 ? prediction->scheme.deadline_s : INFINITY;
    double over = floor((end_s - times->full.rtt_s) / times->apart_s);
    over = fmax(0, fmin(times->before, over));
    double missing = over * times->before_share * bounded_missing_share(&times->full, INFINITY);
    double rest = times->before - over;
    if (rest > 0) {
        double cut = bounded_missing_share(&times->full, end_s - over * times->apart_s);
        missing += times->before_share * (cut + rest - 1);
    }
    double last_share = 1 - times->before * times->before_share;
    double last = bounded_missing_share(&times->last, end_s - times->before * times->apart_s);
    return 1 - missing - last_share * last;
}

static double parity_chunks(const struct model_prediction *prediction)
{
    const struct bounded_times *times = state_of(prediction);
    return times->before * times->full.parity + times->last.parity;
}

static double overhead_bytes(const struct model_prediction *prediction)
{
    const struct model_message *message = &prediction->message;
    return parity_chunks(prediction) * message->message_wire_bytes / message->chunks;
}

/* Nothing falls back: the chance that something is missing at the end. */
static double p_fallback(const struct model_prediction *prediction)
{
    const struct bounded_times *times = state_of(prediction);
    double last_s = times->end_s - times->before * times->apart_s;
    double log_whole = bounded_missing_log_whole(&times->last, last_s);
    if (times->before > 0)
        log_whole += times->before * bounded_missing_log_whole(&times->full, INFINITY);
    return -expm1(log_whole);
}

const struct model_predictor bounded_predictor = {
    .check = bounded_model_check,
    .longhaul = longhaul,
    .start = start,
    .mean = mean,
    .quantile = quantile,
    .cdf = cdf,
    .overhead_bytes = overhead_bytes,
    .parity_chunks = parity_chunks,
    .p_fallback = p_fallback,
    .delivered = delivered,
    .draw = draw,
};
