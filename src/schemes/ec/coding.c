/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/coding.h"

#include <assert.h>
#include <string.h>

#include <longhaul/code.h>

#include "schemes/ec/layout.h"

static_assert((int)EC_XOR == (int)LH_CODE_XOR && (int)EC_MDS == (int)LH_CODE_MDS, "the same numbers");

/* A group, and how much of each of its chunks there is. */
struct ec_part {
    struct ec_layout layout;
    struct ec_group group;
    size_t tail; /* bytes of its last chunk */
};

static struct ec_part part_of(const struct lh_coding *coding, uint32_t group)
{
    struct ec_part part = {.layout = ec_layout_of(coding->params, coding->chunks),
                           .tail = coding->chunk_bytes};
    part.group = ec_layout_group(&part.layout, group);
    uint32_t last = part.group.first_chunk + (part.group.size - 1) * part.group.stride;
    if (last == coding->chunks - 1)
        part.tail = coding->bytes - (uint64_t)last * coding->chunk_bytes;
    assert(part.tail >= 1 && part.tail <= coding->chunk_bytes);
    return part;
}

static size_t chunk_at(const struct lh_coding *coding, const struct ec_part *part, uint32_t position)
{
    return (size_t)(part->group.first_chunk + position * part->group.stride) * coding->chunk_bytes;
}

static uint8_t *row_at(const struct lh_coding *coding, const struct ec_part *part, uint32_t row)
{
    return coding->extra +
           (size_t)(part->group.first_place + row * part->group.stride) * coding->chunk_bytes;
}

/* The code of the first `size` chunks of the group: all, or without the last. With xor a class can be left
 * without data then; it has no row. */
static struct lh_code code_of(const struct ec_part *part, uint32_t size)
{
    uint32_t rows = ec_group_rows_max(&part->layout, &part->group);
    if (part->layout.params.kind == EC_XOR && rows > size)
        rows = size;
    return (struct lh_code){(enum lh_code_kind)part->layout.params.kind, size, rows};
}

/* ---- encoding ---------------------------------------------------------------------------------------- */

/* Rows of columns from … to - 1, of the group's first `size` chunks. */
static void encode_columns(const struct lh_coding *coding, const struct ec_part *part, uint32_t size,
                           uint32_t first_row, uint32_t rows, size_t from, size_t to)
{
    const void *data[EC_ROWS_MAX];
    void *parity[EC_ROWS_MAX];
    struct lh_code code = code_of(part, size);
    uint32_t coded = 0;
    for (uint32_t p = 0; p < size; p++)
        data[p] = coding->message + chunk_at(coding, part, p) + from;
    for (uint32_t r = first_row; r < first_row + rows; r++) {
        uint8_t *row = row_at(coding, part, r) + from;
        if (r < code.m && size > 0)
            parity[coded++] = row;
        else
            memset(row, 0, to - from);
    }
    if (coded > 0 && to > from)
        lh_encode_rows(&code, first_row, coded, data, parity, to - from);
}

static void encode(const struct lh_coding *coding, uint32_t group, uint32_t first_row, uint32_t rows)
{
    struct ec_part part = part_of(coding, group);
    assert(rows >= 1 && first_row + rows <= ec_group_rows_max(&part.layout, &part.group));
    encode_columns(coding, &part, part.group.size, first_row, rows, 0, part.tail);
    encode_columns(coding, &part, part.group.size - 1, first_row, rows, part.tail, coding->chunk_bytes);
}

/* ---- decoding ---------------------------------------------------------------------------------------- */

/* Which chunks of the group are there: its first `size` data chunks, then the rows. Returns how many data
 * chunks are missing. */
static uint32_t presence(const struct ec_part *part, uint32_t size, const uint8_t *chunk_bitmap,
                         const uint8_t *extra_bitmap, uint8_t *present)
{
    struct lh_code code = code_of(part, size);
    uint32_t missing = 0;
    for (uint32_t p = 0; p < size; p++) {
        present[p] = chunk_bitmap[part->group.first_chunk + p * part->group.stride] != 0;
        missing += !present[p];
    }
    for (uint32_t r = 0; r < code.m; r++)
        present[size + r] =
            extra_bitmap != NULL && extra_bitmap[part->group.first_place + r * part->group.stride] != 0;
    return missing;
}

static void decode_columns(const struct lh_coding *coding, const struct ec_part *part, uint32_t size,
                           const uint8_t *present, size_t from, size_t to)
{
    void *chunks[EC_ROWS_MAX];
    struct lh_code code = code_of(part, size);
    for (uint32_t p = 0; p < size; p++)
        chunks[p] = coding->room + chunk_at(coding, part, p) + from;
    for (uint32_t r = 0; r < code.m; r++)
        chunks[size + r] = row_at(coding, part, r) + from;
    int failed = lh_decode(&code, chunks, present, to - from);
    assert(!failed); /* the receiver's machine had looked before it said that all is there */
    (void)failed;
}

static uint32_t decode(const struct lh_coding *coding, uint32_t group, const uint8_t *chunk_bitmap,
                       const uint8_t *extra_bitmap)
{
    struct ec_part part = part_of(coding, group);
    uint8_t present[EC_ROWS_MAX];
    uint32_t missing = presence(&part, part.group.size, chunk_bitmap, extra_bitmap, present);
    if (missing == 0)
        return 0;
    decode_columns(coding, &part, part.group.size, present, 0, part.tail);
    uint32_t shorter = part.group.size - 1;
    if (part.tail < coding->chunk_bytes && shorter > 0 &&
        presence(&part, shorter, chunk_bitmap, extra_bitmap, present) > 0)
        decode_columns(coding, &part, shorter, present, part.tail, coding->chunk_bytes);
    return missing;
}

const struct lh_scheme_coding ec_coding = {
    .transfer_chunks_max = ec_transfer_chunks_max,
    .extra_chunks = ec_extra_chunks,
    .groups = ec_groups,
    .encode = encode,
    .decode = decode,
};
