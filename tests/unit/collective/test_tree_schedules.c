/*
 * test_tree_schedules.c - what RDMC 4.4 and 4.5 promise of the binomial pipeline beyond a right end: who
 * gets the last block when, and what a slow link and a delayed send cost, in virtual time. Prints the first.
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

#include "collective/schedules.h"
#include "support/sanitized.h"
#include "support/schedule_bounds.h"

/* ---- test binomial pipeline ------------------------------------------------------------------------ */

#define RANKS_MAX  64u
#define BLOCKS_MAX 400u

static void test_broadcast(void **state)
{
    (void)state;
    schedule_check_all(&pipeline_broadcast);
}

static void test_reduce(void **state)
{
    (void)state;
    schedule_check_all(&pipeline_reduce);
}

/* All in the last step when the ranks are a power of two, else in the last two. */
static void test_last_receipts(void **state)
{
    (void)state;
    for (uint32_t ranks = 2; ranks <= 200; ranks++)
        for (uint32_t blocks = 2; blocks <= 20; blocks++) {
            struct schedule_shape shape = {.ranks = ranks, .blocks = blocks, .root = blocks % ranks};
            struct schedule_counts counts;
            assert_null(schedule_check(&pipeline_broadcast, &shape, &counts));
            bool power = (ranks & (ranks - 1)) == 0;
            assert_int_equal(counts.last_receipts[1], counts.steps - 1);
            assert_in_range(counts.last_receipts[0], counts.steps - (power ? 1 : 2), counts.steps - 1);
        }
}

/* Each number of ranks up to 1,000: ceil(log2 n) + blocks - 1 steps. */
static void test_every_number(void **state)
{
    (void)state;
    for (uint32_t ranks = 2, doublings = 1; ranks <= (SANITIZED ? 200 : 1000); ranks++) {
        doublings += ranks > 1u << doublings;
        for (uint32_t blocks = 1; blocks <= 4; blocks += 3) {
            struct schedule_shape shape = {.ranks = ranks, .blocks = blocks};
            struct schedule_counts counts;
            assert_null(schedule_check(&pipeline_broadcast, &shape, &counts));
            assert_int_equal(counts.steps, doublings + blocks - 1);
        }
    }
}

/* ---- virtual time ------------------------------------------------------------------------------------ */

/* A rank sends one block at a time and receives one at a time, in the order of the schedule; a block takes 1,
 * on the slow link, in both directions, more. */
static struct {
    uint32_t slow[2]; /* the ranks at its ends */
    uint64_t slow_time;
    uint32_t transfers, late; /* how many there were, and which of them takes `delay` more */
    uint64_t delay;
    uint64_t held[RANKS_MAX][BLOCKS_MAX], sends[RANKS_MAX], receives[RANKS_MAX];
} line;

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t transfer(uint32_t from, const struct schedule_transfer *t)
{
    bool slow = (from == line.slow[0] && t->peer == line.slow[1]) ||
                (from == line.slow[1] && t->peer == line.slow[0]);
    uint64_t start = later(line.held[from][t->first], later(line.sends[from], line.receives[t->peer]));
    uint64_t end = start + (slow ? line.slow_time : 1) + (line.transfers++ == line.late ? line.delay : 0);
    line.sends[from] = line.receives[t->peer] = line.held[t->peer][t->first] = end;
    return end;
}

/* When everybody has everything. */
static uint64_t run_all(const struct schedule *schedule, const struct schedule_shape *shape)
{
    uint64_t end = 0;
    for (uint32_t step = 0; step < schedule_steps(schedule, shape); step++)
        for (uint32_t rank = 0; rank < shape->ranks; rank++) {
            struct schedule_cursor cursor = {0};
            struct schedule_transfer t;
            while (schedule_next_send(schedule, shape, rank, step, &cursor, &t))
                end = later(end, transfer(rank, &t));
        }
    return end;
}

static uint64_t run(const struct schedule *schedule, const struct schedule_shape *shape, uint32_t a,
                    uint32_t b, uint64_t slow_time)
{
    memset(&line, 0, sizeof line);
    line.slow[0] = a;
    line.slow[1] = b;
    line.slow_time = slow_time;
    return run_all(schedule, shape);
}

static uint64_t run_delayed(const struct schedule_shape *shape, uint32_t late, uint64_t delay)
{
    memset(&line, 0, sizeof line);
    line.late = late;
    line.delay = delay;
    return run_all(&pipeline_broadcast, shape);
}

/* Any send that takes longer by a time delays the end by no more than that; one by all of it. */
static void test_delayed_send(void **state)
{
    (void)state;
    for (uint32_t ranks = 2; ranks <= 33; ranks += ranks < 9 ? 1 : 8)
        for (uint64_t delay = 1; delay <= 16; delay *= 4) {
            struct schedule_shape shape = {.ranks = ranks, .blocks = 12};
            uint64_t end = run_delayed(&shape, 0, 0), worst = 0;
            for (uint32_t late = 0, all = line.transfers; late < all; late++)
                worst = later(worst, run_delayed(&shape, late, delay));
            assert_int_equal(worst, end + delay);
        }
}

/* The link is used in one of l steps, so no path from block to block has it more often. In terms of
 * bandwidth that is l T' / (T + (l - 1) T'). */
static void test_slow_link(void **state)
{
    (void)state;
    const uint64_t slow_time = 4;
    for (uint32_t dimensions = 1; dimensions <= 6; dimensions++) {
        struct schedule_shape shape = {.ranks = 1u << dimensions, .blocks = BLOCKS_MAX};
        uint32_t steps = schedule_steps(&pipeline_broadcast, &shape);
        uint64_t bound = steps + (steps + dimensions - 1) / dimensions * (slow_time - 1), worst = 0;
        assert_int_equal(run(&pipeline_broadcast, &shape, 0, 0, 1), steps);
        for (uint32_t rank = 0; rank < shape.ranks; rank++)
            for (uint32_t bit = 0; bit < dimensions; bit++)
                worst = later(worst, run(&pipeline_broadcast, &shape, rank, rank ^ 1u << bit, slow_time));
        assert_in_range(worst, steps + 1, bound);
        uint64_t chain = run(&chain_broadcast, &shape, 0, 1, slow_time);
        print_message("%3u ranks, %u blocks, a link %u times slower: %.3f of the bandwidth (bound %.3f), "
                      "chain %.3f\n",
                      shape.ranks, shape.blocks, (unsigned)slow_time, (double)steps / (double)worst,
                      (double)dimensions / (double)(slow_time + dimensions - 1),
                      (double)(shape.ranks + shape.blocks - 2) / (double)chain);
    }
}

static int run_binomial_pipeline(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broadcast),     cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_last_receipts), cmocka_unit_test(test_every_number),
        cmocka_unit_test(test_delayed_send),  cmocka_unit_test(test_slow_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test binomial tree ---------------------------------------------------------------------------- */

static void binomial_tree_test_broadcast(void **state)
{
    (void)state;
    schedule_check_all(&binomial_broadcast);
}

static void binomial_tree_test_reduce(void **state)
{
    (void)state;
    schedule_check_all(&binomial_reduce);
}

static void test_scatter(void **state)
{
    (void)state;
    schedule_check_all(&binomial_scatter);
}

static void test_gather(void **state)
{
    (void)state;
    schedule_check_all(&binomial_gather);
}

static int run_binomial_tree(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(binomial_tree_test_broadcast),
        cmocka_unit_test(binomial_tree_test_reduce),
        cmocka_unit_test(test_scatter),
        cmocka_unit_test(test_gather),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test double tree ------------------------------------------------------------------------------ */

static void double_tree_test_broadcast(void **state)
{
    (void)state;
    schedule_check_all(&tree_broadcast);
}

static void double_tree_test_reduce(void **state)
{
    (void)state;
    schedule_check_all(&tree_reduce);
}

static void test_allreduce(void **state)
{
    (void)state;
    schedule_check_all(&tree_allreduce);
}

static int run_double_tree(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(double_tree_test_broadcast),
        cmocka_unit_test(double_tree_test_reduce),
        cmocka_unit_test(test_allreduce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test halving doubling ------------------------------------------------------------------------- */

static void halving_doubling_test_allreduce(void **state)
{
    (void)state;
    schedule_check_all(&halving_doubling);
}

static int run_halving_doubling(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halving_doubling_test_allreduce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_binomial_pipeline() + run_binomial_tree() + run_double_tree() + run_halving_doubling();
}
