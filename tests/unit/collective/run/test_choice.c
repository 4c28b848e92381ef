/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/run/choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "collective/schedule/schedule_table.h"

#define BLOCK (256u << 10)

static const struct choice_path near_path = {.rtt_ns = 50000},
                                far_path = {.rtt_ns = 25000000, .rate_bps = 2000000000};

static const char *best(enum collective collective, uint32_t ranks, uint64_t bytes,
                        const struct choice_path *path)
{
    return choice_make(collective, ranks, bytes, BLOCK, path)->name;
}

/* Two sites: each sends the other all it has; its time is half a round trip and the bytes. */
static void test_two_sites(void **state)
{
    const struct schedule *direct = schedule_find(COLLECTIVE_ALLREDUCE, "direct");
    (void)state;
    for (uint64_t bytes = 1; bytes <= 1u << 26; bytes *= 4)
        assert_string_equal(best(COLLECTIVE_ALLREDUCE, 2, bytes, &far_path), "direct");
    uint64_t expected = choice_expected_ns(direct, 2, 1 << 20, BLOCK, &far_path);
    assert_in_range(expected, 16600000, 17000000);
}

/* Little data by few steps, much by few bytes. */
static void test_sizes(void **state)
{
    (void)state;
    assert_string_equal(best(COLLECTIVE_ALLREDUCE, 8, 64, &near_path), "direct");
    assert_string_equal(best(COLLECTIVE_ALLREDUCE, 8, 100000, &near_path), "halving-doubling");
    assert_string_equal(best(COLLECTIVE_ALLREDUCE, 8, 1 << 26, &near_path), "halving-doubling");
    assert_string_equal(best(COLLECTIVE_ALLREDUCE, 7, 1 << 26, &near_path), "bruck");
    assert_string_equal(best(COLLECTIVE_ALLTOALL, 16, 64, &near_path), "bruck");
    assert_string_equal(best(COLLECTIVE_ALLTOALL, 16, 1 << 26, &near_path), "pairwise");
    assert_string_equal(best(COLLECTIVE_BROADCAST, 16, 1 << 26, &near_path), "binomial-pipeline");
}

/* Over long links data crosses once, and in few steps. */
static void test_sites(void **state)
{
    const struct choice_path path = {.rtt_ns = 25000000, .rate_bps = 2000000000, .sites = 2, .largest = 4};
    (void)state;
    assert_string_equal(best(COLLECTIVE_ALLREDUCE, 8, 1 << 24, &path), "hierarchical");
    assert_string_equal(best(COLLECTIVE_BROADCAST, 8, 1 << 24, &path), "hybrid");
}

/* Each collective has a choice. */
static void test_all(void **state)
{
    (void)state;
    for (enum collective each = 0; each < COLLECTIVES; each++)
        for (uint32_t ranks = 2; ranks < 70; ranks++) {
            const struct schedule *chosen = choice_make(each, ranks, 1000, BLOCK, &near_path);
            assert_int_equal(chosen->collective, each);
            assert_true(choice_expected_ns(chosen, ranks, 1000, BLOCK, &near_path) < UINT64_MAX);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_sites),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_sites),
        cmocka_unit_test(test_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
