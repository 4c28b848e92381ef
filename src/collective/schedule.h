/*
 * schedule.h - who sends which blocks to whom in each step of a collective: pure functions of the ranks'
 * number, the rank, the step and the number of blocks (docs/collectives.md).
 *
 * The data of a collective is a row of blocks; the caller chooses their size. Reduce-scatter, all-gather,
 * gather and scatter split it into a part per rank, all-to-all has a row per source. What a rank sends in a
 * step it holds before the step, and no rank both sends and receives a block in one step; a transfer
 * therefore depends only on those of earlier steps that brought its sender these blocks, and nobody has to
 * wait between steps for anything else.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_SCHEDULE_SCHEDULE_H
#define LH_COLLECTIVE_SCHEDULE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "collective/schedule/site_map.h"

/* Ranks and blocks; of an all-to-all, ranks times blocks, too. */
#define SCHEDULE_RANKS_MAX  65536u
#define SCHEDULE_BLOCKS_MAX (1u << 24)

/* Ranks send the number to each other (collective/run/signature.h). */
enum collective {
    COLLECTIVE_BROADCAST = 0,      /* root has all blocks; all ranks get them */
    COLLECTIVE_REDUCE = 1,         /* each rank has all blocks; root gets their sums */
    COLLECTIVE_ALLREDUCE = 2,      /* likewise; all ranks get the sums */
    COLLECTIVE_REDUCE_SCATTER = 3, /* likewise; each rank gets the sums of its part */
    COLLECTIVE_ALLGATHER = 4,      /* each rank has its part; all ranks get all parts */
    COLLECTIVE_GATHER = 5,         /* likewise; root gets all parts */
    COLLECTIVE_SCATTER = 6,        /* root has all parts; each rank gets its own */
    COLLECTIVE_ALLTOALL = 7,       /* each rank has a part for each; each gets its part of all rows */
    COLLECTIVE_BARRIER = 8, /* no data: a transfer's one block says that its sender has been reached */
    COLLECTIVES
};

/* Consecutive blocks. */
struct schedule_extent {
    uint32_t first;
    uint32_t count; /* may be 0 */
};

struct schedule_shape {
    uint32_t ranks;
    uint32_t blocks;            /* of an all-to-all without extents: of each rank's row */
    uint32_t root;              /* of those that have one */
    const struct site_map *map; /* NULL: ranks in their order, all in one site */
    /* The v-variants: a part per rank, of an all-to-all ranks * ranks (source by source), of which a
     * pairwise exchange reads those from and to its rank only. NULL: equal parts. They do not overlap. */
    const struct schedule_extent *extents;
};

struct schedule_transfer {
    uint32_t peer;
    uint32_t first; /* of an all-to-all: source * blocks + block of its row, or as extents say */
    uint32_t count; /* at least 1 */
    bool reduce;    /* the receiver adds the blocks to its own; else it stores them */
};

/* Of a collective of two or more ranks. One that is made of others has no functions of its own. What these
 * call ranks are places of the map, of a shape whose root is a place, too. */
struct schedule {
    const char *name;
    enum collective collective;
    /* Runs backwards: what a rank received, it sends. So a broadcast becomes a reduce, an all-gather a
     * reduce-scatter, a scatter a gather. */
    const struct schedule *reverse_of;
    /* Or one after the other; an all-reduce is a reduce-scatter and an all-gather. */
    const struct schedule *first, *then;
    /* A rank may send and receive a block in one step: it sends its own contribution, which it keeps apart
     * from the sum. The sum of a block is that of the contributions in the order of the places, its own among
     * them, so that it is bitwise the same everywhere. */
    bool exchanges;
    uint32_t (*steps)(const struct schedule_shape *shape);
    /* The index-th transfer that a rank sends in a step; its count may be 0. False: there are no more. */
    bool (*send)(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                 struct schedule_transfer *transfer);
    /* The index-th rank, all of them different, that may send to this one in a step. False: there are no
     * more. */
    bool (*source)(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                   uint32_t *peer);
    /* The index-th of those of send's transfers that go from one of these sources to this rank; its count
     * may be 0. NULL: send's are searched, which is fast where most of a step go to one rank. */
    bool (*between)(const struct schedule_shape *shape, uint32_t from, uint32_t to, uint32_t step,
                    uint32_t index, struct schedule_transfer *transfer);
};

/* A place among the transfers of a step; starts as {0}. */
struct schedule_cursor {
    uint32_t source;
    uint32_t index;
};

/* -LH_EINVAL: a number is out of range. */
int schedule_shape_check(const struct schedule *schedule, const struct schedule_shape *shape);
/* Of a valid shape, as below. 0 for one rank. */
uint32_t schedule_steps(const struct schedule *schedule, const struct schedule_shape *shape);
/* The next of the transfers that a rank sends in a step; false: there are no more. */
bool schedule_next_send(const struct schedule *schedule, const struct schedule_shape *shape, uint32_t rank,
                        uint32_t step, struct schedule_cursor *cursor, struct schedule_transfer *transfer);
/* Likewise of those that it receives. */
bool schedule_next_receive(const struct schedule *schedule, const struct schedule_shape *shape,
                           uint32_t rank, uint32_t step, struct schedule_cursor *cursor,
                           struct schedule_transfer *transfer);
/* The part of a rank; of an all-to-all, what source has for destination. */
struct schedule_extent schedule_part(const struct schedule_shape *shape, uint32_t rank);
struct schedule_extent schedule_pair(const struct schedule_shape *shape, uint32_t source,
                                     uint32_t destination);

#endif
