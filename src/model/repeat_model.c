/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/repeat_model.h"

#include <assert.h>
#include <math.h>

#include <longhaul/model.h>

#include "base/error.h"
#include "base/prng.h"
#include "model/loss_model.h"
#include "model/predictor.h"

/* ---- series ---------------------------------------------------------------------------------------- */

/* Below this, four terms of exp() give 13 digits, and the closed form would lose as many. */
#define SMALL 2e-3

/* Sum of -(x + x^2 / 2 + x^3 / 6 + x^4 / 24) over an arithmetic progression, by its central moments. */
static double small_terms(double first, double rise, double count)
{
    double middle = first + rise * (count - 1) / 2;
    double n2 = count * count;
    double second = rise * rise * (n2 - 1) / 12;
    double fourth = rise * rise * rise * rise * (n2 - 1) * (3 * n2 - 7) / 240;
    double x2 = middle * middle + second;
    double x3 = middle * (middle * middle + 3 * second);
    double x4 = middle * middle * (middle * middle + 6 * second) + fourth;
    return -count * (middle + x2 / 2 + x3 / 6 + x4 / 24);
}

double model_series_missing(double first, double rise, double count)
{
    assert(rise >= 0 && count >= 0);
    if (count <= 0)
        return 0;
    double last = fmin(0, first + (count - 1) * rise);
    if (count < 2 || rise <= 0)
        return -expm1(fmin(0, first)) * count;
    if (first > -SMALL)
        return small_terms(first, rise, count);
    return count - exp(last) * expm1(-count * rise) / expm1(-rise);
}

/* ---- repeat ---------------------------------------------------------------------------------------- */

#define MODEL_CHUNK_LOSS_MAX 0.99

/* Levels whose chunks are so few do not matter to any digit. */
#define LEVEL_IGNORED 1e-18
/* A steeper staircase is followed step by step, a flatter one as a slope: the error is of second order. */
#define STEP_IGNORED 1e-6
#define STEPS_MAX    64u
/* Where log P is below this, 1 - P is 1. */
#define LOG_NOTHING (-40.0)

/* The loss of what is left to arrive after k - 1 losses: of the same chunks, by packets. */
static struct model_loss loss_of_packets(const struct model_loss *loss, double k)
{
    double ends = -expm1(k * log1p(-1 / loss->burst)); /* of a row of packets that were lost k times */
    return model_loss_of_packets(pow(loss->packet, k), loss->bursty ? 1 / ends : 0, loss->chunk_packets);
}

double model_repeat_loss(const struct model_loss *loss, bool packets, double k)
{
    if (packets && loss->chunk_packets > 1 && loss->packet > 0)
        return loss_of_packets(loss, k).chunk;
    return exp(k * log(loss->chunk));
}

/* Chance that a row of chunks begins here that were all lost k times. */
static double row_begins(const struct model_loss *loss, bool packets, double k)
{
    double lost = model_repeat_loss(loss, packets, k);
    if (!loss->bursty)
        return lost;
    double ends = packets && loss->chunk_packets > 1 ? loss_of_packets(loss, k).leaves
                                                     : -expm1(k * log1p(-loss->leaves));
    return fmin(1, lost * ends / (1 - lost));
}

static unsigned levels_of(double chunk_loss, double chunks)
{
    double log_loss = log(chunk_loss);
    double expected = log(fmax(chunks, 1)) + log_loss; /* of chunks lost once */
    double minimum = log(LEVEL_IGNORED) + fmin(0, expected);
    double levels = ceil((minimum - log(fmax(chunks, 1))) / log_loss);
    assert(levels >= 1 && levels <= MODEL_LEVELS_MAX);
    return (unsigned)levels;
}

static void start(struct model_repeat *repeat, const struct model_loss *loss, double chunks)
{
    assert(loss->chunk >= 0 && loss->chunk <= MODEL_CHUNK_LOSS_MAX && repeat->overhead >= 1);
    repeat->bursty = loss->bursty && loss->chunk > 0;
    repeat->levels = loss->chunk > 0 ? levels_of(loss->chunk, chunks) : 0;
    for (unsigned k = 1; k <= repeat->levels; k++) {
        repeat->log_pass[k] = log1p(-row_begins(loss, repeat->packets, k));
        if (k > 1 && repeat->log_pass[k] < repeat->log_pass[k - 1])
            repeat->log_pass[k] = repeat->log_pass[k - 1];
    }
    repeat->log_pass[repeat->levels + 1] = 0;
    repeat->loss = *loss;
}

void model_repeat_start(struct model_repeat *repeat, const struct model_loss *loss, double overhead,
                        double chunks)
{
    repeat->overhead = overhead;
    repeat->shift = 0;
    repeat->packets = false;
    start(repeat, loss, chunks);
}

void model_repeat_start_packets(struct model_repeat *repeat, const struct model_loss *loss, double first,
                                double overhead, double chunks)
{
    assert(first >= 1);
    repeat->overhead = overhead;
    repeat->shift = first - overhead;
    repeat->packets = true;
    start(repeat, loss, chunks);
}

double model_repeat_cost(const struct model_repeat *repeat, double losses)
{
    return losses > 0 ? losses * repeat->overhead + repeat->shift : 0;
}

/* What the last chunk adds to log P when it is missing after k losses: with bursts it is lost more often
 * than a row begins. */
static double last_chunk(const struct model_repeat *repeat, unsigned k)
{
    return repeat->bursty
               ? log1p(-model_repeat_loss(&repeat->loss, repeat->packets, k)) - repeat->log_pass[k]
               : 0;
}

/* ---- the mean ---------------------------------------------------------------------------------------- */

struct drop {
    double offset; /* within a T_inj, over 0 to 1 */
    double rise;   /* of log P at each step */
};

/* log P within a stretch of time in which no staircase begins or ends. */
struct stretch {
    double log_first; /* at its begin */
    double rise;      /* in each T_inj */
    unsigned count;
    struct drop drops[STEPS_MAX]; /* by offset */
};

static void add_drop(struct stretch *stretch, struct drop drop)
{
    assert(stretch->count < STEPS_MAX && drop.offset >= 0);
    unsigned at = stretch->count++;
    for (; at > 0 && stretch->drops[at - 1].offset > drop.offset; at--)
        stretch->drops[at] = stretch->drops[at - 1];
    stretch->drops[at] = drop;
}

/* Staircases first … last are under way, those behind are still at their top. */
static void describe(const struct model_repeat *repeat, double chunks, double from, unsigned first,
                     unsigned last, struct stretch *stretch)
{
    const double ignored = fmin(STEP_IGNORED, 1e-12 * chunks);
    *stretch =
        (struct stretch){.log_first = chunks * repeat->log_pass[last + 1] + last_chunk(repeat, first)};
    for (unsigned k = first; k <= last; k++) {
        double rise = repeat->log_pass[k + 1] - repeat->log_pass[k];
        double left = model_repeat_cost(repeat, k) - from;
        double height = left;
        if (rise > ignored && stretch->count < STEPS_MAX) {
            height = ceil(left);
            add_drop(stretch, (struct drop){left - (height - 1), rise});
        }
        stretch->log_first -= rise * fmin(height, chunks);
        stretch->rise += rise;
    }
}

/* Integral of 1 - P over the stretch. */
static double integrate(const struct stretch *stretch, double length)
{
    double whole = floor(length);
    double rest = length - whole;
    if (stretch->log_first + stretch->rise * (whole + 1) < LOG_NOTHING)
        return length;
    double sum = 0;
    double low = 0;
    double log_here = stretch->log_first;
    for (unsigned i = 0; i <= stretch->count; i++) {
        double high = i < stretch->count ? fmin(1, stretch->drops[i].offset) : 1;
        if (high > low)
            sum += (high - low) * model_series_missing(log_here, stretch->rise, whole);
        if (rest > low)
            sum += (fmin(high, rest) - low) * -expm1(fmin(0, log_here + whole * stretch->rise));
        if (i < stretch->count)
            log_here = fmin(0, log_here + stretch->drops[i].rise);
        low = fmax(low, high);
    }
    return sum;
}

double model_repeat_excess(const struct model_repeat *repeat, double chunks)
{
    return model_repeat_excess_until(repeat, chunks, INFINITY);
}

double model_repeat_excess_until(const struct model_repeat *repeat, double chunks, double limit)
{
    assert(chunks >= 0 && limit >= 0);
    double steps = ceil(chunks) - 1; /* T_inj from a staircase's first step to its last */
    unsigned first = 1;
    unsigned last = 0;
    double at = 0;
    double sum = 0;
    if (chunks <= 0)
        return 0;
    while (last < repeat->levels && model_repeat_cost(repeat, last + 1) <= steps)
        last++;
    /* Each round ends or begins one staircase: two rounds a level. */
    while (first <= repeat->levels && at < limit) {
        double ends = model_repeat_cost(repeat, first);
        double begins = last < repeat->levels ? model_repeat_cost(repeat, last + 1) - steps : INFINITY;
        double to = fmin(limit, fmin(ends, begins));
        if (to > at) {
            struct stretch stretch;
            describe(repeat, chunks, at, first, last, &stretch);
            sum += integrate(&stretch, to - at);
            at = to;
        }
        *(begins <= ends ? &last : &first) += 1;
    }
    assert(sum >= 0);
    return sum;
}

/* ---- the distribution -------------------------------------------------------------------------------- */

double model_repeat_cdf(const struct model_repeat *repeat, double chunks, double s)
{
    if (s < 0)
        return 0;
    double passed = fmax(0, floor((s - repeat->shift) / repeat->overhead));
    if (passed >= repeat->levels)
        return 1;
    double log_pass = last_chunk(repeat, (unsigned)passed + 1);
    for (unsigned k = (unsigned)passed + 1; k <= repeat->levels; k++) {
        double height = ceil(model_repeat_cost(repeat, k) - s);
        if (height >= chunks)
            return exp(log_pass + chunks * repeat->log_pass[k]);
        if (height > 0)
            log_pass += (repeat->log_pass[k] - repeat->log_pass[k + 1]) * height;
    }
    return exp(log_pass);
}

#define HALVINGS 60
#define CLOSE    1e-14

double model_repeat_quantile(const struct model_repeat *repeat, double chunks, double share)
{
    assert(share >= 0 && share < 1);
    if (model_repeat_cdf(repeat, chunks, 0) >= share)
        return 0;
    unsigned level = 1;
    while (level < repeat->levels &&
           model_repeat_cdf(repeat, chunks, model_repeat_cost(repeat, level)) < share)
        level++;
    double low = model_repeat_cost(repeat, level - 1);
    double high = model_repeat_cost(repeat, level);
    for (int i = 0; i < HALVINGS && high - low > CLOSE * high; i++) {
        double middle = (low + high) / 2;
        *(model_repeat_cdf(repeat, chunks, middle) < share ? &low : &high) = middle;
    }
    return high;
}

/* ---- repeat sampler -------------------------------------------------------------------------------- */

/* How often a chunk is lost that was lost `losses` times. */
static double further(const struct model_repeat *repeat, double losses, double log_loss,
                      struct lh_prng *prng)
{
    if (!repeat->packets)
        return losses + model_sample_gap(prng, log_loss);
    double share = (1 - lh_prng_double(prng)) * -expm1(repeat->log_pass[(unsigned)losses]);
    while (losses < repeat->levels && -expm1(repeat->log_pass[(unsigned)losses + 1]) >= share)
        losses++;
    return losses;
}

double model_sample_repeat(const struct model_repeat *repeat, double log_loss, double chunks,
                           struct lh_prng *prng)
{
    const double overhead = repeat->overhead;
    double latest = 0;
    double behind = 0; /* chunks between the one looked at and the message's end */
    /* Each round finds a later chunk, or goes on to where one more loss is needed: at most two rounds a
     * level, and behind the last level there is nothing. */
    while (behind < chunks) {
        double losses = fmax(0, floor((latest + behind - repeat->shift) / overhead)) + 1;
        if (losses > repeat->levels)
            break;
        double until = fmin(chunks, fmax(behind + 1, ceil(model_repeat_cost(repeat, losses) - latest)));
        behind += model_sample_gap(prng, repeat->log_pass[(unsigned)losses]);
        if (behind >= until) {
            behind = until;
            continue;
        }
        latest = model_repeat_cost(repeat, further(repeat, losses, log_loss, prng)) - behind;
        behind++;
    }
    return latest;
}

/* ---- bursts ------------------------------------------------------------------------------------------ */

/* A chunk that was lost so often ends the message in a time that nobody waits for. */
#define ROUNDS_MAX 256u

struct rounds {
    const struct model_repeat *repeat;
    const struct model_loss *loss;
    struct lh_prng *prng;
    double chunks;
    double latest;
    unsigned started;
    struct model_bursts link[ROUNDS_MAX]; /* of each transmission: bursts go by time, RTO apart */
};

static void send_again(struct rounds *rounds, unsigned round, double first, double last);

/* The pieces of a chunk that are lost and sent for themselves. */
static double pieces(const struct rounds *rounds)
{
    return rounds->repeat->packets ? rounds->loss->chunk_packets : 1;
}

/* Pieces first … last were lost in this round, 0 being the first transmission. */
static void on_lost(struct rounds *rounds, unsigned round, double first, double last)
{
    double behind = rounds->chunks - 1 - floor(last / pieces(rounds));
    double time = model_repeat_cost(rounds->repeat, round + 1) - behind;
    rounds->latest = fmax(rounds->latest, time);
    if (round + 1 < ROUNDS_MAX)
        send_again(rounds, round + 1, first, last);
}

/* Calls itself through on_lost, as deep as a chunk is lost in a row. */
static void send_again(struct rounds *rounds, unsigned round, double first, double last)
{
    const double size = rounds->loss->chunk_packets / pieces(rounds);
    struct model_bursts *link = &rounds->link[round];
    struct model_burst row;
    double lost_first = -1; /* none */
    double lost_last = -1;
    if (round == rounds->started) {
        model_bursts_start(link, rounds->loss);
        rounds->started++;
    }
    model_bursts_skip(link, rounds->prng, first * size);
    while (model_bursts_next(link, rounds->prng, (last + 1) * size, &row)) {
        double from = floor(row.first / size);
        if (lost_first >= 0 && from > lost_last + 1)
            on_lost(rounds, round, lost_first, lost_last);
        if (lost_first < 0 || from > lost_last + 1)
            lost_first = from;
        lost_last = floor(row.last / size);
    }
    if (lost_first >= 0)
        on_lost(rounds, round, lost_first, lost_last);
}

double model_sample_repeat_bursts(const struct model_repeat *repeat, const struct model_loss *loss,
                                  double chunks, struct lh_prng *prng)
{
    struct rounds rounds = {.repeat = repeat, .loss = loss, .prng = prng, .chunks = chunks};
    if (loss->packet > 0)
        send_again(&rounds, 0, 0, chunks * pieces(&rounds) - 1);
    assert(rounds.latest >= 0);
    return rounds.latest;
}

/* ---- message --------------------------------------------------------------------------------------- */

#define BYTES_MAX    ((uint64_t)1 << 63)
#define PACKETS_MAX  1e15 /* a double counts them, and selective repeat has levels for as many chunks */
#define RTT_MAX_S    1e6
#define RATE_MAX_BPS 1e18

static int check_sizes(const struct lh_model_path *path)
{
    if (path->message_bytes == 0 || path->message_bytes >= BYTES_MAX)
        return lh_fail(LH_ERANGE, "message of %llu bytes: out of range (1 to below 2^63)",
                       (unsigned long long)path->message_bytes);
    if (path->mtu_bytes == 0)
        return lh_fail(LH_EINVAL, "MTU of 0 bytes: out of range (example: 4096)");
    if (path->chunk_bytes == 0 || path->chunk_bytes >= BYTES_MAX)
        return lh_fail(LH_ERANGE, "chunk of %llu bytes: out of range (1 to below 2^63)",
                       (unsigned long long)path->chunk_bytes);
    if (path->chunk_bytes % path->mtu_bytes != 0)
        return lh_fail(LH_EINVAL,
                       "a chunk of %llu bytes is not a whole number of packets of %u bytes; make it a "
                       "multiple of the MTU",
                       (unsigned long long)path->chunk_bytes, path->mtu_bytes);
    if ((double)path->message_bytes / path->mtu_bytes > PACKETS_MAX)
        return lh_fail(LH_ERANGE, "%llu bytes are over 10^15 packets of %u bytes; raise the MTU",
                       (unsigned long long)path->message_bytes, path->mtu_bytes);
    return 0;
}

/* Not (a > 0) rather than a <= 0: a NaN is neither. */
static int check_link(const struct lh_model_path *path)
{
    if (!(path->bandwidth_bps > 0) || !(path->bandwidth_bps <= RATE_MAX_BPS))
        return lh_fail(LH_ERANGE, "bandwidth %g bit/s: out of range (above 0 to %g)", path->bandwidth_bps,
                       RATE_MAX_BPS);
    if (!(path->rtt_s > 0) || !(path->rtt_s <= RTT_MAX_S))
        return lh_fail(LH_ERANGE, "round-trip time %g s: out of range (above 0 to %g s)", path->rtt_s,
                       RTT_MAX_S);
    if (!(path->loss >= 0) || !(path->loss < 1))
        return lh_fail(LH_ERANGE, "loss %g: out of range (0 to below 1)", path->loss);
    if (!(path->burst_packets >= 0) || !(path->burst_packets <= 1e9))
        return lh_fail(LH_ERANGE, "burst length %g packets: out of range (1 to 10^9, or 0 for none)",
                       path->burst_packets);
    if (path->burst_packets > 0 && path->burst_packets < 1)
        return lh_fail(LH_EINVAL, "burst length %g packets: out of range (1 to 10^9, or 0 for none)",
                       path->burst_packets);
    if (!(path->reorder_window_s >= 0) || !(path->reorder_window_s <= RTT_MAX_S))
        return lh_fail(LH_ERANGE, "reordering window %g s: out of range (0 to %g s; 0: unknown)",
                       path->reorder_window_s, RTT_MAX_S);
    return 0;
}

static int take_loss(const struct lh_model_path *path, double chunk_packets, struct model_loss *loss)
{
    double burst = path->burst_packets > 1 ? path->burst_packets : 0;
    if (burst > 0 && !path->loss_of_chunk && path->loss > burst / (burst + 1))
        return lh_fail(LH_ERANGE,
                       "bursts of %g packets lose at most %g of them, since a packet passes between two; a "
                       "loss of %g needs longer bursts",
                       burst, burst / (burst + 1), path->loss);
    *loss = path->loss_of_chunk ? model_loss_of_chunks(path->loss, burst, chunk_packets)
                                : model_loss_of_packets(path->loss, burst, chunk_packets);
    if (path->loss_of_chunk && fabs(loss->chunk - path->loss) > 1e-6 * path->loss)
        return lh_fail(LH_ERANGE, "bursts of %g packets cannot lose %g of the chunks (use longer bursts)",
                       burst, path->loss);
    if (loss->chunk > MODEL_CHUNK_LOSS_MAX)
        return lh_fail(
            LH_ERANGE,
            "%.4g %% of the chunks are lost: exceeds the model's limit of %g %% (use smaller chunks)",
            100 * loss->chunk, 100 * MODEL_CHUNK_LOSS_MAX);
    return 0;
}

int model_message_of(const struct lh_model_path *path, double rto_rtts, struct model_message *message)
{
    struct model_message of = {.rtt_s = path->rtt_s};
    int failed = check_sizes(path);
    if (!failed)
        failed = check_link(path);
    if (failed)
        return failed;
    double bytes = (double)path->message_bytes;
    of.chunks =
        (double)(path->message_bytes / path->chunk_bytes + (path->message_bytes % path->chunk_bytes != 0));
    of.packets =
        (double)(path->message_bytes / path->mtu_bytes + (path->message_bytes % path->mtu_bytes != 0));
    failed = take_loss(path, fmin((double)(path->chunk_bytes / path->mtu_bytes), of.packets), &of.loss);
    if (failed)
        return failed;
    of.message_wire_bytes = bytes + of.packets * path->header_bytes;
    double message_s = of.message_wire_bytes * 8 / path->bandwidth_bps;
    of.inject_s = message_s / of.chunks;
    of.packet_inject_s = message_s / of.packets;
    of.rto_s = rto_rtts * path->rtt_s;
    of.first_s = of.rto_s;
    of.ideal_s = message_s + path->rtt_s;
    assert(of.chunks >= 1 && of.packets >= of.chunks);
    *message = of;
    return 0;
}

uint64_t model_message_segment(const struct lh_model_path *path)
{
    if (path->segment_bytes == 0 || path->chunk_bytes == 0 || path->segment_bytes >= path->message_bytes)
        return path->message_bytes;
    uint64_t whole = path->segment_bytes - path->segment_bytes % path->chunk_bytes;
    return whole > 0 ? whole : path->chunk_bytes;
}

double model_message_overhead(const struct model_message *message)
{
    return message->rto_s / message->inject_s + 1;
}

void model_message_repeat(const struct model_message *message, struct model_repeat *repeat)
{
    double overhead = model_message_overhead(message);
    if (message->longhaul)
        model_repeat_start_packets(repeat, &message->loss, message->first_s / message->inject_s + 1,
                                   overhead, message->chunks);
    else
        model_repeat_start(repeat, &message->loss, overhead, message->chunks);
}

double model_message_whole(const struct model_message *message)
{
    return message->ideal_s + message->repairs_s;
}
