/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/predictor.h"

#include <assert.h>

#include "model/longhaul_timing.h"
#include "model/repeat_sampler.h"

static_assert(sizeof(struct model_repeat) <= MODEL_STATE_BYTES, "fits");

static struct model_repeat *state_of(const struct model_prediction *prediction)
{
    return (struct model_repeat *)(void *)prediction->state;
}

static int start(struct model_prediction *prediction, const struct lh_model_path *path)
{
    (void)path;
    model_message_repeat(&prediction->message, state_of(prediction));
    return 0;
}

static double mean(const struct model_prediction *prediction)
{
    const struct model_message *message = &prediction->message;
    return model_message_whole(message) +
           model_repeat_excess(state_of(prediction), message->chunks) * message->inject_s;
}

static double quantile(const struct model_prediction *prediction, double share)
{
    const struct model_message *message = &prediction->message;
    return model_message_whole(message) +
           model_repeat_quantile(state_of(prediction), message->chunks, share) * message->inject_s;
}

static double cdf(const struct model_prediction *prediction, double seconds)
{
    const struct model_message *message = &prediction->message;
    double whole_s = model_message_whole(message);
    if (seconds < whole_s)
        return 0;
    return model_repeat_cdf(state_of(prediction), message->chunks, (seconds - whole_s) / message->inject_s);
}

static double overhead_bytes(const struct model_prediction *prediction)
{
    const struct model_message *message = &prediction->message;
    return message->message_wire_bytes * message->loss.chunk / (1 - message->loss.chunk);
}

static double draw(const struct model_prediction *prediction, struct lh_prng *prng, uint8_t *cells)
{
    const struct model_message *message = &prediction->message;
    const struct model_repeat *repeat = state_of(prediction);
    (void)cells;
    double excess = message->loss.bursty
                        ? model_draw_repeat_bursts(repeat, &message->loss, message->chunks, prng)
                        : model_draw_repeat(repeat, prediction->log_loss, message->chunks, prng);
    assert(excess >= 0);
    return model_message_whole(message) + excess * message->inject_s;
}

/* ---- after a report ---------------------------------------------------------------------------------- */

static double nack_rto(const struct lh_model_scheme *scheme)
{
    (void)scheme;
    return MODEL_RTO_NACK;
}

static void nack_longhaul(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                          struct model_message *message)
{
    model_timing_by_report(path, scheme->rto_rtts, message);
    model_timing_repairs(message);
}

const struct model_predictor sr_nack_predictor = {
    .rto_rtts = nack_rto,
    .longhaul = nack_longhaul,
    .start = start,
    .mean = mean,
    .quantile = quantile,
    .cdf = cdf,
    .overhead_bytes = overhead_bytes,
    .draw = draw,
};

/* ---- after a timeout --------------------------------------------------------------------------------- */

static double rto_rto(const struct lh_model_scheme *scheme)
{
    (void)scheme;
    return MODEL_RTO_DEFAULT;
}

static void rto_longhaul(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                         struct model_message *message)
{
    (void)scheme;
    model_timing_by_timeout(path, message);
    model_timing_repairs(message);
}

const struct model_predictor sr_rto_predictor = {
    .rto_rtts = rto_rto,
    .longhaul = rto_longhaul,
    .start = start,
    .mean = mean,
    .quantile = quantile,
    .cdf = cdf,
    .overhead_bytes = overhead_bytes,
    .draw = draw,
};

bool sr_rto_take(const struct model_parameter *parameter, struct lh_model_scheme *scheme, int *failed)
{
    if (!model_parameter_is(parameter, "alpha"))
        return false;
    *failed = model_parameter_rto(parameter, 1, &scheme->rto_rtts);
    return true;
}

void sr_rto_format(const struct lh_model_scheme *scheme, struct model_text *text)
{
    if (scheme->rto_rtts != 0 && scheme->rto_rtts != MODEL_RTO_DEFAULT)
        model_text_add_number(text, "alpha", scheme->rto_rtts - 1);
}
