/*
 * operation_progress.h - an operation at one rank: parts, layout, pieces, and its progress by dependencies
 * alone.
 *
 * A send waits until all receives of earlier steps into its blocks are applied. An arrival is applied (stored
 * or added) after all earlier receives of its blocks, in the order of the schedule: so sums are the same in
 * each run, whatever arrives first. Nothing waits for a step as a whole.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_OPERATION_PROGRESS_H
#define LH_COLLECTIVE_OPERATION_PROGRESS_H

#include <stddef.h>

#include "collective/operation_digest.h"
#include "collective/schedule.h"

/* ---- parts ----------------------------------------------------------------------------------------- */

/*
 * The parts of a v-variant at a rank: what it has for each rank, and what it gets of each, in any
 * sizes, one after the other in its input and its output.
 *
 * A rank knows its own parts alone, so it numbers their blocks by itself: those that it sends, by rank, then
 * those that it receives. Schedules that ask for others' parts do not suit (parts_schedule()).
 */

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

/* ---- layout ---------------------------------------------------------------------------------------- */

/*
 * Where the blocks of a collective are in memory at a rank: in the user's input and output, and in
 * the *work* memory of what only passes through.
 *
 * Elements are distributed evenly over the blocks of a row, so a part per rank has as many blocks as any
 * other, and begins with a block; but for v-variants. The input is only read.
 */

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

/* ---- pieces ---------------------------------------------------------------------------------------- */

/*
 * The messages of a rank in a collective: the transfers of its schedule, cut at blocks.
 *
 * Both ends of a link cut the same, so that the n-th piece that one sends to the other is the n-th that the
 * other expects: its *number*. Pieces are in the order of their steps. Empty ones are left out, but for
 * barriers.
 */

/* Blocks of a piece: they may lie in as many places (LH_PARTS_MAX). */
#define PIECE_BLOCKS_MAX 16u

struct piece {
    uint32_t peer;
    uint32_t number; /* among those of the link, in this direction */
    uint32_t first;  /* blocks */
    uint32_t count;
    uint32_t bytes;
    uint32_t before; /* number of receives in earlier steps */
    bool reduce;     /* the receiver adds it to its own; else it stores it */
};

struct pieces_plan {
    const struct schedule *schedule;
    const struct schedule_shape *shape;
    const struct layout *layout;
    size_t piece_bytes; /* at least the longest block */
};

/* With arrays of NULL they are counted. numbers: twice as many as ranks, of zeros. */
struct pieces {
    struct piece *sends;
    struct piece *receives;
    uint32_t *numbers;
    uint32_t send_count;
    uint32_t receive_count;
    uint64_t blocks_received; /* sum of the receives' counts */
};

/* Counts, or writes, all pieces of layout->rank; the counts start as 0. False: there are too many. */
bool pieces_make(const struct pieces_plan *plan, struct pieces *pieces);

/* ---- progress -------------------------------------------------------------------------------------- */

#define PROGRESS_NONE UINT32_MAX

/* Who waits: sends and receives, each in one list at a time. */
struct progress_list {
    uint32_t first;
    uint32_t last;
};

struct progress_receive {
    struct progress_list waiting; /* for it to be applied */
    uint32_t entry;               /* in `follows`, one per block */
};

/* Arrays are the caller's: by send, receive, block, and block received. */
struct progress {
    const struct piece *sends;
    const struct piece *receives;
    struct progress_receive *states; /* by receive */
    uint32_t *next_of_sends;         /* in lists */
    uint32_t *next_of_receives;
    uint32_t *next;          /* by block: the next receive of it to be applied */
    uint32_t *reduced_until; /* by block: it is passed on to be added, after so many receives */
    bool *received;          /* by block: one has been applied */
    uint32_t *follows;       /* by receive and block: the receive after it */
    uint32_t send_count;
    uint32_t receive_count;
    uint32_t applied;
    struct progress_list ready; /* sends */
    struct progress_list due;   /* receives that may be applied */
};

/* The pointers and counts are set. blocks: of all rows. */
void progress_begin(struct progress *progress, uint32_t blocks);
/* The next send that may leave; false: none now. */
bool progress_next_send(struct progress *progress, uint32_t *send);
/* A piece has arrived, once. */
void progress_on_arrival(struct progress *progress, uint32_t receive);
/* The next arrival to apply; then call on_applied. False: none now. */
bool progress_next_due(struct progress *progress, uint32_t *receive);
void progress_on_applied(struct progress *progress, uint32_t receive);
/* Whether a receive completes the sum of the index-th of its blocks: all contributions are in it. */
bool progress_is_final(const struct progress *progress, uint32_t receive, uint32_t index);
/* Whether all receives are applied. */
bool progress_is_complete(const struct progress *progress);

/* ---- past ------------------------------------------------------------------------------------------ */

/*
 * What a rank called in operations that have ended without error: a rank whose signature comes for
 * one of them disagrees, as no other rank was waited for, and has to be told.
 */

/* Operations that are remembered; who disagrees about an earlier one waits until its deadline. */
#define PAST_OPERATIONS 256u

struct past {
    struct past_operation {
        bool known;
        uint32_t number;
        struct signature signature;
    } of[PAST_OPERATIONS]; /* by number, modulo */
};

void past_note(struct past *past, uint32_t number, const struct signature *signature);
/* NULL: it is not remembered, or has failed. */
const struct signature *past_find(const struct past *past, uint32_t number);

#endif
