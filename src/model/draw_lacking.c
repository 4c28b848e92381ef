/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "model/sampler.h"

/* ---- independent loss: how many submessages fail, and of each what it lacks --------------------------- */

static double draw_independent(const struct model_lacks *lacks, bool all_data, struct lh_prng *prng)
{
    double sum = 0;
    for (unsigned i = 0; i < 2; i++) {
        const struct model_lack *kind = &lacks->kind[i];
        double failed = model_draw_binomial(prng, kind->count, kind->above[0]);
        if (all_data) {
            sum += failed * kind->size;
            continue;
        }
        for (double one = 0; one < failed; one++) {
            double share = lh_prng_double(prng) * kind->above[0];
            unsigned lack = 1;
            while (lack < kind->most && kind->above[lack] > share)
                lack++;
            sum += lack;
        }
    }
    return sum;
}

/* ---- bursts: the chunks of each submessage that rows of lost packets hit ------------------------------ */

/* The wire carries block after block; in a block chunk p is place p / groups of group p mod groups, data
 * first.
 * Cells of a group: chunks lost of all, and in each class (mds: one class). `touched` lists the groups that
 * have any. */
struct wire {
    const struct model_sampler *sampler;
    const struct model_lacks *lacks;
    double block_groups;
    double block_places; /* chunks of a group, with parity */
    unsigned classes;
    unsigned spared; /* chunks of a class that may be lost */
    uint8_t *cells;
    uint32_t *touched;
    uint32_t touched_count;
    double block; /* that is being filled */
    double lacking;
};

static struct wire wire_of(const struct model_sampler *sampler)
{
    const struct model_lacks *lacks = &sampler->of.coded.lacks;
    struct wire wire = {.sampler = sampler, .lacks = lacks, .classes = 1, .spared = lacks->rows};
    double spread = sampler->scheme.spread;
    wire.block_groups = spread > 0 ? fmin(spread, lacks->submessages) : lacks->submessages;
    wire.block_places = lacks->kind[0].size + lacks->rows;
    if (sampler->scheme.kind == LH_MODEL_EC_XOR && sampler->terms.chunks > 1) {
        wire.classes = lacks->rows;
        wire.spared = 1;
    }
    return wire;
}

size_t model_lacking_cells(const struct model_sampler *sampler)
{
    struct wire wire = wire_of(sampler);
    return (size_t)wire.block_groups * (sizeof(uint32_t) + wire.classes + 1);
}

static unsigned size_of(const struct wire *wire, double group)
{
    double number = wire->block * wire->block_groups + group;
    return wire->lacks->kind[number < wire->lacks->kind[0].count ? 0 : 1].size;
}

/* What the groups of this block lack; its cells become 0 again. */
static void end_block(struct wire *wire)
{
    const unsigned spared = wire->spared;
    for (uint32_t i = 0; i < wire->touched_count; i++) {
        uint32_t group = wire->touched[i];
        uint8_t *cell = wire->cells + (size_t)group * (wire->classes + 1);
        unsigned lack = 0;
        for (unsigned class = 1; class <= wire->classes; class ++)
            lack += cell[class] > spared ? cell[class] - spared : 0;
        if (lack > 0 && wire->sampler->scheme.fallback == LH_MODEL_FALLBACK_SR)
            lack = size_of(wire, group);
        wire->lacking += lack;
        memset(cell, 0, wire->classes + 1);
    }
    wire->touched_count = 0;
}

static void on_chunk_lost(struct wire *wire, double chunk)
{
    double block = floor(chunk / (wire->block_groups * wire->block_places));
    if (block != wire->block) {
        end_block(wire);
        wire->block = block;
    }
    double groups = fmin(wire->block_groups, wire->lacks->submessages - block * wire->block_groups);
    double at = chunk - block * wire->block_groups * wire->block_places;
    double place = floor(at / groups);
    double group = at - place * groups;
    unsigned size = size_of(wire, group);
    unsigned data_places = wire->lacks->kind[0].size;
    unsigned rows = wire->classes < size ? wire->classes : size; /* classes of this group */
    bool data = place < data_places;
    unsigned number = (unsigned)(data ? place : place - data_places);
    if (data ? number >= size : wire->classes > 1 && number >= rows)
        return; /* there is no such chunk: this group is one shorter */
    uint8_t *cell = wire->cells + (size_t)group * (wire->classes + 1);
    if (cell[0]++ == 0)
        wire->touched[wire->touched_count++] = (uint32_t)group;
    cell[1 + number % rows]++;
}

static double draw_bursts(const struct model_sampler *sampler, struct lh_prng *prng, uint8_t *cells)
{
    const struct model_loss *loss = &sampler->terms.loss;
    struct wire wire = wire_of(sampler);
    wire.touched = (uint32_t *)(void *)cells;
    wire.cells = cells + (size_t)wire.block_groups * sizeof(uint32_t);
    double end = wire.lacks->submessages * wire.block_places * loss->chunk_packets;
    double told = -1; /* the last chunk that was */
    struct model_bursts link;
    struct model_row row;
    model_bursts_start(&link, loss);
    model_bursts_skip(&link, prng, 0);
    while (model_bursts_next(&link, prng, end, &row)) {
        double last = floor(row.last / loss->chunk_packets);
        for (double chunk = fmax(told + 1, floor(row.first / loss->chunk_packets)); chunk <= last; chunk++)
            on_chunk_lost(&wire, chunk);
        told = last;
    }
    end_block(&wire);
    return wire.lacking;
}

double model_draw_lacking(const struct model_sampler *sampler, struct lh_prng *prng, uint8_t *cells)
{
    const struct model_lacks *lacks = &sampler->of.coded.lacks;
    if (sampler->terms.loss.bursty && sampler->terms.loss.packet > 0)
        return draw_bursts(sampler, prng, cells);
    return draw_independent(lacks, sampler->scheme.fallback == LH_MODEL_FALLBACK_SR, prng);
}
