/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec_missing.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include <longhaul/model.h>

#include "base/prng.h"
#include "model/loss_model.h"

/* ---- missing --------------------------------------------------------------------------------------- */

/* P(X > y + spared), y = 0 ... most - 1, of P(X = x). */
static void tails(const double *chance, unsigned spared, unsigned maximum, double *above)
{
    double sum = 0;
    for (unsigned y = maximum; y-- > 0;) {
        sum += chance[spared + y + 1];
        above[y] = fmin(1, sum);
    }
}

/* chance of a + b, where a is at most a_max and b lacks all but one of x lost chunks of n. */
static void add_class(double *chance, unsigned *maximum, const double *lost, unsigned n)
{
    double sum[MODEL_COUNT_MAX + 1] = {0};
    for (unsigned a = 0; a <= *maximum; a++)
        for (unsigned x = 0; x <= n; x++)
            sum[a + (x > 1 ? x - 1 : 0)] += chance[a] * lost[x];
    *maximum += n - 1;
    memcpy(chance, sum, (*maximum + 1) * sizeof *sum);
}

/* Classes of data j mod rows, each with its parity. */
static void xor_missing(const struct model_loss *loss, unsigned rows, double stride,
                        struct ec_missing_kind *of)
{
    double chance[MODEL_COUNT_MAX + 1] = {1};
    double passes = 0; /* log */
    unsigned maximum = 0;
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
        add_class(chance, &maximum, lost[longer], shorter + longer);
    }
    assert(maximum == of->size);
    tails(chance, 0, maximum, of->above);
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
    of->maximum = of->size;
    if (scheme->kind == LH_MODEL_EC_XOR && of->size > 1)
        xor_missing(loss, of->size < rows ? of->size : rows, stride, of);
    else
        mds_missing(loss, rows, stride, of);
    if (scheme->fallback == LH_MODEL_FALLBACK_SR)
        for (unsigned y = 1; y < of->maximum; y++)
            of->above[y] = of->above[0];
    assert(of->above[0] >= 0 && of->above[0] <= 1);
}

static unsigned rows_of(const struct lh_model_scheme *scheme, double chunks, unsigned size)
{
    unsigned maximum = scheme->kind == LH_MODEL_EC_XOR ? size : size + 1;
    if (chunks <= 1)
        maximum = 2; /* copies of the only chunk */
    else if (size == scheme->k)
        maximum = scheme->m;
    return scheme->m < maximum ? scheme->m : maximum;
}

static void sum_up(struct ec_missing *missing)
{
    for (unsigned i = 0; i < 2; i++) {
        const struct ec_missing_kind *of = &missing->kind[i];
        double mean = 0;
        double square = 0;
        for (unsigned y = 0; y < of->maximum; y++) {
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
    for (unsigned y = of->maximum; y-- > 0;)
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
        for (unsigned y = of->maximum; y-- > 1;)
            slope = slope * z + y * of->above[y];
        double sum = tail_sum(of, z);
        ratios += of->count * (sum - w * slope) / (1 - w * sum);
    }
    return ratios * exp(ec_missing_log(missing, w));
}

/* ---- missing sampler ------------------------------------------------------------------------------- */

/* ---- independent loss: how many submessages fail, and of each what it lacks ---------------------------- */

static double sample_independent(const struct ec_missing *missing, bool all_data, struct lh_prng *prng)
{
    double sum = 0;
    for (unsigned i = 0; i < 2; i++) {
        const struct ec_missing_kind *kind = &missing->kind[i];
        double failed = model_sample_binomial(prng, kind->count, kind->above[0]);
        if (all_data) {
            sum += failed * kind->size;
            continue;
        }
        for (double one = 0; one < failed; one++) {
            double share = lh_prng_double(prng) * kind->above[0];
            unsigned lack = 1;
            while (lack < kind->maximum && kind->above[lack] > share)
                lack++;
            sum += lack;
        }
    }
    return sum;
}

/* ---- bursts: the chunks of each submessage that rows of lost packets hit ------------------------------- */

/* The wire carries block after block; in a block chunk p is place p / groups of group p mod groups, data
 * first. Cells of a group: data chunks lost, and for each class (mds: one class) the parity that it waits
 * for: of an mds code the first so many rows, of a class of an xor code its own when it is 1; that goes
 * on by one with each lost chunk that it would have been. `touched` lists the groups that lost data. */
struct wire {
    const struct lh_model_scheme *scheme;
    const struct ec_missing *missing;
    double block_groups;
    double block_places; /* chunks of a group, with parity */
    unsigned classes;
    unsigned spared; /* chunks of a class that may be lost */
    uint8_t *cells;
    uint32_t *touched;
    uint32_t touched_count;
    double block; /* that is being filled */
    struct ec_missing_sample found;
};

static struct wire wire_of(const struct ec_missing *missing, const struct lh_model_scheme *scheme)
{
    bool one_chunk = missing->submessages <= 1 && missing->kind[0].size <= 1;
    struct wire wire = {.scheme = scheme, .missing = missing, .classes = 1, .spared = missing->rows};
    double spread = scheme->spread;
    wire.block_groups = spread > 0 ? fmin(spread, missing->submessages) : missing->submessages;
    wire.block_places = missing->kind[0].size + missing->rows;
    if (scheme->kind == LH_MODEL_EC_XOR && !one_chunk) {
        wire.classes = missing->rows;
        wire.spared = 1;
    }
    return wire;
}

size_t ec_missing_cells(const struct ec_missing *missing, const struct lh_model_scheme *scheme)
{
    struct wire wire = wire_of(missing, scheme);
    return (size_t)wire.block_groups * (sizeof(uint32_t) + wire.classes + 1);
}

static unsigned size_of(const struct wire *wire, double group)
{
    double number = wire->block * wire->block_groups + group;
    return wire->missing->kind[number < wire->missing->kind[0].count ? 0 : 1].size;
}

static double groups_of_block(const struct wire *wire, double block)
{
    return fmin(wire->block_groups, wire->missing->submessages - block * wire->block_groups);
}

/* Chunks that one group missing. *row: the last of its parity that it waits for, from 1; 0: none. */
static unsigned lack_of(const struct wire *wire, const uint8_t *cell, unsigned *row)
{
    unsigned lack = 0;
    *row = 0;
    for (unsigned class = 1; class <= wire->classes; class ++) {
        lack += cell[class] > wire->spared ? cell[class] - wire->spared : 0;
        if (cell[class] > 0)
            *row = wire->classes > 1 ? class : cell[class];
    }
    return lack;
}

/* What the groups of this block lack; its cells become 0 again. */
static void end_block(struct wire *wire)
{
    struct ec_missing_sample *found = &wire->found;
    for (uint32_t i = 0; i < wire->touched_count; i++) {
        uint32_t group = wire->touched[i];
        uint8_t *cell = wire->cells + (size_t)group * (wire->classes + 1);
        unsigned row;
        unsigned lack = lack_of(wire, cell, &row);
        if (lack > 0) {
            found->data += cell[0];
            bool whole = wire->scheme->fallback == LH_MODEL_FALLBACK_SR;
            found->chunks += whole ? size_of(wire, group) : lack;
        } else if (row > 0) {
            double before = wire->block * wire->block_groups * wire->missing->rows;
            double at = before + (row - 1) * groups_of_block(wire, wire->block) + group + 1;
            found->parity = fmax(found->parity, at);
        }
        memset(cell, 0, wire->classes + 1);
    }
    wire->touched_count = 0;
}

static void on_data_lost(struct wire *wire, uint32_t group, unsigned class)
{
    uint8_t *cell = wire->cells + (size_t)group * (wire->classes + 1);
    if (cell[0]++ == 0)
        wire->touched[wire->touched_count++] = group;
    cell[1 + class]++;
}

static void on_parity_lost(struct wire *wire, uint32_t group, unsigned row)
{
    uint8_t *cell = wire->cells + (size_t)group * (wire->classes + 1);
    bool waited_for = wire->classes > 1 ? cell[1 + row] > 0 : row < cell[1];
    if (waited_for)
        cell[wire->classes > 1 ? 1 + row : 1]++;
}

static void on_chunk_lost(struct wire *wire, double chunk)
{
    double block = floor(chunk / (wire->block_groups * wire->block_places));
    if (block != wire->block) {
        end_block(wire);
        wire->block = block;
    }
    double groups = groups_of_block(wire, block);
    double at = chunk - block * wire->block_groups * wire->block_places;
    double place = floor(at / groups);
    double group = at - place * groups;
    unsigned size = size_of(wire, group);
    unsigned data_places = wire->missing->kind[0].size;
    unsigned rows = wire->classes < size ? wire->classes : size; /* classes of this group */
    bool data = place < data_places;
    unsigned number = (unsigned)(data ? place : place - data_places);
    if (data ? number >= size : wire->classes > 1 && number >= rows)
        return; /* there is no such chunk: this group is one shorter */
    if (data)
        on_data_lost(wire, (uint32_t)group, number % rows);
    else
        on_parity_lost(wire, (uint32_t)group, number);
}

static struct ec_missing_sample sample_bursts(const struct ec_missing *missing,
                                              const struct lh_model_scheme *scheme,
                                              const struct model_loss *loss, struct lh_prng *prng,
                                              uint8_t *cells)
{
    struct wire wire = wire_of(missing, scheme);
    wire.touched = (uint32_t *)(void *)cells;
    wire.cells = cells + (size_t)wire.block_groups * sizeof(uint32_t);
    double end = wire.missing->submessages * wire.block_places * loss->chunk_packets;
    double counted = -1; /* the last chunk that was */
    struct model_bursts link;
    struct model_burst row;
    model_bursts_start(&link, loss);
    model_bursts_skip(&link, prng, 0);
    while (model_bursts_next(&link, prng, end, &row)) {
        double last = floor(row.last / loss->chunk_packets);
        for (double chunk = fmax(counted + 1, floor(row.first / loss->chunk_packets)); chunk <= last;
             chunk++)
            on_chunk_lost(&wire, chunk);
        counted = last;
    }
    end_block(&wire);
    return wire.found;
}

struct ec_missing_sample ec_missing_sample_one(const struct ec_missing *missing,
                                               const struct lh_model_scheme *scheme,
                                               const struct model_loss *loss, struct lh_prng *prng,
                                               uint8_t *cells)
{
    if (loss->bursty && loss->packet > 0)
        return sample_bursts(missing, scheme, loss, prng, cells);
    bool all_data = scheme->fallback == LH_MODEL_FALLBACK_SR;
    return (struct ec_missing_sample){.chunks = sample_independent(missing, all_data, prng)};
}

/* A chunk that was lost so often ends the message in a time that nobody waits for. */
#define ROUNDS_MAX 256u

double ec_rounds_sample(const struct model_loss *loss, double chunks, struct lh_prng *prng)
{
    double rounds = 1;
    for (double left = chunks; rounds < ROUNDS_MAX; rounds++) {
        struct model_bursts link; /* a round trip later the link has forgotten */
        struct model_burst row;
        double counted = -1;
        double lost = 0;
        model_bursts_start(&link, loss);
        model_bursts_skip(&link, prng, 0);
        while (model_bursts_next(&link, prng, left * loss->chunk_packets, &row)) {
            double first = fmax(counted + 1, floor(row.first / loss->chunk_packets));
            double last = floor(row.last / loss->chunk_packets);
            lost += fmax(0, last - first + 1);
            counted = last;
        }
        if (lost <= 0)
            break;
        left = lost;
    }
    return rounds;
}
