/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/bounded/coding.h"

#include <assert.h>
#include <string.h>

#include "schemes/ec/coding.h"
#include "schemes/ec/needs.h"

struct ec_layout bounded_layout_of(const struct bounded_params *params, uint32_t chunks)
{
    if (params->codes)
        return ec_layout_of(params->code, chunks);
    return (struct ec_layout){.chunks = chunks};
}

uint32_t bounded_layout_end(const struct ec_layout *layout)
{
    if (layout->places == 0)
        return layout->chunks;
    uint32_t last = (layout->groups - 1) / layout->block_groups * layout->block_groups;
    struct ec_block block = ec_layout_block(layout, last);
    return layout->chunks + block.first_place + block.parity;
}

static uint32_t transfer_chunks_max(const uint8_t params[LH_SCHEME_PARAMS], uint32_t slot_chunks)
{
    struct bounded_params read = bounded_params_of(params);
    return read.codes ? ec_transfer_chunks_max(read.code, slot_chunks) : slot_chunks;
}

static uint32_t extra_chunks(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks)
{
    struct bounded_params read = bounded_params_of(params);
    return read.codes ? ec_extra_chunks(read.code, chunks) : 0;
}

static uint32_t groups(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks)
{
    struct bounded_params read = bounded_params_of(params);
    return read.codes ? ec_groups(read.code, chunks) : 0;
}

/* The same memory, as schemes/ec sees it. */
static struct lh_coding coded(const struct lh_coding *coding)
{
    struct lh_coding of = *coding;
    struct bounded_params read = bounded_params_of(coding->params);
    assert(read.codes);
    memcpy(of.params, read.code, sizeof of.params);
    return of;
}

static void encode(const struct lh_coding *coding, uint32_t group, uint32_t first_row, uint32_t rows)
{
    struct lh_coding of = coded(coding);
    ec_coding.encode(&of, group, first_row, rows);
}

static uint32_t decode(const struct lh_coding *coding, uint32_t group, const uint8_t *chunk_bitmap,
                       const uint8_t *extra_bitmap)
{
    struct lh_coding of = coded(coding);
    struct ec_layout layout = ec_layout_of(of.params, of.chunks);
    struct ec_bitmaps bitmaps = {chunk_bitmap, extra_bitmap};
    return ec_needs_group_met(&layout, &bitmaps, group)
               ? ec_coding.decode(&of, group, chunk_bitmap, extra_bitmap)
               : 0;
}

/* Of a group that is met. */
static uint32_t mark_group(const struct ec_group *group, const uint8_t *chunk_bitmap, uint8_t *recovered)
{
    uint32_t count = 0;
    for (uint32_t p = 0; p < group->size; p++) { /* at most k */
        uint32_t chunk = group->first_chunk + p * group->stride;
        recovered[chunk] = chunk_bitmap[chunk] == 0;
        count += recovered[chunk];
    }
    return count;
}

static uint32_t recoverable(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks,
                            const uint8_t *chunk_bitmap, const uint8_t *extra_bitmap, uint8_t *recovered)
{
    struct bounded_params read = bounded_params_of(params);
    struct ec_layout layout = bounded_layout_of(&read, chunks);
    struct ec_bitmaps bitmaps = {chunk_bitmap, extra_bitmap};
    uint32_t count = 0;
    memset(recovered, 0, chunks);
    for (uint32_t g = 0; g < layout.groups; g++) {
        struct ec_group group = ec_layout_group(&layout, g);
        if (ec_needs_group_met(&layout, &bitmaps, g))
            count += mark_group(&group, chunk_bitmap, recovered);
    }
    return count;
}

const struct lh_scheme_coding bounded_coding = {
    .transfer_chunks_max = transfer_chunks_max,
    .extra_chunks = extra_chunks,
    .groups = groups,
    .encode = encode,
    .decode = decode,
    .recoverable = recoverable,
};
