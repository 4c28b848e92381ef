/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/bounded/predictor.h"

#include <assert.h>
#include <math.h>

#include "model/binomial.h"
#include "model/longhaul_timing.h"
#include "schemes/bounded/model_params.h"

struct bounded_times {
    double parity;    /* chunks */
    double whole_s;   /* of a message that lacks nothing */
    double settled_s; /* of one that lacks something */
    double p_whole;
    double delivered; /* share of the message */
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

/* ---- what is missing --------------------------------------------------------------------------------- */

/* A submessage, and its chunks on the wire. */
struct submessage {
    unsigned size;
    unsigned rows;
    double between; /* packets from one of its chunks to the next */
};

/* Share of the data that is missing, and the chance that none is: more than `rows` are lost. */
static double mds_missing(const struct model_loss *loss, const struct submessage *of, double *p_none)
{
    double chance[MODEL_COUNT_MAX + 1];
    unsigned all = of->size + of->rows;
    double missing = 0, none = 1;
    model_lost_chunks(loss, all, of->between, chance);
    for (unsigned x = of->rows + 1; x <= all; x++) {
        missing += chance[x] * x / all;
        none -= chance[x];
    }
    *p_none = fmax(0, none);
    return missing;
}

/* More than one of a class is lost, and then nothing of the submessage is recovered. */
static double xor_missing(const struct model_loss *loss, const struct submessage *of, double *p_none)
{
    double chance[MODEL_COUNT_MAX + 1];
    unsigned size = (of->size + of->rows - 1) / of->rows + 1;
    model_lost_chunks(loss, size, of->between * of->rows, chance);
    double met = chance[0] + chance[1];
    double alone =
        loss->chunk > 0 ? chance[1] / size / loss->chunk : 1; /* the others of its class are there */
    *p_none = pow(met, of->rows);
    return loss->chunk * (1 - alone * pow(met, of->rows - 1));
}

static double coded_missing(const struct lh_model_scheme *scheme, const struct model_message *message,
                            double *p_none)
{
    const struct model_loss *loss = &message->loss;
    double groups = ceil(message->chunks / scheme->k);
    struct submessage of = {.size = (unsigned)ceil(message->chunks / groups),
                            .between = groups * loss->chunk_packets};
    unsigned most = scheme->xor_code ? of.size : of.size + (of.size < scheme->k);
    of.rows = scheme->m < most || (!scheme->xor_code && of.size == scheme->k) ? scheme->m : most;
    double missing = scheme->xor_code ? xor_missing(loss, &of, p_none) : mds_missing(loss, &of, p_none);
    /* A burst hits all submessages of a message: they are whole together. */
    *p_none = loss->bursty ? pow(*p_none, fmax(1, groups / loss->burst)) : pow(*p_none, groups);
    return missing;
}

static double plain_whole(const struct model_message *message)
{
    const struct model_loss *loss = &message->loss;
    if (loss->packet <= 0)
        return 1;
    /* No burst is under way, and none begins. */
    return exp(log1p(-loss->packet) + (message->packets - 1) * log1p(-loss->enter));
}

/* ---- the prediction ---------------------------------------------------------------------------------- */

static int start(struct model_prediction *prediction, const struct lh_model_path *path)
{
    const struct lh_model_scheme *scheme = &prediction->scheme;
    const struct model_message *message = &prediction->message;
    struct bounded_times *times = state_of(prediction);
    (void)path;
    double missing = message->loss.chunk;
    *times = (struct bounded_times){.p_whole = plain_whole(message)};
    if (scheme->k > 0) {
        missing = coded_missing(scheme, message, &times->p_whole);
        times->parity = ceil(message->chunks / scheme->k) * scheme->m;
    }
    double parity_s = times->parity * message->inject_s;
    times->whole_s = message->ideal_s;
    times->settled_s = message->ideal_s + parity_s + message->window_s;
    times->delivered = 1 - missing;
    if (scheme->deadline_s > 0 && scheme->deadline_s < times->settled_s) {
        double sent_s = fmax(0, scheme->deadline_s - message->rtt_s);
        times->delivered *= fmin(1, sent_s / (message->chunks * message->inject_s));
        times->p_whole = scheme->deadline_s < times->whole_s ? 0 : times->p_whole;
        times->settled_s = scheme->deadline_s;
        times->whole_s = fmin(times->whole_s, scheme->deadline_s);
    }
    return 0;
}

static double mean(const struct model_prediction *prediction)
{
    const struct bounded_times *times = state_of(prediction);
    return times->settled_s - times->p_whole * (times->settled_s - times->whole_s);
}

static double quantile(const struct model_prediction *prediction, double share)
{
    const struct bounded_times *times = state_of(prediction);
    return share < times->p_whole ? times->whole_s : times->settled_s;
}

static double cdf(const struct model_prediction *prediction, double seconds)
{
    const struct bounded_times *times = state_of(prediction);
    if (seconds >= times->settled_s)
        return 1;
    return seconds >= times->whole_s ? times->p_whole : 0;
}

static double parity_chunks(const struct model_prediction *prediction)
{
    return state_of(prediction)->parity;
}

static double overhead_bytes(const struct model_prediction *prediction)
{
    const struct model_message *message = &prediction->message;
    return parity_chunks(prediction) * message->message_wire_bytes / message->chunks;
}

/* Nothing falls back. */
static double p_fallback(const struct model_prediction *prediction)
{
    (void)prediction;
    return 0;
}

static double delivered(const struct model_prediction *prediction)
{
    return state_of(prediction)->delivered;
}

static double draw(const struct model_prediction *prediction, struct lh_prng *prng, uint8_t *cells)
{
    (void)cells;
    return quantile(prediction, lh_prng_double(prng));
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
