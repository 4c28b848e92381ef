/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/hybrid_scheme.h"

#include <assert.h>
#include <math.h>

#include "base/error.h"
#include "model/loss_model.h"
#include "model/predictor.h"
#include "schemes/ec_arrival_model.h"
#include "schemes/hybrid_groups.h"
#include "wire/wire_numbers.h"

/* ---- model params ---------------------------------------------------------------------------------- */

#define TAIL_MAX_RTTS (HYBRID_TAIL_MAX / 8.0)
/* Parity chunks that a kernel makes of one reading of the data (docs/erasure-codes.md, "Kernels"), and
 * how often data is read for the rows that the end of a message has at a loss of 1e-2. */
#define READINGS 2

int hybrid_model_check(const struct lh_model_scheme *scheme)
{
    if (!(scheme->target >= HYBRID_TARGET_MIN && scheme->target <= HYBRID_TARGET_MAX))
        return lh_fail(LH_ERANGE, "hybrid: target=%g: out of range (1e-12 to 0.5, as in target=1e-4)",
                       scheme->target);
    if (!(scheme->tail_rtts >= 0 && scheme->tail_rtts <= TAIL_MAX_RTTS))
        return lh_fail(LH_ERANGE, "hybrid: tail=%g: out of range (0 to 2 round trips, as in tail=1)",
                       scheme->tail_rtts);
    return 0;
}

/* No chunk is in flight for longer than two round trips: as good as all. */
void hybrid_model_defaults(struct lh_model_scheme *scheme)
{
    scheme->target = HYBRID_TARGET_DEFAULT;
    scheme->tail_rtts = TAIL_MAX_RTTS;
}

static bool hybrid_model_take(const struct model_parameter *parameter, struct lh_model_scheme *scheme,
                              int *failed)
{
    if (model_parameter_is(parameter, "target"))
        *failed = model_parameter_number(parameter, &scheme->target);
    else if (model_parameter_is(parameter, "tail"))
        *failed = model_parameter_number(parameter, &scheme->tail_rtts);
    else
        return false;
    return true;
}

static void hybrid_model_format(const struct lh_model_scheme *scheme, struct model_text *text)
{
    if (scheme->target != HYBRID_TARGET_DEFAULT)
        model_text_add_number(text, "target", scheme->target);
    if (scheme->tail_rtts != TAIL_MAX_RTTS)
        model_text_add_number(text, "tail", scheme->tail_rtts);
}

uint32_t hybrid_candidates(bool unspread, struct lh_model_scheme *out)
{
    if (unspread)
        return 0;
    out[0] = (struct lh_model_scheme){.kind = LH_MODEL_HYBRID};
    hybrid_model_defaults(&out[0]);
    return 1;
}

double hybrid_encode_rate(const struct lh_plan_question *question, const struct lh_model_scheme *scheme)
{
    (void)scheme;
    return question->mds_bytes_per_s / READINGS;
}

/* ---- predictor ------------------------------------------------------------------------------------- */

/*
 * How long a message takes by the hybrid scheme (docs/schemes.md).
 *
 * The tail is what is injected in the last report time, a round trip and a reordering window, before the
 * end, or all of a message that is shorter. Losses before it are repaired while it is injected, and cost
 * their share of the link. Of the tail parity follows the data, block after block, row by row; the
 * message is complete with the first chunk that makes each submessage decodable (ec_arrival_model.h).
 * Where parity does not suffice, a report time passes until more of it is there; that it suffices then is
 * assumed.
 *
 * What was lost before the tail and repaired in it is in flight at the end, too, and has its own parity,
 * which is sent first.
 */

struct hybrid_times {
    double inject_s; /* T_inj */
    double whole_s;  /* data, repairs before the tail, a round trip */
    double older;    /* parity chunks of what was repaired within the tail; sent before the other parity */
    double more_s;   /* from the last parity to what a report brings forth */
    double tail;     /* chunks */
    double excess;   /* of a submessage: chunks that its rows do not make up for, and are sent again */
    struct ec_partial_arrival partial;
};

static_assert(sizeof(struct hybrid_times) <= MODEL_STATE_BYTES, "fits");

static struct hybrid_times *state_of(const struct model_prediction *prediction)
{
    return (struct hybrid_times *)(void *)prediction->state;
}

static void longhaul(const struct lh_model_path *path, const struct lh_model_scheme *scheme,
                     struct model_message *message)
{
    model_timing_by_report(path, scheme->rto_rtts, message);
    model_timing_repairs(message);
}

/* ---- parity ------------------------------------------------------------------------------------------ */

/* How the tail is cut. */
struct cut {
    uint32_t code;
    double groups; /* submessages */
    double block;  /* of them interleaved */
    uint32_t size; /* data chunks of each */
};

static struct cut cut_of(const struct model_message *message, const struct lh_model_path *path, double tail)
{
    struct cut cut = {.code = hybrid_code_for(message->loss.chunk,
                                              message->loss.bursty ? message->loss.burst : 1, UINT32_MAX)};
    double segment = message->chunks;
    if (path->segment_bytes >= path->chunk_bytes && path->segment_bytes < path->message_bytes)
        segment = floor((double)path->segment_bytes / (double)path->chunk_bytes);
    double groups = ceil(segment / hybrid_code_size(cut.code));
    cut.size = (uint32_t)ceil(segment / groups);
    cut.groups = fmax(1, round(tail / cut.size));
    cut.block = fmin(fmin(groups, HYBRID_SPREAD), cut.groups);
    return cut;
}

static struct hybrid_loss loss_of(const struct model_message *message, const struct cut *cut)
{
    const struct model_loss *of = &message->loss;
    /* A burst of packets as chunks: the receiver measures it the other way round (docs/schemes.md). */
    double burst = of->bursty ? 1 + (of->burst - 1) / of->chunk_packets : 1;
    const struct hybrid_loss loss = {fmin(of->chunk, HYBRID_LOSS_MAX), burst};
    return hybrid_groups_loss(&loss, (uint32_t)cut->block);
}

/* log P(decodable with r rows), r = 0 ... rows. Returns what is missing in the mean with all of them. */
static double open_groups(struct ec_partial_arrival *partial, const struct model_loss *loss, uint32_t size)
{
    struct model_lost lost;
    model_lost_start(&lost, loss, (partial->block_groups - 1) * loss->chunk_packets);
    while (lost.n < size)
        model_lost_more(&lost);
    double excess = 0;
    for (unsigned r = 0; r <= partial->rows; r++) {
        double chance[MODEL_COUNT_MAX + 1];
        double above = 0;
        model_lost_chances(&lost, chance);
        excess = 0;
        for (unsigned x = lost.n; x > r; x--) {
            above += chance[x];
            excess += above;
        }
        partial->log_open[0][r] = log1p(-fmin(above, 1 - 1e-16));
        if (r > 0)
            partial->log_open[0][r] = fmax(partial->log_open[0][r], partial->log_open[0][r - 1]);
        if (r < partial->rows)
            model_lost_more(&lost);
    }
    return excess;
}

/* Submessages of a block that one burst hits fail together (ec_missing.h). */
static double apart(const struct model_loss *loss, double block)
{
    if (!loss->bursty || loss->leaves >= 1 || loss->leaves <= 0)
        return 1;
    return fmin(1, loss->leaves / -expm1(block * log1p(-loss->leaves)));
}

/* Repairs in flight of the chunks before the tail, and what it takes to cover them. */
static double older_parity(const struct model_message *message, const struct cut *cut,
                           const struct hybrid_loss *loss, double tail, double failure)
{
    double before = fmin(tail, message->chunks - tail);
    double repairs = cut->size * message->loss.chunk;
    if (before <= 0 || repairs <= 0)
        return 0;
    uint32_t flying = (uint32_t)fmax(1, round(repairs));
    double rows = hybrid_strength(loss, flying, flying, failure, hybrid_code_rows(cut->code));
    return before / cut->size * -expm1(-repairs) * rows;
}

static int start(struct model_prediction *prediction, const struct lh_model_path *path)
{
    const struct model_message *message = &prediction->message;
    const struct lh_model_scheme *scheme = &prediction->scheme;
    struct hybrid_times *times = state_of(prediction);
    double report_s = fmin(message->first_s, message->rtt_s * fmax(scheme->tail_rtts, 1e-9));
    double tail = fmin(message->chunks, ceil(report_s / message->inject_s));
    struct cut cut = cut_of(message, path, tail);
    struct hybrid_loss loss = loss_of(message, &cut);
    double failure = scheme->target * fmin(1, hybrid_code_size(cut.code) / tail);
    bool copies = message->chunks <= 1;
    uint32_t maximum = copies ? HYBRID_COPIES_MAX : hybrid_code_rows(cut.code);
    *times = (struct hybrid_times){
        .inject_s = message->inject_s,
        .whole_s = model_message_whole(message),
        .older = copies ? 0 : older_parity(message, &cut, &loss, tail, failure),
        .more_s = message->window_s + message->rtt_s,
        .tail = tail,
        .partial = {.submessages = cut.groups,
                    .larger = cut.groups,
                    .block_groups = cut.block,
                    .apart = apart(&message->loss, cut.block),
                    .rows = hybrid_strength(&loss, cut.size, cut.size, failure, maximum)},
    };
    times->excess = open_groups(&times->partial, &message->loss, cut.size);
    return 0;
}

/* ---- the prediction ---------------------------------------------------------------------------------- */

static double parity_chunks(const struct model_prediction *prediction)
{
    const struct hybrid_times *times = state_of(prediction);
    return times->older + times->partial.submessages * times->partial.rows;
}

static double tail_parity(const struct hybrid_times *times)
{
    return times->partial.submessages * times->partial.rows;
}

static double log_none(const struct hybrid_times *times)
{
    return ec_partial_log(&times->partial, 0);
}

static double p_fallback(const struct model_prediction *prediction)
{
    const struct hybrid_times *times = state_of(prediction);
    return -expm1(ec_partial_log(&times->partial, tail_parity(times)));
}

static double mean(const struct model_prediction *prediction)
{
    const struct hybrid_times *times = state_of(prediction);
    double waits = ec_partial_mean(&times->partial) - times->older * expm1(log_none(times));
    return times->whole_s + waits * times->inject_s + p_fallback(prediction) * times->more_s;
}

static double quantile(const struct model_prediction *prediction, double share)
{
    const struct hybrid_times *times = state_of(prediction);
    double parity = ec_partial_quantile(&times->partial, share);
    if (parity <= 0)
        return times->whole_s;
    if (isfinite(parity))
        return times->whole_s + (times->older + parity) * times->inject_s;
    return times->whole_s + parity_chunks(prediction) * times->inject_s + times->more_s;
}

static double cdf(const struct model_prediction *prediction, double seconds)
{
    const struct hybrid_times *times = state_of(prediction);
    double parity = floor((seconds - times->whole_s) / times->inject_s - times->older);
    if (seconds < times->whole_s)
        return 0;
    if (seconds >= times->whole_s + parity_chunks(prediction) * times->inject_s + times->more_s)
        return 1;
    return exp(ec_partial_log(&times->partial, fmax(0, parity)));
}

/* Losses before the tail are retransmitted, and what is too many of the tail; parity is sent once. */
static double overhead_bytes(const struct model_prediction *prediction)
{
    const struct model_message *message = &prediction->message;
    const struct hybrid_times *times = state_of(prediction);
    double lost = message->loss.chunk / (1 - message->loss.chunk);
    double chunks = (message->chunks - times->tail) * lost + parity_chunks(prediction) +
                    times->partial.submessages * times->excess;
    return chunks * message->message_wire_bytes / message->chunks;
}

static double sample(const struct model_prediction *prediction, struct lh_prng *prng, uint8_t *cells)
{
    (void)cells;
    return quantile(prediction, lh_prng_double(prng));
}

static double report_rtts(const struct lh_model_scheme *scheme)
{
    (void)scheme;
    return MODEL_RTO_NACK;
}

static const struct model_predictor hybrid_predictor = {
    .check = hybrid_model_check,
    .rto_rtts = report_rtts,
    .longhaul = longhaul,
    .start = start,
    .mean = mean,
    .quantile = quantile,
    .cdf = cdf,
    .overhead_bytes = overhead_bytes,
    .parity_chunks = parity_chunks,
    .p_fallback = p_fallback,
    .sample = sample,
};

/* ---- scheme ---------------------------------------------------------------------------------------- */

#define NAME "hybrid"
#define HELP                                                                                               \
    "selective repeat while data is injected, parity for chunks in flight at the end; "                    \
    "target=SHARE of messages that need more, default 1e-4; tail=ROUND TRIPS covered, default all"

const struct lh_scheme hybrid_scheme = {
    .name = NAME,
    .help = HELP,
    .id = WIRE_HYBRID,
    .parse = hybrid_parse,
    .params_valid = hybrid_params_valid,
    .sender_bytes = hybrid_sender_bytes,
    .sender_start = hybrid_sender_start,
    .sender_on_message = hybrid_sender_on_message,
    .sender_step = hybrid_sender_step,
    .receiver_bytes = hybrid_receiver_bytes,
    .receiver_start = hybrid_receiver_start,
    .receiver_on_message = hybrid_receiver_on_message,
    .receiver_step = hybrid_receiver_step,
    .coding = &hybrid_coding,
    .measured = hybrid_params_measured,
};

const struct scheme_entry hybrid_entry = {
    .shown = {.kind = LH_MODEL_HYBRID,
              .name = NAME,
              .help = HELP,
              .compared = NAME,
              .codes = true,
              .machines = &hybrid_scheme},
    .announced = WIRE_ANNOUNCES_HYBRID,
    .automatic = (const char *const[]){NAME, NULL},
    .predictor = &hybrid_predictor,
    .parameters = "target, tail and rto",
    .defaults = hybrid_model_defaults,
    .take = hybrid_model_take,
    .format = hybrid_model_format,
    .candidates = hybrid_candidates,
    .planner_rank = 4,
    .for_ends = true,
    .encode_rate = hybrid_encode_rate,
};
