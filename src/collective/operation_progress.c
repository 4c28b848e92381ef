/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/run/layout.h"

#include <assert.h>

/* A part per rank in the whole row. */
static bool has_parts(enum collective collective)
{
    return collective == COLLECTIVE_REDUCE_SCATTER || collective == COLLECTIVE_ALLGATHER ||
           collective == COLLECTIVE_GATHER || collective == COLLECTIVE_SCATTER ||
           collective == COLLECTIVE_ALLTOALL;
}

uint64_t layout_elements(enum collective collective, uint32_t ranks, uint64_t count)
{
    uint64_t factor = has_parts(collective) ? ranks : 1;
    /* An all-to-all has a row per rank. */
    uint64_t rows = collective == COLLECTIVE_ALLTOALL ? ranks : 1;
    return count <= LAYOUT_ELEMENTS_MAX / factor / rows ? count * factor : 0;
}

static uint64_t divided_up(uint64_t value, uint64_t by)
{
    return value / by + (value % by > 0);
}

uint32_t layout_blocks(const struct layout *layout, size_t block_bytes)
{
    uint64_t rows = layout->collective == COLLECTIVE_ALLTOALL ? layout->ranks : 1;
    uint64_t per_block = block_bytes / layout->element_bytes;
    uint64_t parts = layout->ranks;
    assert(per_block > 0);
    if (layout->collective == COLLECTIVE_BARRIER)
        return 1;
    if (layout->parts)
        return layout->parts->blocks + (layout->parts->blocks == 0);
    if (layout->collective == COLLECTIVE_BROADCAST || layout->collective == COLLECTIVE_REDUCE)
        parts = 1;
    uint64_t of_part = divided_up(divided_up(layout->elements, parts), per_block);
    of_part += of_part == 0;
    return of_part <= SCHEDULE_BLOCKS_MAX / parts / rows ? (uint32_t)(of_part * parts) : 0;
}

uint32_t layout_blocks_of_all(const struct layout *layout)
{
    bool rows = layout->collective == COLLECTIVE_ALLTOALL && !layout->parts;
    return rows ? layout->ranks * layout->blocks : layout->blocks;
}

/* Bytes before a block of a row. The remainder's product has at most 48 bits. */
static uint64_t before(const struct layout *layout, uint32_t block)
{
    uint64_t each = layout->elements / layout->blocks, rest = layout->elements % layout->blocks;
    return (each * block + rest * block / layout->blocks) * layout->element_bytes;
}

static uint64_t row_bytes(const struct layout *layout)
{
    return layout->elements * layout->element_bytes;
}

uint64_t layout_work_bytes(const struct layout *layout, bool forwards)
{
    if (layout->parts)
        return 0;
    switch (layout->collective) {
    case COLLECTIVE_REDUCE_SCATTER:
        return row_bytes(layout);
    case COLLECTIVE_REDUCE:
        return layout->rank == layout->root ? 0 : row_bytes(layout);
    case COLLECTIVE_GATHER:
    case COLLECTIVE_SCATTER:
        return forwards && layout->rank != layout->root ? row_bytes(layout) : 0;
    case COLLECTIVE_ALLTOALL:
        return forwards ? layout->ranks * row_bytes(layout) : 0;
    default:
        return 0;
    }
}

size_t layout_bytes(const struct layout *layout, uint32_t block)
{
    if (layout->parts)
        return (size_t)parts_elements(layout->parts, parts_find(layout->parts, block), block) *
               layout->element_bytes;
    uint32_t of_row = block % layout->blocks;
    return (size_t)(before(layout, of_row + 1) - before(layout, of_row));
}

/* ---- the part of a rank ------------------------------------------------------------------------------ */

static uint32_t part_of(const struct layout *layout, uint32_t block)
{
    return block % layout->blocks / (layout->blocks / layout->ranks);
}

static uint64_t part_bytes(const struct layout *layout)
{
    return row_bytes(layout) / layout->ranks;
}

/* Bytes before a block of its part. */
static uint64_t in_part(const struct layout *layout, uint32_t block)
{
    return before(layout, block % layout->blocks) - part_of(layout, block) * part_bytes(layout);
}

/* ---- places ------------------------------------------------------------------------------------------ */

/* Bytes before a block of a part of a given size, in its buffer. */
static uint64_t in_buffer(const struct layout *layout, uint32_t block)
{
    return parts_before(layout->parts, parts_find(layout->parts, block), block) * layout->element_bytes;
}

const uint8_t *layout_from(const struct layout *layout, uint32_t block)
{
    bool part = layout->collective == COLLECTIVE_ALLGATHER || layout->collective == COLLECTIVE_GATHER;
    if (layout->collective == COLLECTIVE_BARRIER)
        return NULL;
    if (layout->parts)
        return layout->in + in_buffer(layout, block);
    if (part) {
        assert(part_of(layout, block) == layout->rank);
        return layout->in + in_part(layout, block);
    }
    return layout->in + before(layout, block % layout->blocks);
}

static uint8_t *place_of_pair(const struct layout *layout, uint32_t block)
{
    uint32_t source = block / layout->blocks;
    if (part_of(layout, block) == layout->rank)
        return layout->out + source * part_bytes(layout) + in_part(layout, block);
    return layout->work + source * row_bytes(layout) + before(layout, block % layout->blocks);
}

uint8_t *layout_to(const struct layout *layout, uint32_t block)
{
    if (layout->parts)
        return layout->out + in_buffer(layout, block);
    switch (layout->collective) {
    case COLLECTIVE_ALLTOALL:
        return place_of_pair(layout, block);
    case COLLECTIVE_REDUCE_SCATTER:
    case COLLECTIVE_SCATTER:
        if (part_of(layout, block) == layout->rank)
            return layout->out + in_part(layout, block);
        return layout->work + before(layout, block);
    case COLLECTIVE_REDUCE:
    case COLLECTIVE_GATHER:
        return (layout->rank == layout->root ? layout->out : layout->work) + before(layout, block);
    case COLLECTIVE_BARRIER:
        return NULL;
    default:
        return layout->out + before(layout, block);
    }
}

static uint64_t own_part(const struct layout *layout, const uint8_t **from, uint8_t **to)
{
    const struct part *in = &layout->parts->in[layout->rank], *out = &layout->parts->out[layout->rank];
    if (in->elements == 0) /* either may be NULL */
        return 0;
    *from = layout->in + in->before * layout->element_bytes;
    *to = layout->out + out->before * layout->element_bytes;
    return *from == *to ? 0 : in->elements * layout->element_bytes;
}

uint64_t layout_own(const struct layout *layout, const uint8_t **from, uint8_t **to)
{
    if (layout->parts)
        return own_part(layout, from, to);
    uint64_t at = layout->rank * part_bytes(layout), bytes = part_bytes(layout);
    *from = layout->in;
    *to = layout->out;
    switch (layout->collective) {
    case COLLECTIVE_ALLTOALL:
        *from += at;
        *to += at;
        break;
    case COLLECTIVE_GATHER:
        *to += layout->rank == layout->root ? at : 0;
        bytes = layout->rank == layout->root ? bytes : 0;
        break;
    case COLLECTIVE_ALLGATHER:
        *to += at;
        break;
    case COLLECTIVE_SCATTER:
        *from += layout->rank == layout->root ? at : 0;
        bytes = layout->rank == layout->root ? bytes : 0;
        break;
    case COLLECTIVE_BROADCAST:
    case COLLECTIVE_BARRIER:
        return 0;
    default:
        bytes = layout->ranks == 1 ? row_bytes(layout) : 0;
    }
    return *from == *to ? 0 : bytes;
}
