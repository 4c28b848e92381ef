/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/missing.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* P(X > y + spared), y = 0 ... most - 1, of P(X = x). */
static void tails(const double *chance, unsigned spared, unsigned most, double *above)
{
    double sum = 0;
    for (unsigned y = most; y-- > 0;) {
        sum += chance[spared + y + 1];
        above[y] = fmin(1, sum);
    }
}

/* chance of a + b, where a is at most a_max and b lacks all but one of x lost chunks of n. */
static void add_class(double *chance, unsigned *most, const double *lost, unsigned n)
{
    double sum[MODEL_COUNT_MAX + 1] = {0};
    for (unsigned a = 0; a <= *most; a++)
        for (unsigned x = 0; x <= n; x++)
            sum[a + (x > 1 ? x - 1 : 0)] += chance[a] * lost[x];
    *most += n - 1;
    memcpy(chance, sum, (*most + 1) * sizeof *sum);
}

/* Classes of data j mod rows, each with its parity. */
static void xor_missing(const struct model_loss *loss, unsigned rows, double stride,
                        struct ec_missing_kind *of)
{
    double chance[MODEL_COUNT_MAX + 1] = {1};
    double passes = 0; /* log */
    unsigned most = 0;
    double between = (stride * rows - 1) * loss->chunk_packets;
    double lost[2][MODEL_COUNT_MAX + 1];
    unsigned shorter = of->size / rows + 1; /* chunks of a class, with its parity */
    /* Longer ones only where there are any: with one class of 254 they would be too long. */
    for (unsigned longer = 0; longer < 1 + (of->size % rows != 0); longer++)
        model_lost_chunks(loss, shorter + longer, between, lost[longer]);
    for (unsigned class = 0; class < rows; class ++) {
        unsigned longer = class < of->size % rows;
        double fails[MODEL_COUNT_MAX + 1];
        tails(lost[longer], 1, shorter + longer - 1, fails);
        passes += log1p(-fails[0]);
        add_class(chance, &most, lost[longer], shorter + longer);
    }
    assert(most == of->size);
    tails(chance, 0, most, of->above);
    of->above[0] = fmax(of->above[0], -expm1(passes));
}

static void mds_missing(const struct model_loss *loss, unsigned rows, double stride,
                        struct ec_missing_kind *of)
{
    double chance[MODEL_COUNT_MAX + 1];
    model_lost_chunks(loss, of->size + rows, (stride - 1) * loss->chunk_packets, chance);
    tails(chance, rows, of->size, of->above);
}

static void describe(const struct lh_model_scheme *scheme, const struct model_loss *loss, unsigned rows,
                     double stride, struct ec_missing_kind *of)
{
    of->most = of->size;
    if (scheme->kind == LH_MODEL_EC_XOR && of->size > 1)
        xor_missing(loss, of->size < rows ? of->size : rows, stride, of);
    else
        mds_missing(loss, rows, stride, of);
    if (scheme->fallback == LH_MODEL_FALLBACK_SR)
        for (unsigned y = 1; y < of->most; y++)
            of->above[y] = of->above[0];
    assert(of->above[0] >= 0 && of->above[0] <= 1);
}

static unsigned rows_of(const struct lh_model_scheme *scheme, double chunks, unsigned size)
{
    unsigned most = scheme->kind == LH_MODEL_EC_XOR ? size : size + 1;
    if (chunks <= 1)
        most = 2; /* copies of the only chunk */
    else if (size == scheme->k)
        most = scheme->m;
    return scheme->m < most ? scheme->m : most;
}

static void sum_up(struct ec_missing *missing)
{
    for (unsigned i = 0; i < 2; i++) {
        const struct ec_missing_kind *of = &missing->kind[i];
        double mean = 0;
        double square = 0;
        for (unsigned y = 0; y < of->most; y++) {
            mean += of->above[y];
            square += (2.0 * y + 1) * of->above[y];
        }
        missing->mean += of->count * mean;
        missing->variance += of->count * fmax(0, square - mean * mean);
    }
    missing->log_none = ec_missing_log(missing, 1);
}

void ec_missing_of(const struct lh_model_scheme *scheme, const struct model_loss *loss, double chunks,
                   struct ec_missing *missing)
{
    *missing = (struct ec_missing){.submessages = ceil(chunks / scheme->k)};
    double size = ceil(chunks / missing->submessages);
    double larger = chunks - missing->submessages * (size - 1);
    missing->rows = rows_of(scheme, chunks, (unsigned)size);
    bool all = scheme->spread == 0 || scheme->spread >= missing->submessages;
    const double stride = all ? missing->submessages : scheme->spread;
    missing->stride = stride;
    for (unsigned i = 0; i < 2; i++) {
        struct ec_missing_kind *of = &missing->kind[i];
        of->size = (unsigned)size - i;
        of->count = i == 0 ? larger : missing->submessages - larger;
        if (of->count <= 0)
            continue;
        describe(scheme, loss, missing->rows, stride, of);
        bool shorter = scheme->kind == LH_MODEL_EC_XOR && of->size < missing->rows && chunks > 1;
        missing->parity_chunks += of->count * (shorter ? of->size : missing->rows);
    }
    sum_up(missing);
}

double ec_missing_apart(const struct ec_missing *missing, const struct model_loss *loss)
{
    if (!loss->bursty || loss->leaves >= 1 || loss->leaves <= 0)
        return 1;
    double together = -expm1(missing->stride * log1p(-loss->leaves));
    double apart = loss->leaves / together;
    assert(apart <= 1 + 1e-12);
    return fmin(1, apart);
}

double ec_missing_paper(const struct lh_model_scheme *scheme, double chunk_loss)
{
    double above[MODEL_COUNT_MAX + 1];
    double chance[MODEL_COUNT_MAX + 1];
    if (scheme->kind == LH_MODEL_EC_MDS) {
        model_binomial(scheme->k + scheme->m, chunk_loss, chance);
        tails(chance, scheme->m, scheme->k, above);
        return above[0];
    }
    struct ec_missing_kind of = {.size = scheme->k};
    struct model_loss loss = model_loss_of_chunks(chunk_loss, 0, 1);
    xor_missing(&loss, scheme->m, 1, &of);
    return of.above[0];
}

/* Sum over y of P(lack > y) z^y. */
static double tail_sum(const struct ec_missing_kind *of, double z)
{
    double sum = 0;
    for (unsigned y = of->most; y-- > 0;)
        sum = sum * z + of->above[y];
    return sum;
}

double ec_missing_log(const struct ec_missing *missing, double w)
{
    double log_sum = 0;
    for (unsigned i = 0; i < 2; i++) {
        const struct ec_missing_kind *of = &missing->kind[i];
        if (of->count > 0)
            log_sum += of->count * log1p(-w * tail_sum(of, 1 - w));
    }
    return log_sum;
}

double ec_missing_slope(const struct ec_missing *missing, double w)
{
    const double z = 1 - w;
    double ratios = 0; /* of each kind's derivative to itself */
    for (unsigned i = 0; i < 2; i++) {
        const struct ec_missing_kind *of = &missing->kind[i];
        if (of->count <= 0)
            continue;
        double slope = 0; /* sum over y of y P(lack > y) z^(y - 1) */
        for (unsigned y = of->most; y-- > 1;)
            slope = slope * z + y * of->above[y];
        double sum = tail_sum(of, z);
        ratios += of->count * (sum - w * slope) / (1 - w * sum);
    }
    return ratios * exp(ec_missing_log(missing, w));
}
