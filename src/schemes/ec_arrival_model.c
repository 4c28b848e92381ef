/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/request_rounds.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "model/repeat.h"

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

/* chance of d missing, in classes so far: of any, and of those that could do with their parity. */
struct of_classes {
    double any[MODEL_COUNT_MAX + 1];
    double decodable[MODEL_COUNT_MAX + 1];
    unsigned most;
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
            for (unsigned had = 0; had <= before.most; had++) {
                sum->any[had + d] += before.any[had] * chance;
                sum->decodable[had + d] += x <= 1 ? before.decodable[had] * chance : 0;
            }
        }
    sum->most += data;
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
    if (rounds->copies)
        rounds->log_none = log_of_copies(rounds, 0);
    for (unsigned n = 1; n <= MODEL_COUNT_MAX + 1; n++)
        rounds->log_factorial[n] = rounds->log_factorial[n - 1] + log(n);
    for (unsigned kind = 0; kind < 2; kind++) {
        const struct ec_missing_kind *of = &missing->kind[kind];
        rounds->of[kind].count = of->count;
        rounds->of[kind].size = of->size;
        if (of->count <= 0 || rounds->copies || scheme->fallback != LH_MODEL_FALLBACK_SR)
            continue;
        if (rounds->kind == LH_MODEL_EC_XOR)
            missing_of_xor(rounds, kind, of->size);
        else
            missing_of_mds(rounds, kind, of->size);
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

static double log_of_submessage(const struct ec_rounds *rounds, unsigned kind, double missing)
{
    const unsigned size = rounds->of[kind].size;
    double incomplete = 0;
    if (rounds->fallback == LH_MODEL_FALLBACK_SR) {
        for (unsigned d = 1; d <= size; d++)
            incomplete += rounds->of[kind].missing[d] * any_of(missing, d);
        return log1p(-fmin(1, incomplete));
    }
    return rounds->kind == LH_MODEL_EC_XOR ? log_of_xor(rounds, size, missing) : 0;
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
