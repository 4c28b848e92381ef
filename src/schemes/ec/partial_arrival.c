/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/partial_arrival.h"

#include <assert.h>
#include <math.h>

#include "model/repeat.h"
#include "model/series.h"

#define NOT_ZERO 1e-300 /* a chance of nothing at all has no logarithm */

static double log_of(double chance)
{
    return log(fmin(1, fmax(chance, NOT_ZERO)));
}

/* P(at most `most` of the chunks so far are lost), without cancellation where it is nearly 1. */
static double log_at_most_of(const struct model_lost *lost, unsigned most)
{
    double chance[MODEL_COUNT_MAX + 1];
    double more = 0;
    double sum = 0;
    if (most >= lost->n)
        return 0;
    model_lost_chances(lost, chance);
    for (unsigned x = lost->n; x > most; x--)
        more += chance[x];
    for (unsigned x = most + 1; x-- > 0;)
        sum += chance[x];
    return more < 0.5 ? log1p(-more) : log_of(sum);
}

/* Of n chunks. */
static double log_at_most(const struct model_loss *loss, unsigned n, unsigned most, double between)
{
    struct model_lost lost;
    model_lost_start(&lost, loss, between);
    while (lost.n < n)
        model_lost_more(&lost);
    return log_at_most_of(&lost, most);
}

static void open_mds(struct ec_partial_arrival *partial, unsigned kind, unsigned size,
                     const struct model_loss *loss, double stride)
{
    struct model_lost lost;
    model_lost_start(&lost, loss, (stride - 1) * loss->chunk_packets);
    while (lost.n < size)
        model_lost_more(&lost);
    for (unsigned r = 0; r <= partial->rows; r++) {
        partial->log_open[kind][r] = log_at_most_of(&lost, r);
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
