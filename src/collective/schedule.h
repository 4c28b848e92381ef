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
#ifndef LH_COLLECTIVE_SCHEDULE_H
#define LH_COLLECTIVE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

/* ---- site map -------------------------------------------------------------------------------------- */

/*
 * An order of the ranks, and the sites in it. A schedule counts *places*: rank 0 of its
 * formulas is the rank at place 0. So any assignment of ranks to sites works, and any order of a ring.
 */

/* Ranks of a site have consecutive places. The tables are the caller's. */
struct site_map {
    const uint32_t *rank_at;  /* of a place */
    const uint32_t *place_of; /* of a rank: the inverse */
    const uint32_t *site_of;  /* of a place */
    const uint32_t *first;    /* place of each site; one entry more: the number of ranks */
    uint32_t sites;
    uint32_t largest; /* ranks of a site */
};

/* Numbers that the tables of a map need. */
static inline uint32_t site_map_numbers(uint32_t ranks)
{
    return 4 * ranks + 1;
}

/* Makes the map of ranks whose sites are given by any numbers: sites in the order of their first ranks, ranks
 * of a site in their order. order: all ranks; NULL: 0, 1, 2 … numbers: site_map_numbers(ranks) of them, which
 * the map refers to. */
void site_map_build(struct site_map *map, const uint32_t *site_of_rank, const uint32_t *order,
                    uint32_t ranks, uint32_t *numbers);

/* ---- schedule -------------------------------------------------------------------------------------- */

/* Ranks and blocks; of an all-to-all, ranks times blocks, too. */
#define SCHEDULE_RANKS_MAX  65536u
#define SCHEDULE_BLOCKS_MAX (1u << 24)

/* Ranks send the number to each other (collective/operation_digest.h). */
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

/* ---- sites ----------------------------------------------------------------------------------------- */

/* The sites of a shape, counted in places; without a map there is one. */

static inline uint32_t sites_of(const struct schedule_shape *shape)
{
    return shape->map ? shape->map->sites : 1;
}

static inline uint32_t site_of(const struct schedule_shape *shape, uint32_t place)
{
    return shape->map ? shape->map->site_of[place] : 0;
}

/* The place of its first rank. */
static inline uint32_t site_first(const struct schedule_shape *shape, uint32_t site)
{
    return shape->map ? shape->map->first[site] : 0;
}

static inline uint32_t site_size(const struct schedule_shape *shape, uint32_t site)
{
    return shape->map ? shape->map->first[site + 1] - shape->map->first[site] : shape->ranks;
}

static inline uint32_t largest_site(const struct schedule_shape *shape)
{
    return shape->map ? shape->map->largest : shape->ranks;
}

/* A collective of a site's ranks alone, whose places are counted from its first. */
static inline struct schedule_shape site_shape(const struct schedule_shape *shape, uint32_t site)
{
    return (struct schedule_shape){.ranks = site_size(shape, site), .blocks = shape->blocks};
}

/* ---- split ----------------------------------------------------------------------------------------- */

/* Equal parts of blocks, and the numbers that schedules of powers of two need. */

/* Parts first to first + count - 1 of an extent that is split into equal parts: their sizes differ by a
 * block at most. */
static inline struct schedule_extent split(struct schedule_extent whole, uint32_t parts, uint32_t first,
                                           uint32_t count)
{
    uint32_t begin = (uint32_t)((uint64_t)whole.count * first / parts);
    uint32_t end = (uint32_t)((uint64_t)whole.count * (first + count) / parts);
    return (struct schedule_extent){whole.first + begin, end - begin};
}

/* Of value > 0. */
static inline uint32_t log2_floor(uint32_t value)
{
    return 31 - (uint32_t)__builtin_clz(value);
}

static inline uint32_t log2_ceil(uint32_t value)
{
    return value > 1 ? log2_floor(value - 1) + 1 : 0;
}

/* (rank + distance) mod ranks, of distance <= ranks. */
static inline uint32_t rank_after(const struct schedule_shape *shape, uint32_t rank, uint32_t distance)
{
    uint32_t sum = rank + distance;
    return sum < shape->ranks ? sum : sum - shape->ranks;
}

static inline uint32_t rank_before(const struct schedule_shape *shape, uint32_t rank, uint32_t distance)
{
    return rank >= distance ? rank - distance : rank + shape->ranks - distance;
}

/* The rank at a place. */
static inline uint32_t rank_at(const struct schedule_shape *shape, uint32_t place)
{
    return shape->map ? shape->map->rank_at[place] : place;
}

/* schedule_part() and schedule_pair() of places. */
static inline struct schedule_extent part_at(const struct schedule_shape *shape, uint32_t place)
{
    return schedule_part(shape, rank_at(shape, place));
}

static inline struct schedule_extent pair_at(const struct schedule_shape *shape, uint32_t source,
                                             uint32_t destination)
{
    return schedule_pair(shape, rank_at(shape, source), rank_at(shape, destination));
}

/* The index-th extent of the parts of consecutive places, place 0 after the last: equal parts have one, or
 * two where they wrap around; given extents, or those of a map, are each by itself. False: there are no
 * more. */
static inline bool parts_at(const struct schedule_shape *shape, uint32_t first, uint32_t count,
                            uint32_t index, struct schedule_extent *extent)
{
    uint32_t until_last = count < shape->ranks - first ? count : shape->ranks - first;
    struct schedule_extent all = {0, shape->blocks};
    if (shape->extents || shape->map) {
        if (index < count)
            *extent = part_at(shape, rank_after(shape, first, index));
        return index < count;
    }
    if (index == 0)
        *extent = split(all, shape->ranks, first, until_last);
    else
        *extent = split(all, shape->ranks, 0, count - until_last);
    return index < 2;
}

/* Sets what a transfer copies, or reduces, and returns true. */
static inline bool transfer_set(struct schedule_transfer *transfer, uint32_t peer,
                                struct schedule_extent extent, bool reduce)
{
    *transfer = (struct schedule_transfer){
        .peer = peer, .first = extent.first, .count = extent.count, .reduce = reduce};
    return true;
}

#endif
