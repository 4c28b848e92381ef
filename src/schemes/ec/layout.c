/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/layout.h"

#include <assert.h>

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t ceil_div(uint32_t a, uint32_t b)
{
    return a / b + (a % b != 0);
}

static uint32_t places_of(const struct ec_params *params, uint32_t chunks)
{
    return chunks <= 1 ? 0 : params->m + ec_fresh_rows(params);
}

/* A block is whole groups, so blocks do not matter. */
static uint32_t groups_of(const struct ec_params *params, uint32_t chunks)
{
    return ceil_div(chunks, params->k);
}

uint32_t ec_groups(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks)
{
    struct ec_params read = ec_params_of(params);
    return groups_of(&read, chunks);
}

uint32_t ec_extra_chunks(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks)
{
    struct ec_params read = ec_params_of(params);
    uint64_t extra = (uint64_t)groups_of(&read, chunks) * places_of(&read, chunks);
    return extra > UINT32_MAX ? UINT32_MAX : (uint32_t)extra;
}

uint32_t ec_transfer_chunks_max(const uint8_t params[LH_SCHEME_PARAMS], uint32_t slot_chunks)
{
    struct ec_params read = ec_params_of(params);
    if (slot_chunks <= 1)
        return 0;
    uint64_t fit = (uint64_t)(slot_chunks / places_of(&read, slot_chunks)) * read.k;
    return fit < slot_chunks ? (uint32_t)fit : slot_chunks;
}

struct ec_layout ec_layout_of(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks)
{
    struct ec_layout layout = {.params = ec_params_of(params), .chunks = chunks};
    layout.groups = groups_of(&layout.params, chunks);
    layout.places = places_of(&layout.params, chunks);
    assert((uint64_t)layout.groups * layout.places < UINT32_MAX);
    uint32_t spread = layout.params.spread;
    bool one_block = spread == 0 || spread >= layout.groups;
    layout.block_groups = one_block ? layout.groups : spread;
    layout.block_chunks = one_block ? chunks : spread * layout.params.k;
    assert(layout.block_chunks <= chunks);
    return layout;
}

uint32_t ec_layout_extra(const struct ec_layout *layout)
{
    return layout->groups * layout->places;
}

static uint32_t rows_of(const struct ec_params *params, uint32_t size)
{
    if (params->kind == EC_XOR)
        return smaller(params->m, size);
    return size == params->k ? params->m : smaller(params->m, size + 1);
}

struct ec_block ec_layout_block(const struct ec_layout *layout, uint32_t first_group)
{
    assert(first_group < layout->groups && first_group % layout->block_groups == 0);
    struct ec_block block = {.first_group = first_group, .first_place = first_group * layout->places};
    block.first_chunk = first_group / layout->block_groups * layout->block_chunks;
    block.chunks = smaller(layout->block_chunks, layout->chunks - block.first_chunk);
    block.groups = ceil_div(block.chunks, layout->params.k);
    block.size = ceil_div(block.chunks, block.groups);
    block.rows = layout->places == 0 ? 0 : rows_of(&layout->params, block.size);
    block.parity = block.rows * block.groups;
    /* xor: a group that is shorter than the rows leaves out its last. */
    if (layout->params.kind == EC_XOR && block.rows == block.size)
        block.parity -= block.size * block.groups - block.chunks;
    assert(block.size <= layout->params.k && block.parity <= block.groups * layout->places);
    return block;
}

struct ec_group ec_layout_group(const struct ec_layout *layout, uint32_t group)
{
    assert(group < layout->groups);
    uint32_t inside = group % layout->block_groups;
    struct ec_block block = ec_layout_block(layout, group - inside);
    struct ec_group of = {
        .first_chunk = block.first_chunk + inside,
        .first_place = block.first_place + inside,
        .stride = block.groups,
        .size = ceil_div(block.chunks - inside, block.groups),
        .rows = block.rows,
    };
    if (layout->params.kind == EC_XOR)
        of.rows = smaller(of.rows, of.size);
    assert(of.size >= 1 && of.first_chunk + (of.size - 1) * of.stride < layout->chunks);
    return of;
}
