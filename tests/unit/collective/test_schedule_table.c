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
#include "collective/schedules.h"
#include "support/sanitized.h"
#include "support/schedule_bounds.h"

static void print(const struct schedule *schedule, const struct schedule_shape *shape)
{
    struct schedule_counts n = schedule_check_bounds(schedule, shape);
    const struct schedule_bounds *bounds = schedule_bounds_of(schedule);
    print_message("%-14s %-18s %5u %6u %5u %6u %6llu %8llu %8llu %8llu\n",
                  collective_name(schedule->collective), schedule->name, shape->ranks, shape->blocks,
                  shape->map ? shape->map->sites : 1, n.steps, (unsigned long long)bounds->steps(shape),
                  (unsigned long long)n.sent_max, (unsigned long long)bounds->sent(shape),
                  (unsigned long long)n.link_max);
}

static void test_many_ranks(void **state)
{
    (void)state;
    static const uint32_t RANKS[] = {100, 127, 128, 1000};
    static struct schedule_map map;
    print_message("%-14s %-18s %5s %6s %5s %6s %6s %8s %8s %8s\n", "collective", "schedule", "ranks",
                  "blocks", "sites", "steps", "bound", "sent", "bound", "link");
    for (const struct schedule *const *s = schedule_table(); *s; s++)
        for (size_t i = 0; i < sizeof RANKS / sizeof RANKS[0] - (SANITIZED ? 1 : 0); i++) {
            uint32_t n = RANKS[i], blocks[] = {1, 2, 3, n - 1, n, n + 1, 3 * n};
            schedule_map_of(&map, n, 16, false);
            for (size_t b = 0; b < sizeof blocks / sizeof blocks[0]; b++) {
                struct schedule_shape shape = {.ranks = n, .blocks = blocks[b], .root = n / 3};
                if ((*s)->exchanges && b > 2 && n > 128) /* n * n * b values in a step */
                    continue;
                if (blocks[b] > n + 1 &&
                    n > 128) /* seconds each; 100 to 128 ranks have three blocks each */
                    continue;
                if (b % 2 == 1 && n > 128) /* 127 and 128 ranks have them, and what is near a multiple */
                    continue;
                if (schedule_of_sites(*s))
                    shape.map = &map.map;
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
                schedule_check_bounds(*s, &shape);
        }
}

/* Whatever the order of the ranks is; what each sends depends on whose part is the greater by a block. */
static void test_any_order(void **state)
{
    (void)state;
    struct schedule_map map;
    struct schedule_counts counts;
    for (const struct schedule *const *s = schedule_table(); *s; s++)
        for (uint32_t ranks = 1; ranks <= 20; ranks++)
            for (uint32_t blocks = 1; blocks <= 2 * ranks; blocks++) {
                schedule_map_of(&map, ranks, 1 + blocks % ranks, true);
                struct schedule_shape shape = {
                    .ranks = ranks, .blocks = blocks, .root = blocks % ranks, .map = &map.map};
                const char *finding = schedule_check(*s, &shape, &counts);
                if (finding)
                    fail_msg("%s %s, %u ranks, %u blocks: %s", collective_name((*s)->collective),
                             (*s)->name, ranks, blocks, finding);
            }
}

/* ---- planted errors: one transfer that a rank sends in a step ---------------------------------------- */

#define RANKS_FAULTY 7u

enum fault { DROPPED, DOUBLED, WRONG_PARTNER, FAULTS };

static struct {
    const struct schedule *right;
    enum fault fault;
    uint32_t rank, step;
    struct schedule_map map;
    bool met; /* there is such a transfer */
} planted;

static uint32_t below(const struct schedule_shape *shape, uint32_t rank)
{
    return (rank + shape->ranks - 1) % shape->ranks;
}

/* The sites, of ranks in their order. */
static struct schedule_shape right_shape(const struct schedule_shape *shape)
{
    struct schedule_shape right = *shape;
    right.map = &planted.map.map;
    return right;
}

static bool right_send(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                       struct schedule_transfer *transfer)
{
    struct schedule_shape right = right_shape(shape);
    struct schedule_cursor cursor = {0};
    bool any = true;
    for (uint32_t i = 0; i <= index && any; i++)
        any = schedule_next_send(planted.right, &right, rank, step, &cursor, transfer);
    return any;
}

static bool faulty_send(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                        struct schedule_transfer *transfer)
{
    bool here = rank == planted.rank && step == planted.step;
    bool any = right_send(shape, rank, step, here && planted.fault == DOUBLED && index ? index - 1 : index,
                          transfer);
    if (!here || !any || index > 0 || transfer->count == 0)
        return any;
    planted.met = true;
    if (planted.fault == DROPPED)
        transfer->count = 0;
    if (planted.fault == WRONG_PARTNER)
        transfer->peer = below(shape, below(shape, transfer->peer) == rank ? rank : transfer->peer);
    return any;
}

static uint32_t right_steps(const struct schedule_shape *shape)
{
    struct schedule_shape right = right_shape(shape);
    return schedule_steps(planted.right, &right);
}

static bool right_source(const struct schedule_shape *shape, uint32_t rank, uint32_t step, uint32_t index,
                         uint32_t *peer)
{
    uint32_t peers[RANKS_FAULTY], count = 0;
    struct schedule_cursor cursor = {0};
    struct schedule_transfer t;
    struct schedule_shape right = right_shape(shape);
    while (count <= index && schedule_next_receive(planted.right, &right, rank, step, &cursor, &t)) {
        uint32_t known = 0;
        while (known < count && peers[known] != t.peer)
            known++;
        peers[known] = t.peer;
        count += known == count;
    }
    *peer = index < count ? peers[index] : rank;
    return index < count;
}

/* Whether the checker finds it. */
static bool is_found(const struct schedule *schedule, const struct schedule_shape *shape)
{
    struct schedule_counts counts;
    struct schedule faulty = {.name = schedule->name,
                              .collective = schedule->collective,
                              .exchanges = schedule->exchanges,
                              .steps = right_steps,
                              .send = faulty_send,
                              .source = right_source};
    planted.met = false;
    return schedule_check(&faulty, shape, &counts) != NULL;
}

static void test_planted_errors_are_found(void **state)
{
    (void)state;
    struct schedule_shape shape = {.ranks = RANKS_FAULTY, .blocks = 9, .root = 2};
    schedule_map_of(&planted.map, RANKS_FAULTY, 3, false);
    for (const struct schedule *const *s = schedule_table(); *s; s++) {
        planted.right = *s;
        uint32_t found = 0, steps = right_steps(&shape);
        for (int fault = 0; fault < FAULTS; fault++)
            for (uint32_t step = 0; step < steps; step++)
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
    struct schedule_map map;
    schedule_map_of(&map, 3, 3, false);
    const struct schedule_shape invalid[] = {
        {.ranks = 0, .blocks = 1},
        {.ranks = SCHEDULE_RANKS_MAX + 1, .blocks = 1},
        {.ranks = 2, .blocks = 0},
        {.ranks = 2, .blocks = SCHEDULE_BLOCKS_MAX + 1},
        {.ranks = 2, .blocks = 1, .root = 2},
        {.ranks = 2, .blocks = 1, .map = &map.map},
    };
    for (size_t i = 0; i < sizeof invalid / sizeof invalid[0]; i++)
        assert_int_equal(schedule_shape_check(ring, &invalid[i]), -LH_EINVAL);
    struct schedule_shape maximum = {.ranks = SCHEDULE_RANKS_MAX, .blocks = SCHEDULE_BLOCKS_MAX};
    assert_int_equal(schedule_shape_check(ring, &maximum), 0);
    assert_int_equal(schedule_shape_check(pairwise, &maximum), -LH_EINVAL);
    assert_string_equal(lh_last_error(),
                        "pairwise: 16777216 blocks of 65536 ranks: out of range (use at most 256 blocks)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_ranks), cmocka_unit_test(test_uneven_parts),
        cmocka_unit_test(test_any_order),  cmocka_unit_test(test_planted_errors_are_found),
        cmocka_unit_test(test_names),      cmocka_unit_test(test_invalid_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
