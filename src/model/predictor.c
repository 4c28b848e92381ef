/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/predictor.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <longhaul/model.h>
#include <longhaul/plan.h>
#include <longhaul/scheme.h>
#include <longhaul/types.h>

#include "base/error.h"
#include "base/prng.h"
#include "base/units.h"
#include "model/loss_model.h"
#include "model/repeat_model.h"

/* ---- longhaul timing ------------------------------------------------------------------------------- */

#define MODEL_OVERDUE_RTTS     1.125
#define MODEL_ACK_SPACING_RTTS 0.25
/* What the connection puts into the send queue ahead of the wire. */
#define MODEL_QUEUE_BYTES  ((uint64_t)512 << 10)
#define MODEL_QUEUE_CHUNKS 2u

/* How long the last chunk waits in the send queue. Its timer runs meanwhile. The queue is filled to its
 * limit first, and again by half of it whenever it is half empty. */
static double queued_s(const struct lh_model_path *path, const struct model_message *message)
{
    double chunk_bytes = (double)path->chunk_bytes;
    double limit = fmax((double)MODEL_QUEUE_BYTES, MODEL_QUEUE_CHUNKS * chunk_bytes);
    double chunks = fmax(1, floor(limit / chunk_bytes));
    double fillings = fmax(0, ceil((message->chunks - chunks) / (chunks / 2)));
    return (message->chunks - fillings * chunks / 2) * message->inject_s;
}

static void set_window(const struct lh_model_path *path, struct model_message *message)
{
    message->longhaul = true;
    message->window_s =
        path->reorder_window_s > 0 ? path->reorder_window_s : MODEL_WINDOW_RTTS * message->rtt_s;
}

void model_timing_by_timeout(const struct lh_model_path *path, struct model_message *message)
{
    double min_s = (MODEL_OVERDUE_RTTS + MODEL_ACK_SPACING_RTTS) * message->rtt_s;
    double queue_s = queued_s(path, message);
    set_window(path, message);
    message->first_s = fmax(message->rto_s - queue_s, min_s); /* a queue of hours would round it away */
    message->rto_s = fmax(message->rto_s, min_s);
    assert(message->first_s >= message->rtt_s * (1 - 1e-9));
}

void model_timing_by_report(const struct lh_model_path *path, double rto_rtts,
                            struct model_message *message)
{
    double rtts = rto_rtts > 0 ? rto_rtts : MODEL_RTO_NACK;
    set_window(path, message);
    message->rto_s = rtts * message->rtt_s + message->window_s;
    message->first_s = message->rto_s;
    assert(message->first_s >= message->rtt_s * (1 - 1e-9));
}

void model_timing_repairs(struct model_message *message)
{
    double sent_s = message->chunks * message->inject_s;
    message->repairs_s = message->loss.chunk / (1 - message->loss.chunk) *
                         fmax(0, sent_s - message->first_s - message->inject_s);
    assert(message->repairs_s >= 0);
}

/* ---- predictor ------------------------------------------------------------------------------------- */

int model_predictor_check(const struct model_predictor *predictor, const struct lh_model_scheme *scheme)
{
    if (scheme->timing != LH_MODEL_TIMING_PAPER && scheme->timing != LH_MODEL_TIMING_LONGHAUL)
        return lh_fail(LH_EINVAL, "unknown timing %d (LH_MODEL_TIMING_PAPER or LH_MODEL_TIMING_LONGHAUL)",
                       (int)scheme->timing);
    if (scheme->rto_rtts != 0 && !(scheme->rto_rtts >= 1 && scheme->rto_rtts <= MODEL_RTTS_MAX))
        return lh_fail(LH_ERANGE,
                       "timeout of %g round trips: out of range (at least 1, or 0 for the default)",
                       scheme->rto_rtts);
    return predictor->check ? predictor->check(scheme) : 0;
}

double model_predictor_rto(const struct model_predictor *predictor, const struct lh_model_scheme *scheme)
{
    if (scheme->rto_rtts > 0)
        return scheme->rto_rtts;
    return predictor->rto_rtts ? predictor->rto_rtts(scheme) : MODEL_RTO_DEFAULT;
}

int model_predictor_message(const struct model_predictor *predictor, const struct lh_model_path *path,
                            const struct lh_model_scheme *scheme, struct model_message *message)
{
    int failed = model_predictor_check(predictor, scheme);
    if (!failed)
        failed = model_message_of(path, model_predictor_rto(predictor, scheme), message);
    if (!failed && scheme->timing == LH_MODEL_TIMING_LONGHAUL && predictor->longhaul)
        predictor->longhaul(path, scheme, message);
    return failed;
}

int model_predictor_start(const struct model_predictor *predictor, const struct lh_model_path *path,
                          const struct lh_model_scheme *scheme, struct model_prediction *prediction)
{
    int failed = model_predictor_message(predictor, path, scheme, &prediction->message);
    if (failed)
        return failed;
    prediction->predictor = predictor;
    prediction->scheme = *scheme;
    prediction->log_loss = log(prediction->message.loss.chunk);
    prediction->cells = 0;
    return predictor->start ? predictor->start(prediction, path) : 0;
}

static double paper_mean(const struct lh_model_path *path, const struct model_prediction *prediction)
{
    const struct model_predictor *predictor = prediction->predictor;
    if (predictor->paper_mean)
        return predictor->paper_mean(prediction);
    struct lh_model_scheme scheme = prediction->scheme;
    struct model_prediction paper;
    scheme.timing = LH_MODEL_TIMING_PAPER;
    int failed = model_predictor_start(predictor, path, &scheme, &paper);
    assert(!failed); /* the path was checked before */
    (void)failed;
    return predictor->mean(&paper);
}

static void add_code(const struct lh_model_path *path, const struct model_prediction *prediction,
                     struct lh_model_times *times)
{
    const struct model_predictor *predictor = prediction->predictor;
    const struct model_message *message = &prediction->message;
    double sent_s = (message->chunks + predictor->parity_chunks(prediction)) * message->inject_s;
    times->p_fallback = predictor->p_fallback(prediction);
    if (prediction->scheme.encode_bytes_per_s > 0) {
        times->encode_core_s = (double)path->message_bytes / prediction->scheme.encode_bytes_per_s;
        times->encode_cores = times->encode_core_s / sent_s;
    }
}

int model_predictor_times(const struct model_predictor *predictor, const struct lh_model_path *path,
                          const struct lh_model_scheme *scheme, struct lh_model_times *times)
{
    struct model_prediction prediction;
    int failed = model_predictor_start(predictor, path, scheme, &prediction);
    if (failed)
        return failed;
    struct lh_model_times of = {
        .ideal_s = prediction.message.ideal_s,
        .mean_s = predictor->mean(&prediction),
        .p50_s = predictor->quantile(&prediction, 0.5),
        .p99_s = predictor->quantile(&prediction, 0.99),
        .p999_s = predictor->quantile(&prediction, 0.999),
        .overhead_bytes = predictor->overhead_bytes(&prediction),
        .delivered = predictor->delivered ? predictor->delivered(&prediction) : 1,
    };
    bool same = scheme->timing == LH_MODEL_TIMING_PAPER && !predictor->paper_mean;
    of.wire_bytes = prediction.message.message_wire_bytes + of.overhead_bytes;
    of.paper_mean_s = same ? of.mean_s : paper_mean(path, &prediction);
    if (predictor->parity_chunks)
        add_code(path, &prediction, &of);
    *times = of;
    return 0;
}

/* ---- parameter ------------------------------------------------------------------------------------- */

struct model_parameter model_parameter_at(const char *text)
{
    struct model_parameter parameter = {.text = text, .length = (int)strcspn(text, ",")};
    const char *equals = memchr(text, '=', (size_t)parameter.length);
    parameter.key_length = equals ? (int)(equals - text) : parameter.length;
    parameter.value = equals ? equals + 1 : NULL;
    return parameter;
}

bool model_parameter_is(const struct model_parameter *parameter, const char *key)
{
    return parameter->value && strlen(key) == (size_t)parameter->key_length &&
           memcmp(key, parameter->text, strlen(key)) == 0;
}

bool model_parameter_value_is(const struct model_parameter *parameter, const char *word)
{
    size_t length = (size_t)(parameter->length - parameter->key_length - 1);
    return length == strlen(word) && memcmp(parameter->value, word, length) == 0;
}

int model_parameter_number(const struct model_parameter *parameter, double *value)
{
    const char *end = parameter->value;
    if (lh_decimal_read_double(&end, value) != 0 || end != parameter->text + parameter->length)
        return lh_fail(LH_EINVAL, "\"%.*s\" is not a number; write it like %.*s=2", parameter->length,
                       parameter->text, parameter->key_length, parameter->text);
    return 0;
}

int model_parameter_whole(const struct model_parameter *parameter, uint32_t *value)
{
    double read;
    int failed = model_parameter_number(parameter, &read);
    if (failed)
        return failed;
    if (read != floor(read) || read > 65535)
        return lh_fail(LH_EINVAL, "\"%.*s\" is not a whole number up to 65535; write it like %.*s=8",
                       parameter->length, parameter->text, parameter->key_length, parameter->text);
    *value = (uint32_t)read;
    return 0;
}

int model_parameter_rto(const struct model_parameter *parameter, double more, double *rto_rtts)
{
    double value;
    int failed = model_parameter_number(parameter, &value);
    if (failed)
        return failed;
    if (!(value + more >= 1))
        return lh_fail(LH_ERANGE, "\"%.*s\" makes a timeout of %g round trips; it has at least 1",
                       parameter->length, parameter->text, value + more);
    *rto_rtts = value + more;
    return 0;
}

void model_text_add(struct model_text *text, const char *format, ...)
{
    bool open = text->used < text->size;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(open ? text->out + text->used : NULL, open ? text->size - text->used : 0, format,
                           arguments);
    va_end(arguments);
    text->used += length > 0 ? (size_t)length : 0;
}

void model_text_add_number(struct model_text *text, const char *name, double value)
{
    char number[LH_DECIMAL_DOUBLE_MAX];
    lh_decimal_format_double(value, number, sizeof number);
    model_text_add(text, ",%s=%s", name, number);
}

/* ---- facts ----------------------------------------------------------------------------------------- */

/* Numbers of the paper that need no scheme. */

int lh_model_chunk_loss(double packet_loss, double burst_packets, uint32_t packets, double *chunk_loss)
{
    if (!(packet_loss >= 0) || !(packet_loss < 1))
        return lh_fail(LH_ERANGE, "loss %g: out of range (0 to below 1)", packet_loss);
    if (packets == 0)
        return lh_fail(LH_EINVAL, "chunk of 0 packets: out of range (at least 1)");
    double burst = burst_packets > 1 ? burst_packets : 0;
    if (!(burst_packets >= 0) || !(burst_packets <= 1e9) ||
        (burst > 0 && packet_loss > burst / (burst + 1)))
        return lh_fail(
            LH_ERANGE,
            "bursts of %g packets with a loss of %g: out of range (at most 10^9 packets, and one arrives "
            "between two bursts)",
            burst_packets, packet_loss);
    *chunk_loss = model_loss_of_packets(packet_loss, burst, packets).chunk;
    return 0;
}

int lh_model_wraparound(double bandwidth_bps, uint64_t message_bytes, uint32_t id_bits, double *seconds)
{
    if (!(bandwidth_bps > 0) || !isfinite(bandwidth_bps))
        return lh_fail(LH_ERANGE, "bandwidth %g bit/s: out of range (above 0)", bandwidth_bps);
    if (message_bytes == 0 || message_bytes >> 63)
        return lh_fail(LH_ERANGE, "message of %llu bytes: out of range (1 to below 2^63)",
                       (unsigned long long)message_bytes);
    if (id_bits < 1 || id_bits > 32)
        return lh_fail(LH_ERANGE, "message ID of %u bits: out of range (1 to 32)", id_bits);
    *seconds = ldexp((double)message_bytes * 8 / bandwidth_bps, (int)id_bits);
    return 0;
}

/* ---- path estimate --------------------------------------------------------------------------------- */

/* Before so many chunks were seen, none lost means little. */
#define SEEN_MIN 1000.0
/* Runs by which the newest chunks must differ from what was expected, in standard deviations, and besides.
 * */
#define SURPRISE_DEVIATIONS 4.0
#define SURPRISE_RUNS       4.0
#define LOSS_MAX            0.5
/* Busy time after which what is known of the rate counts half. */
#define RATE_MEMORY_NS (2.0 * (double)LH_NS_PER_S)

void path_estimate_init(struct path_estimate *estimate)
{
    *estimate = (struct path_estimate){.last_at = LH_TIME_NEVER};
}

static struct path_counts sum(const struct path_counts *a, const struct path_counts *b)
{
    return (struct path_counts){a->seen + b->seen, a->lost + b->lost, a->runs + b->runs};
}

/* Whether the newest chunks can hardly be of the path that the older ones are of. */
static bool is_surprise(const struct path_counts *known, const struct path_counts *recent)
{
    double expected = known->runs * recent->seen / known->seen;
    double distance = fabs(recent->runs - expected);
    return distance > SURPRISE_DEVIATIONS * sqrt(expected) + SURPRISE_RUNS;
}

void path_estimate_on_chunks(struct path_estimate *estimate, uint32_t seen, uint32_t lost, uint32_t runs)
{
    assert(lost <= seen && runs <= lost);
    struct path_counts *known = &estimate->known, *recent = &estimate->recent;
    estimate->chunks_seen += seen;
    estimate->chunks_lost += lost;
    *recent = sum(recent, &(struct path_counts){seen, lost, runs});
    if (recent->seen < PATH_ESTIMATE_RECENT)
        return;
    if (known->seen > 0 && is_surprise(known, recent))
        *known = (struct path_counts){0};
    *known = sum(known, recent);
    *recent = (struct path_counts){0};
    if (known->seen >= PATH_ESTIMATE_MEMORY)
        *known = (struct path_counts){known->seen / 2, known->lost / 2, known->runs / 2};
}

/* Repairs arrive more slowly than the path could carry them, since they follow requests. Only when more has
 * arrived at less than half of the rate than at the rate has the path become slower. */
static void count_arrivals(struct path_estimate *estimate, double bytes, double ns)
{
    struct path_arrivals *rate = &estimate->rate, *slow = &estimate->slow;
    struct path_arrivals *of = 2 * bytes * rate->ns < rate->bytes * ns ? slow : rate;
    of->bytes += bytes;
    of->ns += ns;
    if (slow->bytes > rate->bytes) {
        *rate = *slow;
        *slow = (struct path_arrivals){0};
    }
    if (rate->ns + slow->ns >= RATE_MEMORY_NS) {
        *rate = (struct path_arrivals){rate->bytes / 2, rate->ns / 2};
        *slow = (struct path_arrivals){slow->bytes / 2, slow->ns / 2};
    }
}

/* A span of the busy period is over. */
static void end_span(struct path_estimate *estimate)
{
    if (estimate->span.ns > 0)
        count_arrivals(estimate, estimate->span.bytes, estimate->span.ns);
    estimate->span = (struct path_arrivals){0};
}

static void start_period(struct path_estimate *estimate, lh_time now)
{
    estimate->period_at = now;
    estimate->period_bytes = 0;
    estimate->period_chunks = 0;
}

void path_estimate_on_arrivals(struct path_estimate *estimate, lh_time now, uint32_t chunks, uint64_t bytes,
                               lh_time pause_ns)
{
    assert(estimate->last_at == LH_TIME_NEVER || now >= estimate->last_at);
    bool paused = estimate->last_at == LH_TIME_NEVER || now - estimate->last_at > pause_ns;
    estimate->last_at = now;
    if (paused) { /* when its chunks came is not known, only that they have */
        end_span(estimate);
        start_period(estimate, now);
        return;
    }
    estimate->period_bytes += bytes;
    estimate->period_chunks += chunks;
    if (estimate->period_chunks < PATH_ESTIMATE_PERIOD || now == estimate->period_at)
        return;
    estimate->span.bytes += (double)estimate->period_bytes;
    estimate->span.ns += (double)(now - estimate->period_at);
    start_period(estimate, now);
    if (estimate->span.ns > (double)pause_ns / 2)
        end_span(estimate);
}

double path_estimate_loss(const struct path_estimate *estimate)
{
    struct path_counts all = sum(&estimate->known, &estimate->recent);
    return all.seen > 0 ? all.lost / all.seen : 0;
}

double path_estimate_loss_upper(const struct path_estimate *estimate)
{
    struct path_counts all = sum(&estimate->known, &estimate->recent);
    double runs = all.runs + 0.5 + sqrt(all.runs + 0.25);
    double upper = path_estimate_run_chunks(estimate) * runs / fmax(all.seen, SEEN_MIN);
    return fmin(upper, LOSS_MAX);
}

double path_estimate_run_chunks(const struct path_estimate *estimate)
{
    struct path_counts all = sum(&estimate->known, &estimate->recent);
    return all.runs > 0 ? all.lost / all.runs : 1;
}

/* Lengths are geometric: their variance is mean (mean - 1). */
double path_estimate_run_upper(const struct path_estimate *estimate)
{
    struct path_counts all = sum(&estimate->known, &estimate->recent);
    double mean = path_estimate_run_chunks(estimate);
    return all.runs > 0 ? mean + sqrt(mean * (mean - 1) / all.runs) : mean;
}

double path_estimate_burst_packets(const struct path_estimate *estimate, uint32_t chunk_packets)
{
    assert(chunk_packets > 0);
    return 1 + (path_estimate_run_chunks(estimate) - 1) * chunk_packets;
}

double path_estimate_rate_bps(const struct path_estimate *estimate)
{
    const struct path_arrivals *rate = &estimate->rate;
    return rate->ns > 0 ? rate->bytes * 8 * (double)LH_NS_PER_S / rate->ns : 0;
}

/* ---- collective ------------------------------------------------------------------------------------ */

#define DATACENTERS_MAX 4096u /* all-to-all draws a message for each pair */

static uint32_t tree_height(uint32_t datacenters)
{
    uint32_t height = 0;
    while (((uint64_t)1 << height) < datacenters)
        height++;
    return height;
}

uint32_t model_collective_rounds(enum lh_model_collective collective, uint32_t datacenters)
{
    switch (collective) {
    case LH_MODEL_RING_ALLREDUCE:
        return 2 * datacenters - 2;
    case LH_MODEL_TREE_ALLREDUCE:
        return 2 * tree_height(datacenters);
    case LH_MODEL_ALL_TO_ALL:
        break;
    }
    return datacenters - 1;
}

int model_collective_path(const struct lh_model_path *path, enum lh_model_collective collective,
                          uint32_t datacenters, struct lh_model_path *message)
{
    if ((unsigned)collective > LH_MODEL_ALL_TO_ALL)
        return lh_fail(LH_EINVAL, "unknown collective %d (enum lh_model_collective)", (int)collective);
    if (datacenters < 2 || datacenters > DATACENTERS_MAX)
        return lh_fail(LH_ERANGE, "collective of %u datacenters: out of range (2 to %u)", datacenters,
                       DATACENTERS_MAX);
    *message = *path;
    if (collective != LH_MODEL_TREE_ALLREDUCE) /* a part for each; what is no size at all stays so */
        message->message_bytes =
            path->message_bytes / datacenters + (path->message_bytes % datacenters != 0);
    if (path->message_bytes >> 63)
        message->message_bytes = path->message_bytes;
    return 0;
}

struct run {
    const struct model_prediction *prediction;
    struct lh_prng *prng;
    uint8_t *cells;
    uint32_t datacenters;
    double *ready; /* of each datacenter */
    double *next;
};

static double message(const struct run *run)
{
    return run->prediction->predictor->sample(run->prediction, run->prng, run->cells);
}

/* T(i, r) = max(T(i - d, r - 1), T(i, r - 1)) + t: everyone receives from the one d before. */
static void shift_round(struct run *run, uint32_t distance)
{
    for (uint32_t i = 0; i < run->datacenters; i++) {
        uint32_t from = (i + run->datacenters - distance) % run->datacenters;
        run->next[i] = fmax(run->ready[from], run->ready[i]) + message(run);
    }
    double *ready = run->ready;
    run->ready = run->next;
    run->next = ready;
}

/* A binomial tree with root 0: pairs at this distance; both are busy until the message is there. */
static void tree_round(struct run *run, uint32_t distance)
{
    for (uint64_t parent = 0; parent + distance < run->datacenters; parent += 2 * (uint64_t)distance) {
        double *one = &run->ready[parent];
        double *other = &run->ready[parent + distance];
        *one = *other = fmax(*one, *other) + message(run);
    }
}

double model_collective_sample(const struct model_prediction *prediction,
                               enum lh_model_collective collective, uint32_t datacenters,
                               struct lh_prng *prng, uint8_t *cells, double *ready)
{
    struct run run = {prediction, prng, cells, datacenters, ready, ready + datacenters};
    const uint32_t rounds = model_collective_rounds(collective, datacenters);
    for (uint32_t i = 0; i < datacenters; i++)
        ready[i] = 0;
    for (uint32_t round = 0; round < rounds; round++) {
        uint32_t up = rounds / 2; /* rounds towards the root, then as many back */
        if (collective == LH_MODEL_TREE_ALLREDUCE)
            tree_round(&run, (uint32_t)1 << (round < up ? round : rounds - 1 - round));
        else
            shift_round(&run, collective == LH_MODEL_RING_ALLREDUCE ? 1 : round + 1);
    }
    double last = 0;
    for (uint32_t i = 0; i < datacenters; i++)
        last = fmax(last, run.ready[i]);
    assert(last > 0);
    return last;
}
