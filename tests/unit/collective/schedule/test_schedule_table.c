/*
 * test_schedule_table.c - every schedule of the table, for every number of ranks and blocks that is likely
 * to go wrong: right, and within the bounds of its algorithm in steps, blocks per rank, per link, and into
 * a site. Prints them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "base/prng.h"
#include "collective/schedule/schedule_table.h"
#include "support/sanitized.h"
#include "support/schedule_check.h"

#define RANKS_ALL 64u /* up to here with every number of blocks */

/* What an algorithm is known for; of n ranks, b blocks, s ranks per site. */
struct bounds {
    enum collective collective;
    const char *name;
    uint64_t (*steps)(const struct schedule_shape *shape); /* exactly */
    uint64_t (*sent)(const struct schedule_shape *shape);  /* most blocks that a rank sends */
    uint64_t (*link)(const struct schedule_shape *shape);  /* most blocks from a rank to another */
    uint32_t peers; /* most in a step; 0: not bounded by a constant */
    bool sites;
};

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

static uint64_t floor_log2(uint64_t value)
{
    return 63 - (uint64_t)__builtin_clzll(value);
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

static const struct bounds BOUNDS[] = {
    {COLLECTIVE_ALLREDUCE, "ring", twice_around, twice_but_one, twice_but_one, 1, false},
    {COLLECTIVE_ALLREDUCE, "halving-doubling", halving_steps, halving_sent, all, 1, false},
    {COLLECTIVE_REDUCE_SCATTER, "ring", around, but_one, but_one, 1, false},
    {COLLECTIVE_ALLGATHER, "ring", around, but_one, but_one, 1, false},
    {COLLECTIVE_ALLTOALL, "pairwise", around, but_one, greatest_part, 1, false},
};

static const struct bounds *bounds_of(const struct schedule *schedule)
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
        fail_msg("%s %s, %u ranks, %u blocks, root %u, %u per site: %s: %llu, at most %llu",
                 collective_name(schedule->collective), schedule->name, shape->ranks, shape->blocks,
                 shape->root, shape->site_ranks, what, (unsigned long long)value,
                 (unsigned long long)bound);
}

static struct schedule_counts check(const struct schedule *schedule, const struct schedule_shape *shape)
{
    struct schedule_counts counts;
    const struct bounds *bounds = bounds_of(schedule);
    assert_int_equal(schedule_shape_check(schedule, shape), 0);
    const char *finding = schedule_check(schedule, shape, &counts);
    if (finding)
        fail_msg("%s %s, %u ranks, %u blocks, root %u, %u per site: %s",
                 collective_name(schedule->collective), schedule->name, shape->ranks, shape->blocks,
                 shape->root, shape->site_ranks, finding);
    uint64_t steps = shape->ranks > 1 ? bounds->steps(shape) : 0;
    if (counts.steps < steps)
        fail_msg("%s: %u steps, bound %llu", schedule->name, counts.steps, (unsigned long long)steps);
    within("steps", counts.steps, steps, schedule, shape);
    if (shape->extents)
        return counts;
    within("blocks sent by a rank", counts.sent_most, bounds->sent(shape), schedule, shape);
    within("blocks of a link", counts.link_most, bounds->link(shape), schedule, shape);
    if (bounds->peers)
        within("peers in a step", counts.peers_most, bounds->peers, schedule, shape);
    return counts;
}

/* Any root has its turn; sites of several sizes. */
static void check_sites(const struct schedule *schedule, uint32_t ranks, uint32_t blocks)
{
    struct schedule_shape shape = {.ranks = ranks, .blocks = blocks, .root = blocks % ranks};
    check(schedule, &shape);
    if (!bounds_of(schedule)->sites)
        return;
    for (uint32_t site = 1 + blocks % 3; site <= ranks; site = 2 * site + 1) {
        shape.site_ranks = site;
        check(schedule, &shape);
    }
}

static void test_all_up_to_64(void **state)
{
    (void)state;
    uint32_t greatest = SANITIZED ? RANKS_ALL / 3 : RANKS_ALL;
    for (const struct schedule *const *s = schedule_table(); *s; s++)
        for (uint32_t ranks = 1; ranks <= greatest; ranks++)
            for (uint32_t blocks = 1; blocks <= 3 * ranks; blocks++)
                check_sites(*s, ranks, blocks);
}

static void print(const struct schedule *schedule, const struct schedule_shape *shape)
{
    struct schedule_counts n = check(schedule, shape);
    const struct bounds *bounds = bounds_of(schedule);
    print_message("%-14s %-18s %5u %6u %5u %6u %6llu %8llu %8llu %8llu\n",
                  collective_name(schedule->collective), schedule->name, shape->ranks, shape->blocks,
                  shape->site_ranks, n.steps, (unsigned long long)bounds->steps(shape),
                  (unsigned long long)n.sent_most, (unsigned long long)bounds->sent(shape),
                  (unsigned long long)n.link_most);
}

static void test_many_ranks(void **state)
{
    (void)state;
    static const uint32_t RANKS[] = {100, 127, 128, 1000};
    print_message("%-14s %-18s %5s %6s %5s %6s %6s %8s %8s %8s\n", "collective", "schedule", "ranks",
                  "blocks", "site", "steps", "bound", "sent", "bound", "link");
    for (const struct schedule *const *s = schedule_table(); *s; s++)
        for (size_t i = 0; i < sizeof RANKS / sizeof RANKS[0] - (SANITIZED ? 1 : 0); i++) {
            uint32_t n = RANKS[i], blocks[] = {1, 2, 3, n - 1, n, n + 1, 3 * n};
            for (size_t b = 0; b < sizeof blocks / sizeof blocks[0]; b++) {
                struct schedule_shape shape = {
                    .ranks = n, .blocks = blocks[b], .root = n / 3, .site_ranks = 16};
                print(*s, &shape);
            }
        }
}

/* Parts of any size, also of none: the v-variants. */
static void test_uneven_parts(void **state)
{
    (void)state;
    struct schedule_extent extents[20 * 20];
    struct lh_prng prng;
    lh_prng_seed(&prng, 1);
    for (const struct schedule *const *s = schedule_table(); *s; s++)
        for (uint32_t ranks = 1; ranks <= 20; ranks++) {
            bool pairs = (*s)->collective == COLLECTIVE_ALLTOALL;
            uint32_t parts = pairs ? ranks * ranks : ranks, first = 0;
            for (uint32_t part = 0; part < parts; part++) {
                uint32_t count = (uint32_t)lh_prng_below(&prng, 4) * (uint32_t)lh_prng_below(&prng, 3);
                extents[part] = (struct schedule_extent){first, count};
                first += count;
            }
            uint32_t blocks = pairs ? (first + ranks - 1) / ranks : first;
            struct schedule_shape shape = {
                .ranks = ranks, .blocks = blocks > 0 ? blocks : 1, .root = ranks / 2, .extents = extents};
            if ((*s)->collective >= COLLECTIVE_REDUCE_SCATTER && (*s)->collective <= COLLECTIVE_ALLTOALL)
                check(*s, &shape);
        }
}

/* ---- planted errors: one transfer that a rank sends in a step ---------------------------------------- */

enum fault { DROPPED, DOUBLED, WRONG_PARTNER, FAULTS };

static struct {
    const struct schedule *right;
    enum fault fault;
    uint32_t rank, step;
    bool met; /* there is such a transfer */
} planted;

static bool faulty_send(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                        struct schedule_transfer *transfer)
{
    bool here = rank == planted.rank && step == planted.step;
    bool any = planted.right->send(shape, rank, step,
                                   here && planted.fault == DOUBLED && index ? index - 1 : index, transfer);
    if (!here || !any || index > 0 || transfer->count == 0)
        return any;
    planted.met = true;
    if (planted.fault == DROPPED)
        transfer->count = 0;
    if (planted.fault == WRONG_PARTNER)
        transfer->peer =
            (transfer->peer + 1 + ((transfer->peer + 1) % shape->ranks == rank)) % shape->ranks;
    return any;
}

/* Whether the checker finds it. */
static bool is_found(const struct schedule *schedule, const struct schedule_shape *shape)
{
    struct schedule_counts counts;
    struct schedule faulty = *schedule;
    planted.right = schedule;
    planted.met = false;
    faulty.send = faulty_send;
    return schedule_check(&faulty, shape, &counts) != NULL;
}

static void test_planted_errors_are_found(void **state)
{
    (void)state;
    struct schedule_shape shape = {.ranks = 7, .blocks = 9, .root = 2, .site_ranks = 3};
    for (const struct schedule *const *s = schedule_table(); *s; s++) {
        uint32_t found = 0;
        for (int fault = 0; fault < FAULTS; fault++)
            for (uint32_t step = 0; step < schedule_steps(*s, &shape); step++)
                for (uint32_t rank = 0; rank < shape.ranks; rank++) {
                    planted.fault = (enum fault)fault;
                    planted.rank = rank;
                    planted.step = step;
                    bool is = is_found(*s, &shape);
                    if (is != planted.met)
                        fail_msg("%s %s: fault %d of rank %u in step %u", collective_name((*s)->collective),
                                 (*s)->name, fault, rank, step);
                    found += is;
                }
        assert_true(found >= FAULTS);
        print_message("%-14s %-18s %u planted errors found\n", collective_name((*s)->collective),
                      (*s)->name, found);
    }
}

static void test_names(void **state)
{
    (void)state;
    for (const struct schedule *const *s = schedule_table(); *s; s++)
        assert_ptr_equal(schedule_find((*s)->collective, (*s)->name), *s);
    for (const struct schedule *const *s = schedule_table(); *s; s++)
        assert_non_null(schedule_find((*s)->collective, NULL));
    assert_null(schedule_find(COLLECTIVE_ALLREDUCE, "rings"));
}

static void test_invalid_shapes(void **state)
{
    (void)state;
    const struct schedule *ring = schedule_find(COLLECTIVE_ALLREDUCE, "ring");
    const struct schedule *pairwise = schedule_find(COLLECTIVE_ALLTOALL, "pairwise");
    const struct schedule_shape invalid[] = {
        {.ranks = 0, .blocks = 1},
        {.ranks = SCHEDULE_RANKS_MAX + 1, .blocks = 1},
        {.ranks = 2, .blocks = 0},
        {.ranks = 2, .blocks = SCHEDULE_BLOCKS_MAX + 1},
        {.ranks = 2, .blocks = 1, .root = 2},
        {.ranks = 2, .blocks = 1, .site_ranks = 3},
    };
    for (size_t i = 0; i < sizeof invalid / sizeof invalid[0]; i++)
        assert_int_equal(schedule_shape_check(ring, &invalid[i]), -LH_EINVAL);
    struct schedule_shape most = {.ranks = SCHEDULE_RANKS_MAX, .blocks = SCHEDULE_BLOCKS_MAX};
    assert_int_equal(schedule_shape_check(ring, &most), 0);
    assert_int_equal(schedule_shape_check(pairwise, &most), -LH_EINVAL);
    assert_string_equal(lh_last_error(),
                        "pairwise: 16777216 blocks of 65536 ranks: out of range (use at most 256 blocks)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_up_to_64), cmocka_unit_test(test_many_ranks),
        cmocka_unit_test(test_uneven_parts), cmocka_unit_test(test_planted_errors_are_found),
        cmocka_unit_test(test_names),        cmocka_unit_test(test_invalid_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
