/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/lack.h"

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
static void xor_lack(const struct model_loss *loss, unsigned rows, double stride, struct model_lack *lack)
{
    double chance[MODEL_COUNT_MAX + 1] = {1};
    double passes = 0; /* log */
    unsigned most = 0;
    double between = (stride * rows - 1) * loss->chunk_packets;
    double lost[2][MODEL_COUNT_MAX + 1];
    unsigned shorter = lack->size / rows + 1; /* chunks of a class, with its parity */
    /* Longer ones only where there are any: with one class of 254 they would be too long. */
    for (unsigned longer = 0; longer < 1 + (lack->size % rows != 0); longer++)
        model_lost_chunks(loss, shorter + longer, between, lost[longer]);
    for (unsigned class = 0; class < rows; class ++) {
        unsigned longer = class < lack->size % rows;
        double fails[MODEL_COUNT_MAX + 1];
        tails(lost[longer], 1, shorter + longer - 1, fails);
        passes += log1p(-fails[0]);
        add_class(chance, &most, lost[longer], shorter + longer);
    }
    assert(most == lack->size);
    tails(chance, 0, most, lack->above);
    lack->above[0] = fmax(lack->above[0], -expm1(passes));
}

static void mds_lack(const struct model_loss *loss, unsigned rows, double stride, struct model_lack *lack)
{
    double chance[MODEL_COUNT_MAX + 1];
    model_lost_chunks(loss, lack->size + rows, (stride - 1) * loss->chunk_packets, chance);
    tails(chance, rows, lack->size, lack->above);
}

static void describe(const struct lh_model_scheme *scheme, const struct model_loss *loss, unsigned rows,
                     double stride, struct model_lack *lack)
{
    lack->most = lack->size;
    if (scheme->kind == LH_MODEL_EC_XOR && lack->size > 1)
        xor_lack(loss, lack->size < rows ? lack->size : rows, stride, lack);
    else
        mds_lack(loss, rows, stride, lack);
    if (scheme->fallback == LH_MODEL_FALLBACK_SR)
        for (unsigned y = 1; y < lack->most; y++)
            lack->above[y] = lack->above[0];
    assert(lack->above[0] >= 0 && lack->above[0] <= 1);
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

static void sum_up(struct model_lacks *lacks)
{
    for (unsigned i = 0; i < 2; i++) {
        const struct model_lack *lack = &lacks->kind[i];
        double mean = 0;
        double square = 0;
        for (unsigned y = 0; y < lack->most; y++) {
            mean += lack->above[y];
            square += (2.0 * y + 1) * lack->above[y];
        }
        lacks->mean += lack->count * mean;
        lacks->variance += lack->count * fmax(0, square - mean * mean);
    }
    lacks->log_none = model_lacks_log(lacks, 1);
}

void model_lacks_of(const struct lh_model_scheme *scheme, const struct model_loss *loss, double chunks,
                    struct model_lacks *lacks)
{
    *lacks = (struct model_lacks){.submessages = ceil(chunks / scheme->k)};
    double size = ceil(chunks / lacks->submessages);
    double larger = chunks - lacks->submessages * (size - 1);
    lacks->rows = rows_of(scheme, chunks, (unsigned)size);
    bool all = scheme->spread == 0 || scheme->spread >= lacks->submessages;
    const double stride = all ? lacks->submessages : scheme->spread;
    lacks->stride = stride;
    for (unsigned i = 0; i < 2; i++) {
        struct model_lack *lack = &lacks->kind[i];
        lack->size = (unsigned)size - i;
        lack->count = i == 0 ? larger : lacks->submessages - larger;
        if (lack->count <= 0)
            continue;
        describe(scheme, loss, lacks->rows, stride, lack);
        bool shorter = scheme->kind == LH_MODEL_EC_XOR && lack->size < lacks->rows && chunks > 1;
        lacks->parity_chunks += lack->count * (shorter ? lack->size : lacks->rows);
    }
    sum_up(lacks);
}

double model_lacks_apart(const struct model_lacks *lacks, const struct model_loss *loss)
{
    if (!loss->bursty || loss->leaves >= 1 || loss->leaves <= 0)
        return 1;
    double together = -expm1(lacks->stride * log1p(-loss->leaves));
    double apart = loss->leaves / together;
    assert(apart <= 1 + 1e-12);
    return fmin(1, apart);
}

double model_lack_paper(const struct lh_model_scheme *scheme, double chunk_loss)
{
    double above[MODEL_COUNT_MAX + 1];
    double chance[MODEL_COUNT_MAX + 1];
    if (scheme->kind == LH_MODEL_EC_MDS) {
        model_binomial(scheme->k + scheme->m, chunk_loss, chance);
        tails(chance, scheme->m, scheme->k, above);
        return above[0];
    }
    struct model_lack lack = {.size = scheme->k};
    struct model_loss loss = model_loss_of_chunks(chunk_loss, 0, 1);
    xor_lack(&loss, scheme->m, 1, &lack);
    return lack.above[0];
}

/* Sum over y of P(lack > y) z^y. */
static double tail_sum(const struct model_lack *lack, double z)
{
    double sum = 0;
    for (unsigned y = lack->most; y-- > 0;)
        sum = sum * z + lack->above[y];
    return sum;
}

double model_lacks_log(const struct model_lacks *lacks, double missing)
{
    double log_sum = 0;
    for (unsigned i = 0; i < 2; i++) {
        const struct model_lack *lack = &lacks->kind[i];
        if (lack->count > 0)
            log_sum += lack->count * log1p(-missing * tail_sum(lack, 1 - missing));
    }
    return log_sum;
}

double model_lacks_slope(const struct model_lacks *lacks, double missing)
{
    const double z = 1 - missing;
    double ratios = 0; /* of each kind's derivative to itself */
    for (unsigned i = 0; i < 2; i++) {
        const struct model_lack *lack = &lacks->kind[i];
        if (lack->count <= 0)
            continue;
        double slope = 0; /* sum over y of y P(lack > y) z^(y - 1) */
        for (unsigned y = lack->most; y-- > 1;)
            slope = slope * z + y * lack->above[y];
        double sum = tail_sum(lack, z);
        ratios += lack->count * (sum - missing * slope) / (1 - missing * sum);
    }
    return ratios * exp(model_lacks_log(lacks, missing));
}
