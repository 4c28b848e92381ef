/*
 * parts.h - the parts of a v-variant at a rank: what it has for each rank, and what it gets of each, in any
 * sizes, one after the other in its input and its output.
 *
 * A rank knows its own parts alone, so it numbers their blocks by itself: those that it sends, by rank, then
 * those that it receives. Schedules that ask for others' parts do not suit (parts_schedule()).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_RUN_PARTS_H
#define LH_COLLECTIVE_RUN_PARTS_H

#include <stddef.h>

#include "collective/schedule/schedule.h"

struct part {
    uint64_t before; /* elements before it in the buffer */
    uint64_t elements;
    uint32_t first; /* block; its own part is copied, and has none */
    uint32_t blocks;
};

struct parts {
    uint32_t ranks;
    struct part *in; /* by rank */
    struct part *out;
    struct schedule_extent *extents; /* of schedule_shape */
    uint32_t in_blocks;              /* blocks of the input; those of the output follow */
    uint32_t blocks;                 /* of both */
    uint64_t elements;               /* likewise, with its own part */
    uint64_t per_block;              /* elements of a block that is not the last of its part */
};

struct parts_request {
    enum collective collective;
    uint32_t rank;
    uint32_t ranks;
    uint32_t root;
    size_t count;             /* of a gather, of its input; of a scatter, of its output */
    const size_t *in_counts;  /* by rank; of a scatter at its root, and an all-to-all */
    const size_t *out_counts; /* of a gather at its root, and an all-to-all */
    uint64_t per_block;
};

/* Bytes of memory that they need. */
size_t parts_memory(const struct parts_request *request);
/* Makes the parts of a rank in memory of zeros, which stays the caller's. -LH_EINVAL: a count is out of
 * range, or there are two different ones for its own part. */
int parts_make(const struct parts_request *request, void *memory, struct parts *parts);

/* "gatherv"; NULL: the collective has no v-variant. */
const char *parts_collective_name(enum collective collective);
/* The schedule of a v-variant: each part goes from its source to its destination at once. */
const struct schedule *parts_schedule(enum collective collective);

/* The part of a block. */
const struct part *parts_find(const struct parts *parts, uint32_t block);
/* Elements before a block of a part in its buffer; in it. */
uint64_t parts_before(const struct parts *parts, const struct part *part, uint32_t block);
uint64_t parts_elements(const struct parts *parts, const struct part *part, uint32_t block);

#endif
