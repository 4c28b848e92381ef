/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/reference/scheme.h"

#include <assert.h>

#include "model/longhaul_timing.h"
#include "schemes/reference/go_back_n.h"

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

static double draw(const struct model_prediction *prediction, struct lh_prng *prng, uint8_t *cells)
{
    (void)cells;
    return go_back_n_draw(&prediction->message, prng);
}

static const struct model_predictor go_back_n_predictor = {
    .rto_rtts = rto,
    .start = start,
    .mean = mean,
    .quantile = quantile,
    .cdf = cdf,
    .overhead_bytes = overhead_bytes,
    .draw = draw,
};

const struct scheme_entry go_back_n_entry = {
    .shown = {.kind = LH_MODEL_GBN,
              .name = "gbn",
              .help = "go-back-N, as NICs do it for reliable connections; no parameters",
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

static double ideal_draw(const struct model_prediction *prediction, struct lh_prng *prng, uint8_t *cells)
{
    (void)prng, (void)cells;
    return prediction->message.ideal_s;
}

static const struct model_predictor ideal_predictor = {
    .mean = ideal,
    .quantile = ideal_quantile,
    .cdf = ideal_cdf,
    .overhead_bytes = nothing,
    .draw = ideal_draw,
};

const struct scheme_entry ideal_entry = {
    .shown = {.kind = LH_MODEL_IDEAL,
              .name = "ideal",
              .help = "nothing is lost: the bound of all schemes; no parameters"},
    .predictor = &ideal_predictor,
    .parameters = "none",
};
