/*
 * pieces.h - the messages of a rank in a collective: the transfers of its schedule, cut at blocks.
 *
 * Both ends of a link cut the same, so that the n-th piece that one sends to the other is the n-th that the
 * other expects: its *number*. Pieces are in the order of their steps. Empty ones are left out, but for
 * barriers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_RUN_PIECES_H
#define LH_COLLECTIVE_RUN_PIECES_H

#include "collective/run/layout.h"

/* Blocks of a piece: they may lie in as many places (LH_PARTS_MAX). */
#define PIECE_BLOCKS_MAX 16u
/* Pieces of a rank, in each direction: their numbers are in tags. */
#define PIECES_MAX (1u << 28)

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

#endif
