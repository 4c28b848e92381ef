/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec_scheme.h"

#include <assert.h>
#include <math.h>

#include "base/error.h"
#include "model/loss_model.h"
#include "model/predictor.h"
#include "model/repeat_model.h"
#include "schemes/ec_arrival_model.h"
#include "schemes/ec_layout.h"
#include "schemes/ec_missing.h"
#include "schemes/ec_receiver.h"
#include "schemes/ec_sender.h"
#include "wire/wire_numbers.h"

/* ---- model params ---------------------------------------------------------------------------------- */

#define BETA_DEFAULT 0.5 /* paper, section 4.2.3 */

/* Parity chunks that a kernel makes of one reading of the data (docs/erasure-codes.md, "Kernels"). */
#define ROWS_AT_ONCE 8

static const char *name_of(const struct lh_model_scheme *scheme)
{
    return scheme->kind == LH_MODEL_EC_MDS ? "ec:mds" : "ec:xor";
}

int ec_model_check(const struct lh_model_scheme *scheme)
{
    if (scheme->k < 1 || scheme->m < 1)
        return lh_fail(LH_EINVAL, "%s: k=%u,m=%u: out of range (both at least 1, as in k=32,m=8)",
                       name_of(scheme), scheme->k, scheme->m);
    if (scheme->k > MODEL_COUNT_MAX || scheme->m > MODEL_COUNT_MAX ||
        scheme->k + scheme->m > MODEL_COUNT_MAX)
        return lh_fail(LH_EINVAL, "k=%u and m=%u exceed %u together (lower one of them)", scheme->k,
                       scheme->m, MODEL_COUNT_MAX);
    if (scheme->kind == LH_MODEL_EC_XOR && scheme->m > scheme->k)
        return lh_fail(LH_EINVAL, "ec:xor: m=%u exceeds k=%u (use m at most %u)", scheme->m, scheme->k,
                       scheme->k);
    if (!(scheme->beta >= 0) || !(scheme->beta <= MODEL_RTTS_MAX))
        return lh_fail(LH_ERANGE, "beta=%g: out of range (round trips, at least 0, such as 0.5)",
                       scheme->beta);
    if (scheme->fallback != LH_MODEL_FALLBACK_IR && scheme->fallback != LH_MODEL_FALLBACK_SR)
        return lh_fail(LH_EINVAL, "unknown fallback %d (LH_MODEL_FALLBACK_IR or LH_MODEL_FALLBACK_SR)",
                       (int)scheme->fallback);
    if (!(scheme->encode_bytes_per_s >= 0) || !isfinite(scheme->encode_bytes_per_s))
        return lh_fail(LH_ERANGE,
                       "encoding rate of %g bytes a second: out of range (at least 0; 0: unknown)",
                       scheme->encode_bytes_per_s);
    return 0;
}

static double ec_model_rto(const struct lh_model_scheme *scheme)
{
    return scheme->fallback == LH_MODEL_FALLBACK_IR ? MODEL_RTO_NACK : MODEL_RTO_DEFAULT;
}

/* A fallback asks, too. */
static void ec_model_longhaul(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                              struct model_message *message)
{
    model_timing_by_report(path, scheme->rto_rtts, message);
}

/* ---- as text ----------------------------------------------------------------------------------------- */

void ec_model_defaults(struct lh_model_scheme *scheme)
{
    scheme->k = EC_K_DEFAULT;
    scheme->m = EC_M_DEFAULT;
    scheme->beta = BETA_DEFAULT;
}

static int take_fallback(const struct model_parameter *parameter, enum lh_model_fallback *fallback)
{
    bool sr = model_parameter_value_is(parameter, "sr");
    if (!sr && !model_parameter_value_is(parameter, "ir"))
        return lh_fail(LH_EINVAL, "%.*s: invalid fallback (fallback=ir or fallback=sr)", parameter->length,
                       parameter->text);
    *fallback = sr ? LH_MODEL_FALLBACK_SR : LH_MODEL_FALLBACK_IR;
    return 0;
}

bool ec_model_take(const struct model_parameter *parameter, struct lh_model_scheme *scheme, int *failed)
{
    if (model_parameter_is(parameter, "k"))
        *failed = model_parameter_whole(parameter, &scheme->k);
    else if (model_parameter_is(parameter, "m"))
        *failed = model_parameter_whole(parameter, &scheme->m);
    else if (model_parameter_is(parameter, "spread"))
        *failed = model_parameter_whole(parameter, &scheme->spread);
    else if (model_parameter_is(parameter, "beta"))
        *failed = model_parameter_number(parameter, &scheme->beta);
    else if (model_parameter_is(parameter, "fallback"))
        *failed = take_fallback(parameter, &scheme->fallback);
    else
        return false;
    return true;
}

static void ec_model_format(const struct lh_model_scheme *scheme, struct model_text *text)
{
    model_text_add_number(text, "k", scheme->k);
    model_text_add_number(text, "m", scheme->m);
    if (scheme->spread != 0)
        model_text_add_number(text, "spread", scheme->spread);
    if (scheme->beta != BETA_DEFAULT)
        model_text_add_number(text, "beta", scheme->beta);
    if (scheme->fallback == LH_MODEL_FALLBACK_SR)
        model_text_add(text, ",fallback=sr");
    if (scheme->rto_rtts != 0 && scheme->rto_rtts != ec_model_rto(scheme))
        model_text_add_number(text, "rto", scheme->rto_rtts);
}

/* ---- for the planner --------------------------------------------------------------------------------- */

static uint32_t candidates(enum lh_model_kind kind, bool unspread, struct lh_model_scheme *out)
{
    static const uint32_t ks[] = {8, 16, 32, 64, 128};
    uint32_t count = 0;
    for (unsigned i = 0; i < sizeof ks / sizeof ks[0]; i++)
        for (uint32_t m = 1; m <= ks[i] && m <= 64; m *= 2) {
            assert(count < SCHEME_CANDIDATES_MAX);
            out[count++] = (struct lh_model_scheme){
                .kind = kind, .k = ks[i], .m = m, .spread = unspread, .beta = BETA_DEFAULT};
        }
    return count;
}

uint32_t ec_mds_candidates(bool unspread, struct lh_model_scheme *out)
{
    return candidates(LH_MODEL_EC_MDS, unspread, out);
}

uint32_t ec_xor_candidates(bool unspread, struct lh_model_scheme *out)
{
    return candidates(LH_MODEL_EC_XOR, unspread, out);
}

double ec_mds_encode_rate(const struct lh_plan_question *question, const struct lh_model_scheme *scheme)
{
    return question->mds_bytes_per_s / ceil((double)scheme->m / ROWS_AT_ONCE);
}

double ec_xor_encode_rate(const struct lh_plan_question *question, const struct lh_model_scheme *scheme)
{
    (void)scheme;
    return question->xor_bytes_per_s;
}

/* ---- paper times ----------------------------------------------------------------------------------- */

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

/* E over N of the integral that repeat_model.c computes for one N, all staircases being apart (N <= O): with
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
    double maximum =
        coded->missing.mean + 10 * sqrt(coded->missing.variance) + 4.0 * coded->missing.kind[0].maximum;
    double excess = maximum <= coded->repeat.overhead ? excess_of_few(coded) : excess_of_many(coded);
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

/* ---- message times --------------------------------------------------------------------------------- */

#define DONE (-1e-15) /* log P: nothing is missing to any digit that counts */

static int start_one(struct ec_segment_times *code, const struct lh_model_path *path, uint64_t bytes,
                     const struct lh_model_scheme *scheme, struct model_message *message)
{
    struct lh_model_path segment = *path;
    segment.message_bytes = bytes;
    int failed = model_message_of(&segment, ec_model_rto(scheme), message);
    if (failed)
        return failed;
    ec_model_longhaul(&segment, scheme, message);
    ec_segment_start(code, scheme, message);
    return 0;
}

/* Returns the number of rounds in log_done. */
static unsigned list_rounds(const struct ec_rounds *rounds, double log_done[MODEL_ROUNDS_MAX + 1])
{
    unsigned count = 0;
    log_done[0] = rounds->log_none;
    while (count < MODEL_ROUNDS_MAX && log_done[count] < DONE) {
        count++;
        log_done[count] = ec_rounds_log(rounds, count);
    }
    if (count > 0)
        log_done[count] = 0;
    return count;
}

int ec_message_start(struct ec_message_times *segments, const struct lh_model_path *path,
                     const struct lh_model_scheme *scheme)
{
    uint64_t bytes = model_message_segment(path);
    uint64_t before = bytes > 0 ? (path->message_bytes - 1) / bytes : 0;
    struct ec_segment_times *full = &segments->full;
    struct model_message message;
    int failed = start_one(&segments->last, path, path->message_bytes - before * bytes, scheme, &message);
    if (failed)
        return failed;
    if (before == 0)
        *full = segments->last;
    else if ((failed = start_one(full, path, bytes, scheme, &message)) != 0)
        return failed;
    segments->before = (double)before;
    segments->apart_s =
        message.ideal_s - message.rtt_s + full->missing.submessages * full->missing.rows * full->inject_s;
    segments->rounds = before > 0 ? list_rounds(&full->rounds, segments->log_done) : 0;
    segments->last_rounds = before > 0 ? list_rounds(&segments->last.rounds, segments->log_last) : 0;
    return 0;
}

/* When the last segment begins. */
static double last_s(const struct ec_message_times *segments)
{
    return segments->before * segments->apart_s;
}

/* Segments before the last whose round r would have ended by then. */
static double segments_over(const struct ec_message_times *segments, double seconds, unsigned round)
{
    const struct ec_segment_times *full = &segments->full;
    double first_s = full->asked_s + full->requested * full->inject_s;
    double since = (seconds - first_s - (round - 1) * full->round_s) / segments->apart_s;
    return fmin(segments->before, fmax(0, floor(since) + 1));
}

/* log P(all segments before the last are complete), behind the last one's data. */
static double log_before(const struct ec_message_times *segments, double seconds)
{
    double sum = 0;
    double reached = segments->before; /* that have had r rounds at least */
    for (unsigned r = 0; r < segments->rounds && reached > 0; r++) {
        double next = segments_over(segments, seconds, r + 1);
        sum += (reached - next) * segments->log_done[r];
        reached = next;
    }
    return segments->rounds > 0 ? sum : segments->before * segments->log_done[0];
}

/* log P(the last segment is complete), so long after its begin. */
static double log_of_last(const struct ec_message_times *segments, double seconds)
{
    const struct ec_segment_times *last = &segments->last;
    double first_s = last->asked_s + last->requested * last->inject_s;
    if (seconds < first_s)
        return ec_partial_log(&last->partial, floor((seconds - last->sent_s) / last->inject_s));
    double rounds = fmin(segments->last_rounds, 1 + floor((seconds - first_s) / last->round_s));
    return segments->log_last[(unsigned)rounds];
}

double ec_message_cdf(const struct ec_message_times *segments, double seconds)
{
    if (segments->before <= 0)
        return ec_segment_cdf(&segments->last, seconds);
    double since = seconds - last_s(segments);
    if (since < segments->last.sent_s)
        return 0;
    return exp(log_of_last(segments, since) + log_before(segments, seconds));
}

/* ---- quantile ---------------------------------------------------------------------------------------- */
#define MESSAGE_TIMES_CLOSE 1e-12

double ec_message_quantile(const struct ec_message_times *segments, double share)
{
    assert(share >= 0 && share < 1);
    if (segments->before <= 0)
        return ec_segment_quantile(&segments->last, share);
    double low = last_s(segments) + segments->last.sent_s;
    double step = segments->full.round_s;
    double high = last_s(segments) + ec_segment_quantile(&segments->last, share);
    if (ec_message_cdf(segments, low) >= share)
        return low;
    for (unsigned i = 0; i < MODEL_LEVELS_MAX && ec_message_cdf(segments, high) < share; i++) {
        low = high;
        high += step;
    }
    for (int i = 0; i < HALVINGS && high - low > MESSAGE_TIMES_CLOSE * high; i++) {
        double middle = (low + high) / 2;
        *(ec_message_cdf(segments, middle) < share ? &low : &high) = middle;
    }
    return high;
}

/* ---- mean -------------------------------------------------------------------------------------------- */

#define STEPS        128
#define MEAN_IGNORED 1e-10 /* chance that a message takes longer */

/* Of 1 - P, the values in the middle of steps. */
static double missing_between(const struct ec_message_times *segments, double from, double to)
{
    double sum = 0;
    for (int i = 0; i < STEPS; i++)
        sum += 1 - ec_message_cdf(segments, from + (to - from) * (i + 0.5) / STEPS);
    return sum * (to - from) / STEPS;
}

double ec_message_mean(const struct ec_message_times *segments)
{
    if (segments->before <= 0)
        return ec_segment_mean(&segments->last);
    const struct ec_segment_times *last = &segments->last;
    double sent_s = last_s(segments) + last->sent_s;
    double parity_s = last->missing.submessages * last->missing.rows * last->inject_s;
    double asked_s = last_s(segments) + fmax(last->asked_s + last->requested * last->inject_s,
                                             segments->full.asked_s - segments->apart_s);
    double mean = sent_s + missing_between(segments, sent_s, sent_s + parity_s);
    double from = sent_s + parity_s;
    double to = fmax(from, asked_s);
    for (unsigned i = 0; i < MODEL_LEVELS_MAX && ec_message_cdf(segments, from) < 1 - MEAN_IGNORED; i++) {
        mean += missing_between(segments, from, to);
        from = to;
        to += segments->full.round_s;
    }
    return mean;
}

/* ---- what is sent ------------------------------------------------------------------------------------ */

/* Chance that something has to be asked for in one of them, and the chunks that are sent beside the data:
 * parity, and in the mean what is asked for. */
static double ec_message_fallback(const struct ec_message_times *segments)
{
    return -expm1(segments->last.rounds.log_none + segments->before * segments->full.rounds.log_none);
}

double ec_message_parity(const struct ec_message_times *segments)
{
    return segments->last.missing.parity_chunks + segments->before * segments->full.missing.parity_chunks;
}

static double ec_message_requested(const struct ec_message_times *segments)
{
    return segments->last.missing.mean + segments->before * segments->full.missing.mean;
}

/* ---- predictor ------------------------------------------------------------------------------------- */

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

static double sample_paper(const struct model_prediction *prediction, struct lh_prng *prng, uint8_t *cells)
{
    const struct ec_paper_times *times = &state_of(prediction)->paper;
    const struct model_loss *loss = &prediction->message.loss;
    double missing = ec_missing_sample_one(&times->missing, &prediction->scheme, loss, prng, cells).chunks;
    if (missing <= 0)
        return times->whole_s;
    double excess = model_sample_repeat(&times->repeat, prediction->log_loss, missing, prng);
    return times->asked_s + (missing + excess) * times->inject_s;
}

/* With bursts. */
static double sample_segment(const struct model_prediction *prediction,
                             const struct ec_segment_times *times, struct lh_prng *prng, uint8_t *cells)
{
    const struct lh_model_scheme *scheme = &prediction->scheme;
    const struct model_loss *loss = &prediction->message.loss;
    struct ec_missing_sample missing = ec_missing_sample_one(&times->missing, scheme, loss, prng, cells);
    if (missing.chunks <= 0)
        return times->sent_s + missing.parity * times->inject_s;
    double rounds = 1;
    double fresh = times->rounds.fresh * times->missing.submessages;
    if (scheme->fallback == LH_MODEL_FALLBACK_SR)
        rounds = ec_rounds_sample(loss, missing.data, prng);
    else if (scheme->kind == LH_MODEL_EC_XOR)
        rounds = ec_rounds_sample(loss, missing.chunks, prng);
    else if (missing.chunks > fresh)
        rounds = ec_rounds_sample(loss, missing.chunks - fresh, prng);
    return times->asked_s + missing.chunks * times->inject_s + (rounds - 1) * times->round_s;
}

static double sample_segments(const struct model_prediction *prediction, struct lh_prng *prng,
                              uint8_t *cells)
{
    const struct ec_message_times *times = &state_of(prediction)->message;
    if (!prediction->message.loss.bursty)
        return ec_message_quantile(times, lh_prng_double(prng));
    double latest = 0;
    for (double i = 0; i < times->before; i++) {
        double segment_s = sample_segment(prediction, &times->full, prng, cells);
        latest = fmax(latest, i * times->apart_s + segment_s);
    }
    double last_s = times->before * times->apart_s;
    return fmax(latest, last_s + sample_segment(prediction, &times->last, prng, cells));
}

static double sample(const struct model_prediction *prediction, struct lh_prng *prng, uint8_t *cells)
{
    return is_longhaul(prediction) ? sample_segments(prediction, prng, cells)
                                   : sample_paper(prediction, prng, cells);
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
    .sample = sample,
};

/* ---- scheme ---------------------------------------------------------------------------------------- */

#define HELP_PARAMETERS                                                                                    \
    "k=DATA,m=PARITY a submessage, default 32 and 8; spread=SUBMESSAGES interleaved, default 0: all; "     \
    "beta=ROUND TRIPS to wait, default 0.5; fallback=ir or sr"

#define MDS_NAME "ec:mds"
#define MDS_HELP "erasure coding, recovers any m losses of a submessage; " HELP_PARAMETERS
#define XOR_NAME "ec:xor"
#define XOR_HELP                                                                                           \
    "erasure coding by XOR, recovers one loss in each of m classes of a submessage; " HELP_PARAMETERS

#define EC_MACHINES                                                                                        \
    .sender_bytes = ec_sender_bytes, .sender_start = ec_sender_start,                                      \
    .sender_on_message = ec_sender_on_message, .sender_step = ec_sender_step,                              \
    .receiver_bytes = ec_receiver_bytes, .receiver_start = ec_receiver_start,                              \
    .receiver_on_message = ec_receiver_on_message, .receiver_step = ec_receiver_step

const struct lh_scheme ec_mds_scheme = {
    .name = MDS_NAME,
    .help = MDS_HELP,
    .id = WIRE_EC_MDS,
    .parse = ec_mds_parse,
    .params_valid = ec_mds_params_valid,
    EC_MACHINES,
    .coding = &ec_coding,
};

const struct lh_scheme ec_xor_scheme = {
    .name = XOR_NAME,
    .help = XOR_HELP,
    .id = WIRE_EC_XOR,
    .parse = ec_xor_parse,
    .params_valid = ec_xor_params_valid,
    EC_MACHINES,
    .coding = &ec_coding,
};

#define EC_ENTRY                                                                                           \
    .predictor = &ec_predictor, .parameters = "k, m, spread, beta, fallback and rto",                      \
    .defaults = ec_model_defaults, .take = ec_model_take, .format = ec_model_format

/* Codes of more data chunks send as much parity for less loss, and more parity is rarely better than falling
 * back once in a while. */
static const char *const mds_automatic[] = {
    "ec:mds,k=8,m=2",    "ec:mds,k=8,m=4",
    "ec:mds,k=8,m=8",    "ec:mds,k=16,m=1",
    "ec:mds,k=16,m=2",   "ec:mds,k=16,m=4",
    "ec:mds,k=16,m=8",   "ec:mds,k=32,m=1",
    "ec:mds,k=32,m=2",   "ec:mds,k=32,m=4",
    "ec:mds,k=32,m=8",   "ec:mds,k=32,m=16",
    "ec:mds,k=64,m=1",   "ec:mds,k=64,m=2",
    "ec:mds,k=64,m=4",   "ec:mds,k=64,m=8",
    "ec:mds,k=64,m=16",  "ec:mds,k=64,m=32",
    "ec:mds,k=128,m=1",  "ec:mds,k=128,m=2",
    "ec:mds,k=128,m=4",  "ec:mds,k=128,m=8",
    "ec:mds,k=128,m=16", "ec:mds,k=128,m=32",
    "ec:mds,k=128,m=64", NULL,
};
static const char *const xor_automatic[] = {
    "ec:xor,k=32,m=4", "ec:xor,k=32,m=8", "ec:xor,k=64,m=8", "ec:xor,k=128,m=16", NULL,
};

const struct scheme_entry ec_mds_entry = {
    .shown = {.kind = LH_MODEL_EC_MDS,
              .name = MDS_NAME,
              .help = MDS_HELP,
              .compared = "ec:mds,k=32,m=8",
              .codes = true,
              .machines = &ec_mds_scheme},
    EC_ENTRY,
    .automatic = mds_automatic,
    .candidates = ec_mds_candidates,
    .planner_rank = 3,
    .encode_rate = ec_mds_encode_rate,
};

const struct scheme_entry ec_xor_entry = {
    .shown = {.kind = LH_MODEL_EC_XOR,
              .name = XOR_NAME,
              .help = XOR_HELP,
              .compared = "ec:xor,k=32,m=8",
              .codes = true,
              .machines = &ec_xor_scheme},
    EC_ENTRY,
    .automatic = xor_automatic,
    .candidates = ec_xor_candidates,
    .planner_rank = 2,
    .encode_rate = ec_xor_encode_rate,
};
