/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/predictor.h"

#include <assert.h>
#include <math.h>

#include "model/repeat_sampler.h"
#include "schemes/ec/message_times.h"
#include "schemes/ec/missing_sampler.h"
#include "schemes/ec/model_params.h"
#include "schemes/ec/paper_times.h"

union times {
    struct ec_paper_times paper;
    struct ec_message_times message; /* Longhaul's timing */
};

static_assert(sizeof(union times) <= MODEL_STATE_BYTES, "fits");

static union times *state_of(const struct model_prediction *prediction)
{
    return (union times *)(void *)prediction->state;
}

static bool is_longhaul(const struct model_prediction *prediction)
{
    return prediction->message.longhaul;
}

static int start(struct model_prediction *prediction, const struct lh_model_path *path)
{
    const struct lh_model_scheme *scheme = &prediction->scheme;
    const struct model_message *message = &prediction->message;
    union times *times = state_of(prediction);
    int failed = 0;
    if (is_longhaul(prediction))
        failed = ec_message_start(&times->message, path, scheme);
    else
        ec_paper_start(&times->paper, scheme, message);
    if (!failed && message->loss.bursty)
        prediction->cells = ec_missing_cells(
            message->longhaul ? &times->message.full.missing : &times->paper.missing, scheme);
    return failed;
}

static double mean(const struct model_prediction *prediction)
{
    const union times *times = state_of(prediction);
    return is_longhaul(prediction) ? ec_message_mean(&times->message) : ec_paper_mean(&times->paper);
}

static double quantile(const struct model_prediction *prediction, double share)
{
    const union times *times = state_of(prediction);
    return is_longhaul(prediction) ? ec_message_quantile(&times->message, share)
                                   : ec_paper_quantile(&times->paper, share);
}

static double cdf(const struct model_prediction *prediction, double seconds)
{
    const union times *times = state_of(prediction);
    return is_longhaul(prediction) ? ec_message_cdf(&times->message, seconds)
                                   : ec_paper_cdf(&times->paper, seconds);
}

static double parity_chunks(const struct model_prediction *prediction)
{
    const union times *times = state_of(prediction);
    return is_longhaul(prediction) ? ec_message_parity(&times->message)
                                   : times->paper.missing.parity_chunks;
}

static double p_fallback(const struct model_prediction *prediction)
{
    const union times *times = state_of(prediction);
    return is_longhaul(prediction) ? ec_message_fallback(&times->message) : times->paper.p_fallback;
}

static double overhead_bytes(const struct model_prediction *prediction)
{
    const union times *times = state_of(prediction);
    const struct model_message *message = &prediction->message;
    double requested =
        is_longhaul(prediction) ? ec_message_requested(&times->message) : times->paper.missing.mean;
    return (parity_chunks(prediction) + requested / (1 - message->loss.chunk)) *
           (message->message_wire_bytes / message->chunks);
}

static double paper_mean(const struct model_prediction *prediction)
{
    return ec_paper_formula(&prediction->scheme, &prediction->message);
}

/* ---- one message after another ----------------------------------------------------------------------- */

static double draw_paper(const struct model_prediction *prediction, struct lh_prng *prng, uint8_t *cells)
{
    const struct ec_paper_times *times = &state_of(prediction)->paper;
    const struct model_loss *loss = &prediction->message.loss;
    double missing = ec_missing_draw(&times->missing, &prediction->scheme, loss, prng, cells).chunks;
    if (missing <= 0)
        return times->whole_s;
    double excess = model_draw_repeat(&times->repeat, prediction->log_loss, missing, prng);
    return times->asked_s + (missing + excess) * times->inject_s;
}

/* With bursts. */
static double draw_segment(const struct model_prediction *prediction, const struct ec_segment_times *times,
                           struct lh_prng *prng, uint8_t *cells)
{
    const struct lh_model_scheme *scheme = &prediction->scheme;
    const struct model_loss *loss = &prediction->message.loss;
    struct ec_missing_sample missing = ec_missing_draw(&times->missing, scheme, loss, prng, cells);
    if (missing.chunks <= 0)
        return times->sent_s + missing.parity * times->inject_s;
    double rounds = 1;
    if (scheme->fallback == LH_MODEL_FALLBACK_SR)
        rounds = ec_rounds_draw(loss, missing.data, prng);
    else if (scheme->kind == LH_MODEL_EC_XOR)
        rounds = ec_rounds_draw(loss, missing.chunks, prng);
    return times->asked_s + missing.chunks * times->inject_s + (rounds - 1) * times->round_s;
}

static double draw_segments(const struct model_prediction *prediction, struct lh_prng *prng, uint8_t *cells)
{
    const struct ec_message_times *times = &state_of(prediction)->message;
    if (!prediction->message.loss.bursty)
        return ec_message_quantile(times, lh_prng_double(prng));
    double latest = 0;
    for (double i = 0; i < times->before; i++) {
        double segment_s = draw_segment(prediction, &times->full, prng, cells);
        latest = fmax(latest, i * times->apart_s + segment_s);
    }
    double last_s = times->before * times->apart_s;
    return fmax(latest, last_s + draw_segment(prediction, &times->last, prng, cells));
}

static double draw(const struct model_prediction *prediction, struct lh_prng *prng, uint8_t *cells)
{
    return is_longhaul(prediction) ? draw_segments(prediction, prng, cells)
                                   : draw_paper(prediction, prng, cells);
}

const struct model_predictor ec_predictor = {
    .check = ec_model_check,
    .rto_rtts = ec_model_rto,
    .longhaul = ec_model_longhaul,
    .start = start,
    .mean = mean,
    .quantile = quantile,
    .cdf = cdf,
    .overhead_bytes = overhead_bytes,
    .paper_mean = paper_mean,
    .parity_chunks = parity_chunks,
    .p_fallback = p_fallback,
    .draw = draw,
};
