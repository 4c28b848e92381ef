/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec_arrival_model.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "model/repeat_model.h"
#include "schemes/ec_layout.h"
#include "schemes/ec_missing.h"

/* ---- partial arrival ------------------------------------------------------------------------------- */

#define NOT_ZERO 1e-300 /* a chance of nothing at all has no logarithm */

static double log_of(double chance)
{
    return log(fmin(1, fmax(chance, NOT_ZERO)));
}

/* P(at most `most` of the chunks so far are lost), without cancellation where it is nearly 1. */
static double log_at_max_of(const struct model_lost *lost, unsigned maximum)
{
    double chance[MODEL_COUNT_MAX + 1];
    double more = 0;
    double sum = 0;
    if (maximum >= lost->n)
        return 0;
    model_lost_chances(lost, chance);
    for (unsigned x = lost->n; x > maximum; x--)
        more += chance[x];
    for (unsigned x = maximum + 1; x-- > 0;)
        sum += chance[x];
    return more < 0.5 ? log1p(-more) : log_of(sum);
}

/* Of n chunks. */
static double log_at_most(const struct model_loss *loss, unsigned n, unsigned maximum, double between)
{
    struct model_lost lost;
    model_lost_start(&lost, loss, between);
    while (lost.n < n)
        model_lost_more(&lost);
    return log_at_max_of(&lost, maximum);
}

static void open_mds(struct ec_partial_arrival *partial, unsigned kind, unsigned size,
                     const struct model_loss *loss, double stride)
{
    struct model_lost lost;
    model_lost_start(&lost, loss, (stride - 1) * loss->chunk_packets);
    while (lost.n < size)
        model_lost_more(&lost);
    for (unsigned r = 0; r <= partial->rows; r++) {
        partial->log_open[kind][r] = log_at_max_of(&lost, r);
        if (r < partial->rows)
            model_lost_more(&lost);
    }
}

/* Classes of data j mod rows: with its row one of a class may be lost, before none. */
static void open_xor(struct ec_partial_arrival *partial, unsigned kind, unsigned size,
                     const struct model_loss *loss, double stride)
{
    const unsigned rows = partial->rows < size ? partial->rows : size;
    double between = (stride * rows - 1) * loss->chunk_packets;
    double *open = partial->log_open[kind];
    open[0] = 0;
    for (unsigned class = 0; class < rows; class ++)
        open[0] += log_at_most(loss, size / rows + (class < size % rows), 0, between);
    for (unsigned class = 0; class < partial->rows; class ++) {
        open[class + 1] = open[class];
        if (class >= rows)
            continue;
        unsigned data = size / rows + (class < size % rows);
        open[class + 1] += log_at_most(loss, data + 1, 1, between) - log_at_most(loss, data, 0, between);
    }
}

static void open_copies(struct ec_partial_arrival *partial, const struct model_loss *loss)
{
    for (unsigned r = 0; r <= partial->rows; r++)
        partial->log_open[0][r] = log1p(-model_repeat_loss(loss, true, r + 1));
}

void ec_partial_start(struct ec_partial_arrival *partial, const struct lh_model_scheme *scheme,
                      const struct model_loss *loss, double chunks, const struct ec_missing *missing)
{
    partial->submessages = missing->submessages;
    partial->larger = missing->kind[0].count;
    partial->rows = missing->rows;
    partial->block_groups = missing->stride;
    partial->apart = ec_missing_apart(missing, loss);
    for (unsigned kind = 0; kind < 2; kind++) {
        const struct ec_missing_kind *of = &missing->kind[kind];
        if (of->count <= 0)
            continue;
        if (chunks <= 1)
            open_copies(partial, loss);
        else if (scheme->kind == LH_MODEL_EC_XOR)
            open_xor(partial, kind, of->size, loss, partial->block_groups);
        else
            open_mds(partial, kind, of->size, loss, partial->block_groups);
        for (unsigned r = 1; r <= partial->rows; r++) /* but for rounding */
            partial->log_open[kind][r] = fmax(partial->log_open[kind][r], partial->log_open[kind][r - 1]);
    }
}

/* ---- the chance -------------------------------------------------------------------------------------- */

/* Of submessages first ... first + count - 1, which have had so many rows. */
static double log_of_groups(const struct ec_partial_arrival *partial, double first, double count,
                            unsigned rows)
{
    double larger = fmax(0, fmin(count, partial->larger - first));
    double sum = 0;
    if (larger > 0)
        sum += larger * partial->log_open[0][rows];
    if (count > larger)
        sum += (count - larger) * partial->log_open[1][rows];
    return sum * partial->apart;
}

static double groups_of_block(const struct ec_partial_arrival *partial, double first)
{
    return fmin(partial->block_groups, partial->submessages - first);
}

/* When in the block that begins with submessage `first` all have had `row` rows, and `further` one more. */
static double log_within(const struct ec_partial_arrival *partial, double first, unsigned row,
                         double further)
{
    double groups = groups_of_block(partial, first);
    double sum = log_of_groups(partial, 0, first, partial->rows);
    if (further > 0)
        sum += log_of_groups(partial, first, further, row + 1);
    sum += log_of_groups(partial, first + further, groups - further, row);
    return sum + log_of_groups(partial, first + groups, partial->submessages - first - groups, 0);
}

double ec_partial_log(const struct ec_partial_arrival *partial, double parity)
{
    if (parity >= partial->submessages * partial->rows)
        return log_of_groups(partial, 0, partial->submessages, partial->rows);
    double first = floor(parity / (partial->block_groups * partial->rows)) * partial->block_groups;
    double at = parity - first * partial->rows;
    double row = floor(at / groups_of_block(partial, first));
    return log_within(partial, first, (unsigned)row, at - row * groups_of_block(partial, first));
}

/* ---- the mean ---------------------------------------------------------------------------------------- */

/* Of a stretch of parity in which log P rises evenly. */
static double missing_in(const struct ec_partial_arrival *partial, double from, double to)
{
    double first = ec_partial_log(partial, from);
    double rise = fmax(0, (ec_partial_log(partial, to) - first) / (to - from));
    return model_series_missing(first, rise, to - from);
}

#define PIECES 64u /* of a message of many blocks; in each log P is taken to rise evenly */

static double mean_of_pieces(const struct ec_partial_arrival *partial)
{
    double all = partial->submessages * partial->rows;
    double sum = 0;
    for (unsigned piece = 0; piece < PIECES; piece++) {
        double from = floor(all * piece / PIECES);
        double to = floor(all * (piece + 1) / PIECES);
        if (to > from)
            sum += missing_in(partial, from, to);
    }
    return sum;
}

double ec_partial_mean(const struct ec_partial_arrival *partial)
{
    double sum = 0;
    if (partial->submessages > PIECES * partial->block_groups)
        return mean_of_pieces(partial);
    /* At most PIECES blocks of MODEL_COUNT_MAX rows. */
    for (double first = 0; first < partial->submessages; first += partial->block_groups)
        for (unsigned row = 0; row < partial->rows; row++) {
            double groups = groups_of_block(partial, first);
            double from = first * partial->rows + row * groups;
            double larger = fmax(0, fmin(groups, partial->larger - first));
            if (larger > 0)
                sum += missing_in(partial, from, from + larger);
            if (groups > larger)
                sum += missing_in(partial, from + larger, from + groups);
        }
    assert(sum >= 0 && sum <= partial->submessages * partial->rows * (1 + 1e-9));
    return sum;
}

double ec_partial_quantile(const struct ec_partial_arrival *partial, double share)
{
    double low = -1;
    double high = partial->submessages * partial->rows;
    double log_share = log(share);
    if (ec_partial_log(partial, high) < log_share)
        return INFINITY;
    while (high - low > 1) { /* halved each time */
        double middle = floor((low + high) / 2);
        *(ec_partial_log(partial, middle) < log_share ? &low : &high) = middle;
    }
    return high;
}

/* ---- request rounds -------------------------------------------------------------------------------- */

/* ---- fallback sr: what of a failed submessage's data is missing ---------------------------------------- */

static double log_ways(const struct ec_rounds *rounds, unsigned n, unsigned x)
{
    const double *log_factorial = rounds->log_factorial;
    return log_factorial[n] - log_factorial[x] - log_factorial[n - x];
}

/* P(d of the `lost` chunks are data), of `data` chunks and `parity` others, each as likely. */
static double share_of_data(const struct ec_rounds *rounds, unsigned data, unsigned parity, unsigned lost,
                            unsigned d)
{
    if (d > data || d > lost || lost - d > parity)
        return 0;
    return exp(log_ways(rounds, data, d) + log_ways(rounds, parity, lost - d) -
               log_ways(rounds, data + parity, lost));
}

static void missing_of_mds(struct ec_rounds *rounds, unsigned kind, unsigned size)
{
    double lost[MODEL_COUNT_MAX + 1];
    const unsigned rows = rounds->rows;
    double *missing = rounds->of[kind].missing;
    model_lost_chunks(&rounds->loss, size + rows, (rounds->stride - 1) * rounds->loss.chunk_packets, lost);
    for (unsigned x = rows + 1; x <= size + rows; x++)
        for (unsigned d = x - rows; d <= x && d <= size; d++)
            missing[d] += lost[x] * share_of_data(rounds, size, rows, x, d);
}

/* Of all submessages, and what parity can do about it. Data and parity are sent far apart. */
static void lost_of_mds(struct ec_rounds *rounds, unsigned kind, unsigned size)
{
    double lost[MODEL_COUNT_MAX + 1];
    const unsigned parity = rounds->rows + rounds->fresh;
    const double between = (rounds->stride - 1) * rounds->loss.chunk_packets;
    model_lost_chunks(&rounds->loss, size, between, rounds->of[kind].missing);
    model_lost_chunks(&rounds->loss, parity, between, lost);
    rounds->fewer_parity[0] = 0;
    for (unsigned n = 0; n <= MODEL_COUNT_MAX; n++)
        rounds->fewer_parity[n + 1] = n <= parity ? rounds->fewer_parity[n] + lost[parity - n] : 1;
}

/* chance of d missing, in classes so far: of any, and of those that could do with their parity. */
struct of_classes {
    double any[MODEL_COUNT_MAX + 1];
    double decodable[MODEL_COUNT_MAX + 1];
    unsigned maximum;
};

static void add_class(const struct ec_rounds *rounds, struct of_classes *sum, const double *lost,
                      unsigned data)
{
    struct of_classes before = *sum;
    memset(sum->any, 0, sizeof sum->any);
    memset(sum->decodable, 0, sizeof sum->decodable);
    for (unsigned x = 0; x <= data + 1; x++)
        for (unsigned d = x > 0 ? x - 1 : 0; d <= x && d <= data; d++) {
            double chance = lost[x] * share_of_data(rounds, data, 1, x, d);
            for (unsigned had = 0; had <= before.maximum; had++) {
                sum->any[had + d] += before.any[had] * chance;
                sum->decodable[had + d] += x <= 1 ? before.decodable[had] * chance : 0;
            }
        }
    sum->maximum += data;
}

static unsigned classes_of(const struct ec_rounds *rounds, unsigned size)
{
    return rounds->rows < size ? rounds->rows : size;
}

/* Of a class, with its parity. */
static void lost_of_class(const struct ec_rounds *rounds, unsigned size, unsigned data, double *lost)
{
    double between = (rounds->stride * classes_of(rounds, size) - 1) * rounds->loss.chunk_packets;
    model_lost_chunks(&rounds->loss, data + 1, between, lost);
}

static void missing_of_xor(struct ec_rounds *rounds, unsigned kind, unsigned size)
{
    struct of_classes sum = {.any = {1}, .decodable = {1}};
    double lost[MODEL_COUNT_MAX + 1];
    unsigned classes = classes_of(rounds, size);
    for (unsigned class = 0; class < classes; class ++) {
        unsigned data = size / classes + (class < size % classes);
        lost_of_class(rounds, size, data, lost);
        add_class(rounds, &sum, lost, data);
    }
    for (unsigned d = 1; d <= size; d++)
        rounds->of[kind].missing[d] = fmax(0, sum.any[d] - sum.decodable[d]);
}

/* So often asked for, after it was sent with all its copies. */
static double log_of_copies(const struct ec_rounds *rounds, double count)
{
    return log1p(-model_repeat_loss(&rounds->loss, true, 1 + rounds->rows + count));
}

void ec_rounds_start(struct ec_rounds *rounds, const struct lh_model_scheme *scheme,
                     const struct model_loss *loss, double chunks, const struct ec_missing *missing)
{
    double apart = ec_missing_apart(missing, loss);
    *rounds = (struct ec_rounds){.rows = missing->rows,
                                 .apart = apart,
                                 .log_none = missing->log_none * apart,
                                 .loss = *loss,
                                 .copies = chunks <= 1,
                                 .kind = scheme->kind,
                                 .fallback = scheme->fallback,
                                 .stride = missing->stride};
    if (rounds->kind == LH_MODEL_EC_MDS && rounds->fallback == LH_MODEL_FALLBACK_IR)
        rounds->fresh = ec_fresh_rows(&(struct ec_params){
            .kind = EC_MDS, .fallback = EC_FALLBACK_IR, .k = scheme->k, .m = scheme->m});
    if (rounds->copies)
        rounds->log_none = log_of_copies(rounds, 0);
    for (unsigned n = 1; n <= MODEL_COUNT_MAX + 1; n++)
        rounds->log_factorial[n] = rounds->log_factorial[n - 1] + log(n);
    for (unsigned kind = 0; kind < 2; kind++) {
        const struct ec_missing_kind *of = &missing->kind[kind];
        rounds->of[kind].count = of->count;
        rounds->of[kind].size = of->size;
        if (of->count <= 0 || rounds->copies)
            continue;
        bool repeats = rounds->fallback == LH_MODEL_FALLBACK_SR;
        if (rounds->kind == LH_MODEL_EC_MDS && !repeats)
            lost_of_mds(rounds, kind, of->size);
        else if (rounds->kind == LH_MODEL_EC_MDS)
            missing_of_mds(rounds, kind, of->size);
        else if (repeats)
            missing_of_xor(rounds, kind, of->size);
    }
}

/* ---- after so many rounds ---------------------------------------------------------------------------- */

/* Chance that a chunk which was lost at first has not come after so many rounds. */
static double still_missing(const struct ec_rounds *rounds, double count)
{
    return model_repeat_loss(&rounds->loss, true, count + 1) / rounds->loss.chunk;
}

/* 1 - (1 - missing)^n. */
static double any_of(double missing, double n)
{
    return missing < 1 ? -expm1(n * log1p(-missing)) : n > 0;
}

/* P(a class lacks something), d of its data being asked for, of which it can spare one with its parity. */
static double class_lacks(const struct ec_rounds *rounds, const double *lost, unsigned data, double missing)
{
    double sum = 0;
    for (unsigned x = 2; x <= data + 1; x++) {
        double without_parity = share_of_data(rounds, data, 1, x, x - 1);
        double two_of_all = any_of(missing, x) - x * missing * pow(1 - missing, x - 1.0);
        sum += lost[x] * (without_parity * any_of(missing, x - 1.0) +
                          (x <= data ? (1 - without_parity) * fmax(0, two_of_all) : 0));
    }
    return fmin(1, sum);
}

static double log_of_xor(const struct ec_rounds *rounds, unsigned size, double missing)
{
    double lost[MODEL_COUNT_MAX + 1];
    unsigned classes = classes_of(rounds, size);
    unsigned longer = size % classes;
    double sum = 0;
    for (unsigned i = 0; i < 2; i++) {
        unsigned data = size / classes + i;
        unsigned count = i == 0 ? classes - longer : longer;
        if (count == 0)
            continue;
        lost_of_class(rounds, size, data, lost);
        sum += count * log1p(-class_lacks(rounds, lost, data, missing));
    }
    return sum;
}

/* P(more of `lost` data chunks are missing than there is parity). */
static double mds_lacks(const struct ec_rounds *rounds, unsigned lost, double missing)
{
    double sum = 0;
    double chance = pow(1 - missing, lost); /* of n being missing */
    for (unsigned n = 0; n <= lost; n++) {
        sum += chance * rounds->fewer_parity[n];
        chance *= (lost - n) / (n + 1.0) * (missing / (1 - missing));
    }
    return sum;
}

static double log_of_mds(const struct ec_rounds *rounds, unsigned kind, double missing)
{
    double incomplete = 0;
    if (missing >= 1)
        return -INFINITY;
    for (unsigned d = 1; d <= rounds->of[kind].size; d++)
        incomplete += rounds->of[kind].missing[d] * mds_lacks(rounds, d, missing);
    return log1p(-fmin(1, incomplete));
}

static double log_of_submessage(const struct ec_rounds *rounds, unsigned kind, double missing)
{
    const unsigned size = rounds->of[kind].size;
    double incomplete = 0;
    if (rounds->fallback == LH_MODEL_FALLBACK_SR) {
        for (unsigned d = 1; d <= size; d++)
            incomplete += rounds->of[kind].missing[d] * any_of(missing, d);
        return log1p(-fmin(1, incomplete));
    }
    return rounds->kind == LH_MODEL_EC_XOR ? log_of_xor(rounds, size, missing)
                                           : log_of_mds(rounds, kind, missing);
}

double ec_rounds_log(const struct ec_rounds *rounds, double count)
{
    if (count < 1)
        return rounds->log_none;
    if (rounds->copies)
        return log_of_copies(rounds, count);
    double missing = still_missing(rounds, count);
    double sum = 0;
    for (unsigned kind = 0; kind < 2; kind++)
        if (rounds->of[kind].count > 0)
            sum += rounds->of[kind].count * rounds->apart * log_of_submessage(rounds, kind, missing);
    return fmin(0, fmax(sum, rounds->log_none));
}

#define IGNORED 1e-12 /* chance of another round */

double ec_rounds_more(const struct ec_rounds *rounds)
{
    double sum = 0;
    for (unsigned count = 1; count < MODEL_LEVELS_MAX; count++) {
        double more = -expm1(ec_rounds_log(rounds, count));
        sum += more;
        if (more < IGNORED)
            break;
    }
    return sum;
}

double ec_rounds_quantile(const struct ec_rounds *rounds, double share)
{
    assert(share >= 0 && share < 1);
    unsigned count = 0;
    while (count < MODEL_LEVELS_MAX && exp(ec_rounds_log(rounds, count)) < share)
        count++;
    return count;
}

/* ---- segment times --------------------------------------------------------------------------------- */

void ec_segment_start(struct ec_segment_times *code, const struct lh_model_scheme *scheme,
                      const struct model_message *message)
{
    struct ec_missing *missing = &code->missing;
    ec_missing_of(scheme, &message->loss, message->chunks, missing);
    ec_partial_start(&code->partial, scheme, &message->loss, message->chunks, missing);
    ec_rounds_start(&code->rounds, scheme, &message->loss, message->chunks, missing);
    code->inject_s = message->inject_s;
    code->sent_s = message->ideal_s;
    /* The parity of a submessage that is one chunk shorter than others may be fewer chunks (xor). */
    double parity = missing->submessages * missing->rows;
    double waits_s = fmax(scheme->beta * message->rtt_s, message->window_s);
    code->asked_s = message->ideal_s + parity * message->inject_s + waits_s + message->rtt_s;
    code->round_s = message->rto_s;
    code->p_fallback = -expm1(code->rounds.log_none);
    code->requested =
        code->p_fallback > 0 ? fmax(1, missing->mean / code->p_fallback) / (1 - message->loss.chunk) : 0;
    assert(code->asked_s >= code->sent_s && code->round_s > 0);
}

double ec_segment_mean(const struct ec_segment_times *code)
{
    double parity = code->missing.submessages * code->missing.rows;
    double mean = code->sent_s + ec_partial_mean(&code->partial) * code->inject_s;
    if (code->p_fallback <= 0)
        return mean;
    double whole_s = code->sent_s + parity * code->inject_s;
    double asked_s = code->asked_s - whole_s + code->requested * code->inject_s;
    return mean + code->p_fallback * asked_s + ec_rounds_more(&code->rounds) * code->round_s;
}

double ec_segment_cdf(const struct ec_segment_times *code, double seconds)
{
    if (seconds < code->sent_s)
        return 0;
    double parity = floor((seconds - code->sent_s) / code->inject_s);
    double first_s = code->asked_s + code->requested * code->inject_s;
    if (seconds < first_s || code->p_fallback <= 0)
        return exp(ec_partial_log(&code->partial, parity));
    if (code->round_s * MODEL_LEVELS_MAX <= seconds - first_s)
        return 1;
    return exp(ec_rounds_log(&code->rounds, 1 + floor((seconds - first_s) / code->round_s)));
}

double ec_segment_quantile(const struct ec_segment_times *code, double share)
{
    assert(share >= 0 && share < 1);
    double parity = ec_partial_quantile(&code->partial, share);
    if (isfinite(parity))
        return code->sent_s + parity * code->inject_s;
    double rounds = fmax(1, ec_rounds_quantile(&code->rounds, share));
    return code->asked_s + code->requested * code->inject_s + (rounds - 1) * code->round_s;
}
