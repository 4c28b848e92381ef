/*
 * layout.h - where the blocks of a collective are in memory at a rank: in the user's input and output, and in
 * the *work* memory of what only passes through.
 *
 * Elements are distributed evenly over the blocks of a row, so a part per rank has as many blocks as any
 * other, and begins with a block; but for v-variants (parts.h). The input is only read.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_RUN_LAYOUT_H
#define LH_COLLECTIVE_RUN_LAYOUT_H

#include <stddef.h>

#include "collective/run/parts.h"
#include "collective/schedule/schedule.h"

/* Elements of a row: more would exceed 64 bits of bytes. */
#define LAYOUT_ELEMENTS_MAX (UINT64_C(1) << 60)

struct layout {
    enum collective collective;
    uint32_t rank;
    uint32_t ranks;
    uint32_t root;
    uint32_t blocks;   /* of a row */
    uint64_t elements; /* likewise */
    size_t element_bytes;
    const uint8_t *in;
    uint8_t *out;
    uint8_t *work;             /* layout_work_bytes() */
    const struct parts *parts; /* of a v-variant, with `elements` of all; NULL: equal ones */
};

/* Elements of a row of a collective with `count` elements, or so many a part. 0: too many. */
uint64_t layout_elements(enum collective collective, uint32_t ranks, uint64_t count);
/* Blocks of a row, each of at most block_bytes, which an element fits. 0: more than a schedule takes. */
uint32_t layout_blocks(const struct layout *layout, size_t block_bytes);
/* Of all rows: numbers of blocks are below it. */
uint32_t layout_blocks_of_all(const struct layout *layout);
/* Memory that this rank needs besides the user's; forwards: the schedule sends blocks on that are for others
 * alone. */
uint64_t layout_work_bytes(const struct layout *layout, bool forwards);
/* Bytes of a block. */
size_t layout_bytes(const struct layout *layout, uint32_t block);
/* Where a block is that the rank had from the start; where one goes that it receives. */
const uint8_t *layout_from(const struct layout *layout, uint32_t block);
uint8_t *layout_to(const struct layout *layout, uint32_t block);
/* What is in the output although it is not received: bytes to copy from *from to *to; 0: none. */
uint64_t layout_own(const struct layout *layout, const uint8_t **from, uint8_t **to);

#endif
