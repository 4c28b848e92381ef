/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/schedule_bounds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "collective/schedules.h"
#include "support/sanitized.h"

#define RANKS_ALL  33u /* up to here with every number of blocks */
#define RANKS_SOME 64u /* up to here with a seventh of them, and those near the number of ranks */

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

static uint64_t floor_log2(uint64_t value)
{
    return 63 - (uint64_t)__builtin_clzll(value);
}

static uint64_t one(const struct schedule_shape *s)
{
    (void)s;
    return 1;
}

static uint64_t all(const struct schedule_shape *s)
{
    return s->blocks;
}

/* All but the least part. */
static uint64_t but_one(const struct schedule_shape *s)
{
    return s->blocks - s->blocks / s->ranks;
}

static uint64_t twice_but_one(const struct schedule_shape *s)
{
    return 2 * but_one(s);
}

static uint64_t doublings(const struct schedule_shape *s)
{
    return s->ranks > 1 ? floor_log2(s->ranks - 1) + 1 : 0;
}

static uint64_t down_the_chain(const struct schedule_shape *s)
{
    return s->ranks - 2 + s->blocks;
}

/* RDMC 4.4 for powers of two; as few for any number. */
static uint64_t pipeline_steps(const struct schedule_shape *s)
{
    return doublings(s) + s->blocks - 1;
}

/* A root's, who sends in each step. */
static uint64_t all_each_step(const struct schedule_shape *s)
{
    return s->blocks * doublings(s);
}

/* The half farthest from the root, at most. */
static uint64_t half(const struct schedule_shape *s)
{
    uint64_t p = s->ranks > 1 ? 1ull << (doublings(s) - 1) : 0;
    return ceil_div(s->blocks * p, s->ranks);
}

static uint64_t around(const struct schedule_shape *s)
{
    return s->ranks - 1;
}

static uint64_t twice_around(const struct schedule_shape *s)
{
    return 2 * around(s);
}

static uint64_t greatest_part(const struct schedule_shape *s)
{
    return ceil_div(s->blocks, s->ranks);
}

static bool is_power(const struct schedule_shape *s)
{
    return (s->ranks & (s->ranks - 1)) == 0;
}

static uint64_t halving_steps(const struct schedule_shape *s)
{
    return 2 * floor_log2(s->ranks) + (is_power(s) ? 0 : 2);
}

/* 2 (p - 1) / p of the blocks, each exchange rounded up; a folded rank's, too. */
static uint64_t halving_sent(const struct schedule_shape *s)
{
    uint64_t p = 1ull << floor_log2(s->ranks), sent = is_power(s) ? 0 : s->blocks;
    for (uint64_t distance = 1; distance < p; distance *= 2)
        sent += 2 * ceil_div(s->blocks * distance, p);
    return sent;
}

static uint64_t twice_doublings(const struct schedule_shape *s)
{
    return 2 * doublings(s);
}

/* Parts that a rank sends in a step of Bruck's all-gather. */
static uint64_t bruck_parts(const struct schedule_shape *s, uint64_t distance)
{
    return distance < s->ranks - distance ? distance : s->ranks - distance;
}

/* n - 1 parts, those of each step rounded up. */
static uint64_t bruck_sent(const struct schedule_shape *s)
{
    uint64_t sent = 0;
    for (uint64_t distance = 1; distance < s->ranks; distance *= 2)
        sent += ceil_div(s->blocks * bruck_parts(s, distance), s->ranks);
    return sent;
}

static uint64_t bruck_twice_sent(const struct schedule_shape *s)
{
    return 2 * bruck_sent(s);
}

static uint64_t bruck_link(const struct schedule_shape *s)
{
    uint64_t parts = 0;
    for (uint64_t distance = 1; distance < s->ranks; distance *= 2)
        if (bruck_parts(s, distance) > parts)
            parts = bruck_parts(s, distance);
    return ceil_div(s->blocks * parts, s->ranks);
}

/* Partners of the two halves may be the same: 2^k ranks on, and 2^j back. */
static uint64_t bruck_twice_link(const struct schedule_shape *s)
{
    return 2 * bruck_link(s);
}

/* Numbers below n that have a bit. */
static uint64_t with_bit(const struct schedule_shape *s, uint32_t bit)
{
    uint64_t count = 0;
    for (uint32_t way = 1; way < s->ranks; way++)
        count += way >> bit & 1;
    return count;
}

static uint64_t bruck_ways(const struct schedule_shape *s)
{
    uint64_t ways = 0;
    for (uint32_t bit = 0; bit < doublings(s); bit++)
        ways += with_bit(s, bit);
    return ways * greatest_part(s);
}

static uint64_t bruck_ways_of_step(const struct schedule_shape *s)
{
    uint64_t ways = 0;
    for (uint32_t bit = 0; bit < doublings(s); bit++)
        ways = with_bit(s, bit) > ways ? with_bit(s, bit) : ways;
    return ways * greatest_part(s);
}

static uint64_t sites(const struct schedule_shape *s)
{
    return s->map ? s->map->sites : 1;
}

static uint64_t largest(const struct schedule_shape *s)
{
    return s->map ? s->map->largest : s->ranks;
}

static uint64_t smallest(const struct schedule_shape *s)
{
    uint64_t minimum = s->ranks;
    for (uint32_t site = 0; s->map && site < s->map->sites; site++)
        if (s->map->first[site + 1] - s->map->first[site] < minimum)
            minimum = s->map->first[site + 1] - s->map->first[site];
    return minimum;
}

static uint64_t ceil_log2(uint64_t value)
{
    return value > 1 ? floor_log2(value - 1) + 1 : 0;
}

/* Until leaders have what they pass on: l steps for two, one more for more sites, l more with pairs. */
static uint64_t hybrid_steps(const struct schedule_shape *s)
{
    uint64_t dimensions = floor_log2(sites(s)), lead = dimensions;
    if (sites(s) != 1ull << dimensions)
        lead = 2 * dimensions + 1;
    else if (dimensions > 1)
        lead = dimensions + 1;
    return lead + ceil_log2(largest(s)) + s->blocks - 1;
}

/* A root's, which sends across and inside; each others' pipelines have an end, too. */
static uint64_t hybrid_sent(const struct schedule_shape *s)
{
    uint64_t across = sites(s) > 1 ? ceil_log2(sites(s)) + s->blocks - 1 : 0;
    return across + (largest(s) > 1 ? ceil_log2(largest(s)) + s->blocks - 1 : 0);
}

static uint64_t twice(const struct schedule_shape *s)
{
    return 2 * s->blocks;
}

static uint64_t to_each(const struct schedule_shape *s)
{
    return (s->ranks - 1) * (uint64_t)s->blocks;
}

static uint64_t tree_steps(const struct schedule_shape *s)
{
    return floor_log2(s->ranks - 1) + ceil_div(s->blocks, 2);
}

static uint64_t tree_twice_steps(const struct schedule_shape *s)
{
    return 2 * tree_steps(s);
}

/* Two children in a tree; of the other a leaf. */
static uint64_t tree_sent(const struct schedule_shape *s)
{
    return s->ranks > 2 ? 2 * ceil_div(s->blocks, 2) : s->blocks;
}

static uint64_t tree_reduced(const struct schedule_shape *s)
{
    return s->blocks;
}

static uint64_t tree_twice_sent(const struct schedule_shape *s)
{
    return tree_sent(s) + tree_reduced(s);
}

static uint64_t factor(uint64_t ranks)
{
    if (ranks % 4 == 0)
        return 4;
    for (uint64_t f = 2; f < ranks; f++)
        if (ranks % f == 0)
            return f;
    return ranks;
}

static uint64_t factors(const struct schedule_shape *s)
{
    uint64_t count = 0;
    for (uint64_t left = s->ranks; left > 1; left /= factor(left))
        count++;
    return count;
}

static uint64_t twice_factors(const struct schedule_shape *s)
{
    return 2 * factors(s);
}

/* n - 1 parts, those of each transfer rounded up. */
static uint64_t bcube_sent(const struct schedule_shape *s)
{
    uint64_t sent = 0;
    for (uint64_t group = 1; group < s->ranks; group *= factor(s->ranks / group))
        sent += (factor(s->ranks / group) - 1) * ceil_div(s->blocks * group, s->ranks);
    return sent;
}

static uint64_t bcube_twice_sent(const struct schedule_shape *s)
{
    return 2 * bcube_sent(s);
}

static uint64_t bcube_link(const struct schedule_shape *s)
{
    uint64_t maximum = 0;
    for (uint64_t group = 1; group < s->ranks; group *= factor(s->ranks / group))
        maximum = ceil_div(s->blocks * group, s->ranks);
    return maximum;
}

static uint64_t bcube_twice_link(const struct schedule_shape *s)
{
    return 2 * bcube_link(s);
}

static uint64_t hierarchical_steps(const struct schedule_shape *s)
{
    return 2 * ceil_log2(largest(s)) + (sites(s) > 1 ? 2 : 0);
}

/* In the site as Bruck; across, a share, and what it owns of it to each site. */
static uint64_t hierarchical_sent(const struct schedule_shape *s)
{
    uint64_t inside = 0;
    for (uint32_t site = 0; site < sites(s); site++) {
        uint32_t size = s->map ? s->map->first[site + 1] - s->map->first[site] : s->ranks;
        uint64_t local = bruck_sent(&(struct schedule_shape){.ranks = size, .blocks = s->blocks});
        inside = local > inside ? local : inside;
    }
    if (sites(s) == 1)
        return 2 * inside;
    uint64_t share = ceil_div(s->blocks, smallest(s)), cells = ceil_div(largest(s), smallest(s)) + 1;
    uint64_t piece = ceil_div(ceil_div(s->blocks, largest(s)), sites(s)), pieces = cells * piece;
    return 2 * inside + share + (sites(s) - 1) * (pieces < share ? pieces : share);
}

/* Its sums of what others own, and all of what it does not. */
static uint64_t hierarchical_into(const struct schedule_shape *s)
{
    uint64_t piece = ceil_div(ceil_div(s->blocks, largest(s)), sites(s)), owned = largest(s) * piece;
    return s->blocks + (sites(s) - 1) * (owned < s->blocks ? owned : s->blocks);
}

static uint64_t transpose_steps(const struct schedule_shape *s)
{
    return largest(s) - 1 + sites(s) - 1;
}

/* In the site all that others of it send on; across, for all ranks of the site. */
static uint64_t transpose_sent(const struct schedule_shape *s)
{
    uint64_t rows = 0;
    for (uint32_t site = 0; site < sites(s); site++)
        rows += ceil_div(s->map ? s->map->first[site + 1] - s->map->first[site] : s->ranks, smallest(s));
    uint64_t inside = s->ranks, across = sites(s) > 1 ? rows * largest(s) : 0;
    return (inside + across) * greatest_part(s);
}

static uint64_t transpose_link(const struct schedule_shape *s)
{
    uint64_t rows = 0;
    for (uint32_t site = 0; site < sites(s); site++)
        rows += ceil_div(s->map ? s->map->first[site + 1] - s->map->first[site] : s->ranks, smallest(s));
    return (rows > largest(s) ? rows : largest(s)) * greatest_part(s);
}

/* What all others have for the ranks of the site: each part once. */
static uint64_t transpose_into(const struct schedule_shape *s)
{
    return largest(s) * (s->ranks - smallest(s)) * greatest_part(s);
}

static const struct schedule_bounds BOUNDS[] = {
    {COLLECTIVE_ALLREDUCE, "ring", twice_around, twice_but_one, twice_but_one, 1, NULL},
    {COLLECTIVE_ALLREDUCE, "halving-doubling", halving_steps, halving_sent, all, 1, NULL},
    {COLLECTIVE_REDUCE_SCATTER, "ring", around, but_one, but_one, 1, NULL},
    {COLLECTIVE_ALLGATHER, "ring", around, but_one, but_one, 1, NULL},
    {COLLECTIVE_ALLTOALL, "pairwise", around, but_one, greatest_part, 1, NULL},
    {COLLECTIVE_BROADCAST, "binomial-pipeline", pipeline_steps, pipeline_steps, all, 1, NULL},
    {COLLECTIVE_REDUCE, "binomial-pipeline", pipeline_steps, all, all, 1, NULL},
    {COLLECTIVE_BROADCAST, "binomial-tree", doublings, all_each_step, all, 1, NULL},
    {COLLECTIVE_BROADCAST, "chain", down_the_chain, all, all, 1, NULL},
    {COLLECTIVE_REDUCE, "binomial-tree", doublings, all, all, 1, NULL},
    {COLLECTIVE_REDUCE, "chain", down_the_chain, all, all, 1, NULL},
    {COLLECTIVE_SCATTER, "binomial-tree", doublings, but_one, half, 1, NULL},
    {COLLECTIVE_GATHER, "binomial-tree", doublings, half, half, 1, NULL},
    {COLLECTIVE_ALLREDUCE, "bruck", twice_doublings, bruck_twice_sent, bruck_twice_link, 1, NULL},
    {COLLECTIVE_REDUCE_SCATTER, "bruck", doublings, bruck_sent, bruck_link, 1, NULL},
    {COLLECTIVE_ALLGATHER, "bruck", doublings, bruck_sent, bruck_link, 1, NULL},
    {COLLECTIVE_ALLTOALL, "bruck", doublings, bruck_ways, bruck_ways_of_step, 1, NULL},
    {COLLECTIVE_ALLREDUCE, "direct", one, to_each, all, 0, NULL},
    {COLLECTIVE_ALLREDUCE, "bcube", twice_factors, bcube_twice_sent, bcube_twice_link, 0, NULL},
    {COLLECTIVE_REDUCE_SCATTER, "bcube", factors, bcube_sent, bcube_link, 0, NULL},
    {COLLECTIVE_ALLGATHER, "bcube", factors, bcube_sent, bcube_link, 0, NULL},
    {COLLECTIVE_ALLREDUCE, "double-tree", tree_twice_steps, tree_twice_sent, twice, 2, NULL},
    {COLLECTIVE_BROADCAST, "double-tree", tree_steps, tree_sent, all, 2, NULL},
    {COLLECTIVE_REDUCE, "double-tree", tree_steps, tree_reduced, all, 2, NULL},
    {COLLECTIVE_ALLREDUCE, "hierarchical", hierarchical_steps, hierarchical_sent, twice, 0,
     hierarchical_into},
    {COLLECTIVE_BROADCAST, "sequential", around, to_each, all, 1, NULL},
    {COLLECTIVE_REDUCE, "sequential", around, all, all, 1, NULL},
    {COLLECTIVE_SCATTER, "sequential", around, but_one, greatest_part, 1, NULL},
    {COLLECTIVE_GATHER, "sequential", around, greatest_part, greatest_part, 1, NULL},
    {COLLECTIVE_BROADCAST, "hybrid", hybrid_steps, hybrid_sent, all, 2, all},
    {COLLECTIVE_REDUCE, "hybrid", hybrid_steps, all, all, 2, NULL},
    {COLLECTIVE_ALLTOALL, "transpose", transpose_steps, transpose_sent, transpose_link, 0, transpose_into},
    {COLLECTIVE_BARRIER, "dissemination", doublings, doublings, one, 1, NULL},
};

const struct schedule_bounds *schedule_bounds_of(const struct schedule *schedule)
{
    for (size_t i = 0; i < sizeof BOUNDS / sizeof BOUNDS[0]; i++)
        if (BOUNDS[i].collective == schedule->collective && strcmp(BOUNDS[i].name, schedule->name) == 0)
            return &BOUNDS[i];
    fail_msg("%s %s: no bounds are known (add them)", collective_name(schedule->collective),
             schedule->name);
    return NULL;
}

static void within(const char *what, uint64_t value, uint64_t bound, const struct schedule *schedule,
                   const struct schedule_shape *shape)
{
    if (value > bound)
        fail_msg("%s %s, %u ranks, %u blocks, root %u, %u sites: %s: %llu, at most %llu",
                 collective_name(schedule->collective), schedule->name, shape->ranks, shape->blocks,
                 shape->root, (unsigned)sites(shape), what, (unsigned long long)value,
                 (unsigned long long)bound);
}

struct schedule_counts schedule_check_bounds(const struct schedule *schedule,
                                             const struct schedule_shape *shape)
{
    struct schedule_counts counts;
    const struct schedule_bounds *bounds = schedule_bounds_of(schedule);
    assert_int_equal(schedule_shape_check(schedule, shape), 0);
    const char *finding = schedule_check(schedule, shape, &counts);
    if (finding)
        fail_msg("%s %s, %u ranks, %u blocks, root %u, %u sites: %s", collective_name(schedule->collective),
                 schedule->name, shape->ranks, shape->blocks, shape->root, (unsigned)sites(shape), finding);
    uint64_t steps = shape->ranks > 1 ? bounds->steps(shape) : 0;
    if (counts.steps < steps)
        fail_msg("%s: %u steps, bound %llu", schedule->name, counts.steps, (unsigned long long)steps);
    within("steps", counts.steps, steps, schedule, shape);
    if (shape->extents)
        return counts;
    within("blocks sent by a rank", counts.sent_max, bounds->sent(shape), schedule, shape);
    within("blocks of a link", counts.link_max, bounds->link(shape), schedule, shape);
    if (bounds->peers)
        within("peers in a step", counts.peers_max, bounds->peers, schedule, shape);
    if (bounds->site && shape->map)
        within("blocks into a site", counts.site_max, bounds->site(shape), schedule, shape);
    return counts;
}

void schedule_map_of(struct schedule_map *map, uint32_t ranks, uint32_t site, bool scattered)
{
    uint32_t sites_of_rank[SCHEDULE_MAP_RANKS];
    struct lh_prng prng;
    lh_prng_seed(&prng, site);
    assert_in_range(ranks, 1, SCHEDULE_MAP_RANKS);
    for (uint32_t rank = 0; rank < ranks; rank++)
        sites_of_rank[rank] =
            scattered ? (uint32_t)lh_prng_below(&prng, (ranks + site - 1) / site) : rank / site;
    site_map_build(&map->map, sites_of_rank, NULL, ranks, map->numbers);
}

/* Any root has its turn, and sites of any size, also scattered, also none. */
static void check_sites(const struct schedule *schedule, uint32_t ranks, uint32_t blocks)
{
    struct schedule_map map;
    struct schedule_shape shape = {.ranks = ranks, .blocks = blocks, .root = blocks % ranks};
    schedule_map_of(&map, ranks, 1 + (2 * blocks + ranks) % ranks, blocks % 2);
    if (schedule_of_sites(schedule) && blocks % 8)
        shape.map = &map.map;
    schedule_check_bounds(schedule, &shape);
}

bool schedule_of_sites(const struct schedule *schedule)
{
    static const struct schedule *const all[] = {&hybrid_broadcast, &hybrid_reduce, &hierarchical_allreduce,
                                                 &transpose_alltoall};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i] == schedule)
            return true;
    return false;
}

static bool is_sampled(uint32_t ranks, uint32_t blocks)
{
    return (ranks + blocks) % 7 == 0 || blocks == 1 || blocks == 3 * ranks ||
           (blocks + 1 >= ranks && blocks <= ranks + 1);
}

void schedule_check_all(const struct schedule *schedule)
{
    uint32_t greatest = SANITIZED ? RANKS_SOME / 3 : RANKS_SOME;
    for (uint32_t ranks = 1; ranks <= greatest; ranks++)
        for (uint32_t blocks = 1; blocks <= 3 * ranks; blocks++)
            if (ranks <= RANKS_ALL || is_sampled(ranks, blocks))
                check_sites(schedule, ranks, blocks);
}
