/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/repeat.h"

#include <assert.h>
#include <math.h>

#include "model/series.h"

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
    double least = log(LEVEL_IGNORED) + fmin(0, expected);
    double levels = ceil((least - log(fmax(chunks, 1))) / log_loss);
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
