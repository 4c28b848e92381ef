/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/bounded_scheme.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include <longhaul/units.h>

#include "base/error.h"
#include "model/loss_model.h"
#include "model/predictor.h"
#include "model/repeat_model.h"
#include "schemes/ec_arrival_model.h"
#include "schemes/ec_layout.h"
#include "schemes/ec_scheme.h"
#include "wire/wire_numbers.h"

/* ---- model params ---------------------------------------------------------------------------------- */

/* The parameters of bounded completion, as the model reads them. */

#define TIME_MAX 32u

static int take_deadline(const struct model_parameter *parameter, double *deadline_s)
{
    char value[TIME_MAX];
    lh_time ns;
    int bytes = parameter->value ? parameter->length - (int)(parameter->value - parameter->text) : 0;
    *deadline_s = 0;
    if (model_parameter_value_is(parameter, "auto") || model_parameter_value_is(parameter, "none"))
        return 0;
    snprintf(value, sizeof value, "%.*s", bytes, parameter->value ? parameter->value : "");
    int failed = lh_parse_time(value, &ns);
    if (!failed && (ns < LH_NS_PER_US || ns > BOUNDED_DEADLINE_MAX_NS))
        failed = lh_fail(LH_ERANGE, "bounded: deadline \"%s\": out of range (1us to 60min, auto, or none)",
                         value);
    if (!failed)
        *deadline_s = (double)ns / (double)LH_NS_PER_S;
    return failed;
}

static int take_code(const struct model_parameter *parameter, struct lh_model_scheme *scheme)
{
    scheme->xor_code = model_parameter_value_is(parameter, "xor");
    if (!scheme->xor_code && !model_parameter_value_is(parameter, "mds"))
        return lh_fail(LH_EINVAL, "%.*s: invalid code (code=mds or code=xor)", parameter->length,
                       parameter->text);
    if (scheme->k == 0)
        scheme->k = EC_K_DEFAULT;
    if (scheme->m == 0)
        scheme->m = EC_M_DEFAULT;
    return 0;
}

/* See struct scheme_entry. */
static bool bounded_model_take(const struct model_parameter *parameter, struct lh_model_scheme *scheme,
                               int *failed)
{
    if (model_parameter_is(parameter, "deadline"))
        *failed = take_deadline(parameter, &scheme->deadline_s);
    else if (model_parameter_is(parameter, "code"))
        *failed = take_code(parameter, scheme);
    else if (model_parameter_is(parameter, "k"))
        *failed = model_parameter_whole(parameter, &scheme->k);
    else if (model_parameter_is(parameter, "m"))
        *failed = model_parameter_whole(parameter, &scheme->m);
    else
        return false;
    return true;
}

static void bounded_model_format(const struct lh_model_scheme *scheme, struct model_text *text)
{
    bool has_deadline = scheme->deadline_s > 0;
    if (has_deadline)
        model_text_add(text, ":deadline=%.0fus", scheme->deadline_s * 1e6);
    if (scheme->k == 0)
        return;
    model_text_add(text, "%ccode=%s", has_deadline ? ',' : ':', scheme->xor_code ? "xor" : "mds");
    model_text_add_number(text, "k", scheme->k);
    model_text_add_number(text, "m", scheme->m);
}

/* See struct model_predictor. */
static int bounded_model_check(const struct lh_model_scheme *scheme)
{
    if ((scheme->k == 0) != (scheme->m == 0) || scheme->k > MODEL_COUNT_MAX ||
        scheme->m > MODEL_COUNT_MAX || scheme->k + scheme->m > MODEL_COUNT_MAX)
        return lh_fail(LH_EINVAL,
                       "bounded: k=%u,m=%u: out of range (both at least 1, together at most %u, as in "
                       "code=mds,k=32,m=2; none without a code)",
                       scheme->k, scheme->m, MODEL_COUNT_MAX);
    if (scheme->xor_code && scheme->m > scheme->k)
        return lh_fail(LH_EINVAL, "bounded: m=%u exceeds k=%u, the maximum for xor (use m at most %u)",
                       scheme->m, scheme->k, scheme->k);
    if (!(scheme->deadline_s >= 0) || !isfinite(scheme->deadline_s))
        return lh_fail(LH_ERANGE, "bounded: deadline %g s: out of range (at least 0; 0: auto)",
                       scheme->deadline_s);
    return 0;
}

/* See struct scheme_entry; 0 without a code. */
static double bounded_encode_rate(const struct lh_plan_question *question,
                                  const struct lh_model_scheme *scheme)
{
    if (scheme->k == 0)
        return 0;
    return scheme->xor_code ? ec_xor_encode_rate(question, scheme) : ec_mds_encode_rate(question, scheme);
}

/* ---- missing --------------------------------------------------------------------------------------- */

#define EARLY 1e-9 /* of a chunk: rounding */

/* What ec_missing_of() and ec_partial_start() take. */
static struct lh_model_scheme code_of(const struct lh_model_scheme *scheme)
{
    struct lh_model_scheme code = *scheme;
    code.kind = scheme->xor_code ? LH_MODEL_EC_XOR : LH_MODEL_EC_MDS;
    return code;
}

void bounded_missing_start(struct bounded_missing *segment, const struct lh_model_scheme *scheme,
                           const struct model_message *message)
{
    *segment = (struct bounded_missing){.loss = message->loss,
                                        .packets = message->packets,
                                        .inject_s = message->inject_s,
                                        .data_s = message->chunks * message->inject_s,
                                        .rtt_s = message->rtt_s,
                                        .window_s = message->window_s,
                                        .xor_code = scheme->xor_code};
    if (scheme->k == 0)
        return;
    const struct lh_model_scheme code = code_of(scheme);
    ec_missing_of(&code, &message->loss, message->chunks, &segment->missing);
    ec_partial_start(&segment->partial, &code, &message->loss, message->chunks, &segment->missing);
    segment->parity = segment->missing.parity_chunks;
}

double bounded_missing_settled(const struct bounded_missing *segment)
{
    return segment->data_s + segment->parity * segment->inject_s + segment->rtt_s + segment->window_s;
}

/* Chunks of parity that have come by then; below 0: not all data has. */
static double parity_by(const struct bounded_missing *segment, double seconds)
{
    double chunks = (seconds - segment->rtt_s - segment->data_s) / segment->inject_s;
    return fmin(segment->parity, floor(chunks + EARLY));
}

/* No burst is under way, and none begins. */
static double log_plain_whole(const struct bounded_missing *segment)
{
    const struct model_loss *loss = &segment->loss;
    return log1p(-loss->packet) + (segment->packets - 1) * log1p(-loss->enter);
}

double bounded_missing_log_whole(const struct bounded_missing *segment, double seconds)
{
    double parity = parity_by(segment, seconds);
    if (parity < 0)
        return -INFINITY;
    return segment->parity > 0 ? ec_partial_log(&segment->partial, parity) : log_plain_whole(segment);
}

/* ---- how much ---------------------------------------------------------------------------------------- */

/* Packets from one chunk of a submessage to the next, but for itself. */
static double between(const struct bounded_missing *segment, double strides)
{
    return (segment->missing.stride * strides - 1) * segment->loss.chunk_packets;
}

/* More than `rows` of the data and of that many rows of parity are lost. Of chunks. */
static double mds_share(const struct bounded_missing *segment, unsigned size, unsigned rows)
{
    double chance[MODEL_COUNT_MAX + 1];
    unsigned all = size + rows;
    double missing = 0;
    model_lost_chunks(&segment->loss, all, between(segment, 1), chance);
    for (unsigned x = rows + 1; x <= all; x++)
        missing += chance[x] * x / all;
    return missing;
}

/* A class with its parity may lack one, one without it none; else nothing of the submessage is recovered. */
static double xor_share(const struct bounded_missing *segment, unsigned size, unsigned rows)
{
    double chance[MODEL_COUNT_MAX + 1];
    unsigned classes = segment->missing.rows < size ? segment->missing.rows : size;
    unsigned data = (size + classes - 1) / classes;
    rows = rows < classes ? rows : classes;
    if (segment->loss.chunk <= 0)
        return 0;
    model_lost_chunks(&segment->loss, data, between(segment, classes), chance);
    double none = chance[0];
    model_lost_chunks(&segment->loss, data + 1, between(segment, classes), chance);
    double met = chance[0] + chance[1];
    double alone =
        fmin(1, chance[1] / (data + 1) / segment->loss.chunk); /* all others of its class are there */
    double recovered =
        rows > 0 ? alone * pow(met, rows - 1) * pow(none, classes - rows) * rows / classes : 0;
    return segment->loss.chunk * (1 - recovered);
}

/* With so many rows of parity. Of the data's bytes. */
static double share_with(const struct bounded_missing *segment, unsigned rows)
{
    const struct model_loss *loss = &segment->loss;
    double chunks = loss->chunk;
    unsigned size = segment->missing.kind[0].size;
    if (rows > 0)
        chunks = segment->xor_code ? xor_share(segment, size, rows) : mds_share(segment, size, rows);
    return loss->chunk > 0 ? chunks * loss->packet / loss->chunk : 0;
}

double bounded_missing_share(const struct bounded_missing *segment, double seconds)
{
    double parity = parity_by(segment, seconds);
    if (parity < 0) {
        double came_s = fmax(0, seconds - segment->rtt_s);
        return 1 - came_s / segment->data_s * (1 - segment->loss.packet);
    }
    if (segment->parity <= 0)
        return segment->loss.packet;
    double rows = fmin(segment->missing.rows, parity / segment->missing.submessages);
    unsigned all = (unsigned)rows;
    double share = share_with(segment, all);
    if (rows > all) /* some have had one more */
        share += (rows - all) * (share_with(segment, all + 1) - share);
    assert(share >= 0 && share <= 1);
    return share;
}

/* ---- predictor ------------------------------------------------------------------------------------- */

/*
 * When a message is delivered by bounded completion, and how much of it.
 *
 * A whole message is delivered as it arrives; one with losses a reordering window after the last packet that
 * came, or after END; and none later than the deadline, which cuts off what has not arrived. Each chunk
 * is sent once, so of what arrives in time the share of its loss is missing, but for what parity
 * recovers.
 *
 * Times are those of the other schemes: to the sender's receipt of DONE, though its request is done before.
 */

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

static double sample(const struct model_prediction *prediction, struct lh_prng *prng, uint8_t *cells)
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

static const struct model_predictor bounded_predictor = {
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
    .sample = sample,
};

/* ---- scheme ---------------------------------------------------------------------------------------- */

#define NAME "bounded"
#define HELP                                                                                               \
    "sends each packet once, delivers at the deadline; deadline=TIME, default auto: from earlier "         \
    "messages; code=mds or xor with k=DATA,m=PARITY, default none"

const struct lh_scheme bounded_scheme = {
    .name = NAME,
    .help = HELP,
    .id = WIRE_BOUNDED,
    .parse = bounded_parse,
    .params_valid = bounded_params_valid,
    .sender_bytes = bounded_sender_bytes,
    .sender_start = bounded_sender_start,
    .sender_on_message = bounded_sender_on_message,
    .sender_step = bounded_sender_step,
    .receiver_bytes = bounded_receiver_bytes,
    .receiver_start = bounded_receiver_start,
    .receiver_on_message = bounded_receiver_on_message,
    .receiver_step = bounded_receiver_step,
    .coding = &bounded_coding,
    .deadline = bounded_deadline,
};

/* The planner chooses it only for data of which some may be missing (plan/plan_collective.c). */
const struct scheme_entry bounded_entry = {
    .shown =
        {.kind = LH_MODEL_BOUNDED, .name = NAME, .help = HELP, .codes = true, .machines = &bounded_scheme},
    .code_is_optional = true,
    .predictor = &bounded_predictor,
    .parameters = "deadline, code, k and m",
    .take = bounded_model_take,
    .format = bounded_model_format,
    .encode_rate = bounded_encode_rate,
};
