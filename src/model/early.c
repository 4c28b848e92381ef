/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/early.h"

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

static void open_mds(struct model_early *early, unsigned kind, unsigned size, const struct model_loss *loss,
                     double stride)
{
    struct model_lost lost;
    model_lost_start(&lost, loss, (stride - 1) * loss->chunk_packets);
    while (lost.n < size)
        model_lost_more(&lost);
    for (unsigned r = 0; r <= early->rows; r++) {
        early->log_open[kind][r] = log_at_most_of(&lost, r);
        if (r < early->rows)
            model_lost_more(&lost);
    }
}

/* Classes of data j mod rows: with its row one of a class may be lost, before none. */
static void open_xor(struct model_early *early, unsigned kind, unsigned size, const struct model_loss *loss,
                     double stride)
{
    const unsigned rows = early->rows < size ? early->rows : size;
    double between = (stride * rows - 1) * loss->chunk_packets;
    double *open = early->log_open[kind];
    open[0] = 0;
    for (unsigned class = 0; class < rows; class ++)
        open[0] += log_at_most(loss, size / rows + (class < size % rows), 0, between);
    for (unsigned class = 0; class < early->rows; class ++) {
        open[class + 1] = open[class];
        if (class >= rows)
            continue;
        unsigned data = size / rows + (class < size % rows);
        open[class + 1] += log_at_most(loss, data + 1, 1, between) - log_at_most(loss, data, 0, between);
    }
}

static void open_copies(struct model_early *early, const struct model_loss *loss)
{
    for (unsigned r = 0; r <= early->rows; r++)
        early->log_open[0][r] = log1p(-model_repeat_loss(loss, true, r + 1));
}

void model_early_start(struct model_early *early, const struct lh_model_scheme *scheme,
                       const struct model_loss *loss, double chunks, const struct model_lacks *lacks)
{
    early->submessages = lacks->submessages;
    early->larger = lacks->kind[0].count;
    early->rows = lacks->rows;
    early->block_groups = lacks->stride;
    early->apart = model_lacks_apart(lacks, loss);
    for (unsigned kind = 0; kind < 2; kind++) {
        const struct model_lack *lack = &lacks->kind[kind];
        if (lack->count <= 0)
            continue;
        if (chunks <= 1)
            open_copies(early, loss);
        else if (scheme->kind == LH_MODEL_EC_XOR)
            open_xor(early, kind, lack->size, loss, early->block_groups);
        else
            open_mds(early, kind, lack->size, loss, early->block_groups);
        for (unsigned r = 1; r <= early->rows; r++) /* but for rounding */
            early->log_open[kind][r] = fmax(early->log_open[kind][r], early->log_open[kind][r - 1]);
    }
}

/* ---- the chance -------------------------------------------------------------------------------------- */

/* Of submessages first ... first + count - 1, which have had so many rows. */
static double log_of_groups(const struct model_early *early, double first, double count, unsigned rows)
{
    double larger = fmax(0, fmin(count, early->larger - first));
    double sum = 0;
    if (larger > 0)
        sum += larger * early->log_open[0][rows];
    if (count > larger)
        sum += (count - larger) * early->log_open[1][rows];
    return sum * early->apart;
}

static double groups_of_block(const struct model_early *early, double first)
{
    return fmin(early->block_groups, early->submessages - first);
}

/* When in the block that begins with submessage `first` all have had `row` rows, and `further` one more. */
static double log_within(const struct model_early *early, double first, unsigned row, double further)
{
    double groups = groups_of_block(early, first);
    double sum = log_of_groups(early, 0, first, early->rows);
    if (further > 0)
        sum += log_of_groups(early, first, further, row + 1);
    sum += log_of_groups(early, first + further, groups - further, row);
    return sum + log_of_groups(early, first + groups, early->submessages - first - groups, 0);
}

double model_early_log(const struct model_early *early, double parity)
{
    if (parity >= early->submessages * early->rows)
        return log_of_groups(early, 0, early->submessages, early->rows);
    double first = floor(parity / (early->block_groups * early->rows)) * early->block_groups;
    double at = parity - first * early->rows;
    double row = floor(at / groups_of_block(early, first));
    return log_within(early, first, (unsigned)row, at - row * groups_of_block(early, first));
}

/* ---- the mean ---------------------------------------------------------------------------------------- */

/* Of a stretch of parity in which log P rises evenly. */
static double missing_in(const struct model_early *early, double from, double to)
{
    double first = model_early_log(early, from);
    double rise = fmax(0, (model_early_log(early, to) - first) / (to - from));
    return model_series_missing(first, rise, to - from);
}

#define PIECES 64u /* of a message of many blocks; in each log P is taken to rise evenly */

static double mean_of_pieces(const struct model_early *early)
{
    double all = early->submessages * early->rows;
    double sum = 0;
    for (unsigned piece = 0; piece < PIECES; piece++) {
        double from = floor(all * piece / PIECES);
        double to = floor(all * (piece + 1) / PIECES);
        if (to > from)
            sum += missing_in(early, from, to);
    }
    return sum;
}

double model_early_mean(const struct model_early *early)
{
    double sum = 0;
    if (early->submessages > PIECES * early->block_groups)
        return mean_of_pieces(early);
    /* At most PIECES blocks of MODEL_COUNT_MAX rows. */
    for (double first = 0; first < early->submessages; first += early->block_groups)
        for (unsigned row = 0; row < early->rows; row++) {
            double groups = groups_of_block(early, first);
            double from = first * early->rows + row * groups;
            double larger = fmax(0, fmin(groups, early->larger - first));
            if (larger > 0)
                sum += missing_in(early, from, from + larger);
            if (groups > larger)
                sum += missing_in(early, from + larger, from + groups);
        }
    assert(sum >= 0 && sum <= early->submessages * early->rows * (1 + 1e-9));
    return sum;
}

double model_early_quantile(const struct model_early *early, double share)
{
    double low = -1;
    double high = early->submessages * early->rows;
    double log_share = log(share);
    if (model_early_log(early, high) < log_share)
        return INFINITY;
    while (high - low > 1) { /* halved each time */
        double middle = floor((low + high) / 2);
        *(model_early_log(early, middle) < log_share ? &low : &high) = middle;
    }
    return high;
}
