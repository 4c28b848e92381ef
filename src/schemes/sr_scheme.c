/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr_scheme.h"

#include <assert.h>
#include <math.h>

#include <longhaul/model.h>

#include "base/error.h"
#include "model/loss_model.h"
#include "model/predictor.h"
#include "model/repeat_model.h"
#include "wire/wire_numbers.h"

/* ---- predictor ------------------------------------------------------------------------------------- */

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

static double sample(const struct model_prediction *prediction, struct lh_prng *prng, uint8_t *cells)
{
    const struct model_message *message = &prediction->message;
    const struct model_repeat *repeat = state_of(prediction);
    (void)cells;
    double excess = message->loss.bursty
                        ? model_sample_repeat_bursts(repeat, &message->loss, message->chunks, prng)
                        : model_sample_repeat(repeat, prediction->log_loss, message->chunks, prng);
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
    .sample = sample,
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
    .sample = sample,
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

/* ---- scheme ---------------------------------------------------------------------------------------- */

#define NACK_NAME "sr-nack"
#define NACK_HELP "selective repeat, the receiver reports losses as soon as they show; no parameters"
#define RTO_NAME  "sr-rto"
#define RTO_HELP                                                                                           \
    "selective repeat with a timeout a chunk; alpha=NUMBER: timeout (1 + alpha) round trips, default 2"

const struct lh_scheme sr_nack_scheme = {
    .name = NACK_NAME,
    .help = NACK_HELP,
    .id = WIRE_SR_NACK,
    .parse = sr_nack_parse,
    .params_valid = sr_nack_params_valid,
    .sender_bytes = sr_sender_bytes,
    .sender_start = sr_nack_sender_start,
    .sender_on_message = sr_sender_on_message,
    .sender_step = sr_sender_step,
    .receiver_bytes = sr_receiver_bytes,
    .receiver_start = sr_nack_receiver_start,
    .receiver_on_message = sr_receiver_on_message,
    .receiver_step = sr_receiver_step,
};

const struct lh_scheme sr_rto_scheme = {
    .name = RTO_NAME,
    .help = RTO_HELP,
    .id = WIRE_SR_RTO,
    .parse = sr_rto_parse,
    .params_valid = sr_rto_params_valid,
    .sender_bytes = sr_sender_bytes,
    .sender_start = sr_rto_sender_start,
    .sender_on_message = sr_sender_on_message,
    .sender_step = sr_sender_step,
    .receiver_bytes = sr_receiver_bytes,
    .receiver_start = sr_rto_receiver_start,
    .receiver_on_message = sr_receiver_on_message,
    .receiver_step = sr_receiver_step,
};

static uint32_t nack_candidates(bool unspread, struct lh_model_scheme *out)
{
    if (unspread)
        return 0;
    out[0] = (struct lh_model_scheme){.kind = LH_MODEL_SR_NACK};
    return 1;
}

/* Timeouts of 3 round trips and of 2. */
static uint32_t rto_candidates(bool unspread, struct lh_model_scheme *out)
{
    if (unspread)
        return 0;
    out[0] = (struct lh_model_scheme){.kind = LH_MODEL_SR_RTO};
    out[1] = (struct lh_model_scheme){.kind = LH_MODEL_SR_RTO, .rto_rtts = 2};
    return 2;
}

const struct scheme_entry sr_nack_entry = {
    .shown = {.kind = LH_MODEL_SR_NACK,
              .name = NACK_NAME,
              .help = NACK_HELP,
              .compared = NACK_NAME,
              .machines = &sr_nack_scheme},
    .automatic = (const char *const[]){NACK_NAME, NULL},
    .predictor = &sr_nack_predictor,
    .parameters = "rto",
    .candidates = nack_candidates,
    .planner_rank = 0,
};

const struct scheme_entry sr_rto_entry = {
    .shown = {.kind = LH_MODEL_SR_RTO,
              .name = RTO_NAME,
              .help = RTO_HELP,
              .compared = RTO_NAME,
              .machines = &sr_rto_scheme},
    .automatic = (const char *const[]){RTO_NAME ",alpha=2", NULL},
    .predictor = &sr_rto_predictor,
    .parameters = "alpha and rto",
    .take = sr_rto_take,
    .format = sr_rto_format,
    .candidates = rto_candidates,
    .planner_rank = 1,
};

/* ---- bounded missing ------------------------------------------------------------------------------- */

/* What all further repeats may leave, beside what is summed up already. */
#define REST_IGNORED 1e-16

double sr_bounded_missing(double loss, double overhead, double chunks, double s)
{
    assert(loss >= 0 && loss < 1 && overhead >= 1 && chunks >= 1 && s >= 0);
    double sum = 0, done = 0;
    double k = floor(s / overhead) + 1; /* earlier repeats have all been sent */
    double chance = exp(k * log(loss));
    /* Each round is a repeat more, and worth the less by p. */
    while (done < chunks && (chunks - done) * chance > REST_IGNORED * sum) {
        double waiting = fmin(chunks, ceil(k * overhead - s));
        sum += (waiting - done) * chance;
        done = waiting;
        chance *= loss;
        k++;
    }
    return sum;
}

/* ---- deadline -------------------------------------------------------------------------------------- */

/* A deadline is found to this share of a T_inj, or as well as a double tells it. */
#define CLOSE    1e-6
#define HALVINGS 100

struct prepared {
    struct model_message message;
    struct model_repeat repeat;
    double overhead; /* O, in T_inj */
};

static int prepare(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                   struct prepared *prepared)
{
    if (scheme->kind != LH_MODEL_SR_RTO && scheme->kind != LH_MODEL_SR_NACK)
        return lh_fail(LH_EINVAL,
                       "deadline: the model supports only selective repeat (use sr-rto or sr-nack)");
    if (scheme->timing != LH_MODEL_TIMING_PAPER)
        return lh_fail(LH_EINVAL,
                       "deadline: the model supports only the paper's timing (use LH_MODEL_TIMING_PAPER)");
    const struct model_predictor *predictor =
        scheme->kind == LH_MODEL_SR_RTO ? &sr_rto_predictor : &sr_nack_predictor;
    int failed = model_predictor_message(predictor, path, scheme, &prepared->message);
    if (failed)
        return failed;
    const struct model_message *message = &prepared->message;
    prepared->overhead = model_message_overhead(message);
    model_repeat_start(&prepared->repeat, &message->loss, prepared->overhead, message->chunks);
    return 0;
}

static double missing_at(const struct prepared *prepared, double s)
{
    const struct model_message *message = &prepared->message;
    return sr_bounded_missing(message->loss.chunk, prepared->overhead, message->chunks, s);
}

/* As a share; 0: in the mean. */
static double missing_of(const struct prepared *prepared, double mean, double share)
{
    const struct model_message *message = &prepared->message;
    if (share > 0 && message->loss.bursty)
        return NAN;
    return (share > 0 ? model_binomial_quantile(mean, message->chunks, share) : mean) / message->chunks;
}

int lh_model_bounded(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                     double deadline_s, struct lh_model_bounded *bounded)
{
    struct prepared prepared;
    int failed = prepare(path, scheme, &prepared);
    if (failed)
        return failed;
    const struct model_message *message = &prepared.message;
    if (!(deadline_s >= message->ideal_s) || !isfinite(deadline_s))
        return lh_fail(
            LH_ERANGE,
            "deadline %g s: out of range (the last chunk is acknowledged after %g s at the earliest)",
            deadline_s, message->ideal_s);
    double s = (deadline_s - message->ideal_s) / message->inject_s;
    double mean = missing_at(&prepared, s);
    struct lh_model_bounded of = {
        .mean_s = message->ideal_s +
                  model_repeat_excess_until(&prepared.repeat, message->chunks, s) * message->inject_s,
        .missing = missing_of(&prepared, mean, 0),
        .missing_p99 = missing_of(&prepared, mean, 0.99),
        .missing_p999 = missing_of(&prepared, mean, 0.999),
        .whole = model_repeat_cdf(&prepared.repeat, message->chunks, s),
    };
    double *const times[] = {&of.p50_s, &of.p99_s, &of.p999_s};
    static const double shares[] = {0.5, 0.99, 0.999};
    for (unsigned i = 0; i < 3; i++)
        *times[i] = message->ideal_s +
                    fmin(s, model_repeat_quantile(&prepared.repeat, message->chunks, shares[i])) *
                        message->inject_s;
    /* A chunk that is sent until it came, or n times: (1 - p^n) / (1 - p) in the mean. */
    double chunks_sent = (message->chunks - mean) / (1 - message->loss.chunk);
    of.overhead_bytes = fmax(0, chunks_sent / message->chunks - 1) * message->message_wire_bytes;
    *bounded = of;
    return 0;
}

int lh_model_deadline(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                      double missing, double share, double *deadline_s)
{
    struct prepared prepared;
    if (!(missing > 0) || !(missing < 1))
        return lh_fail(LH_ERANGE, "missing share %g: out of range (above 0, below 1)", missing);
    if (!(share >= 0) || !(share < 1))
        return lh_fail(LH_ERANGE, "share of messages %g: out of range (0 to below 1; 0: the mean)", share);
    int failed = prepare(path, scheme, &prepared);
    if (failed)
        return failed;
    const struct model_message *message = &prepared.message;
    if (share > 0 && message->loss.bursty)
        return lh_fail(
            LH_EINVAL,
            "with bursts the model knows only the mean missing share (use the mean, or no bursts)");
    double low = 0, high = 0;
    /* Behind a repeat more of everything, p times as much is missing: as many rounds as levels. */
    while (missing_of(&prepared, missing_at(&prepared, high), share) > missing) {
        low = high;
        high += prepared.overhead;
    }
    for (int i = 0; i < HALVINGS && high - low > CLOSE; i++) {
        double middle = (low + high) / 2;
        *(missing_of(&prepared, missing_at(&prepared, middle), share) > missing ? &low : &high) = middle;
    }
    *deadline_s = message->ideal_s + high * message->inject_s;
    return 0;
}
