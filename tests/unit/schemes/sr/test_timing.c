/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/timing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_as_measured(void **state)
{
    (void)state;
    struct lh_path_view path = {
        .rtt_ns = 1000, .rtt_minimum_ns = 900, .overdue_ns = 1200, .reorder_window_ns = 100};
    struct sr_timing timing = sr_timing_of(&path);
    assert_true(timing.measured);
    assert_int_equal(timing.rtt_ns, 1000);
    assert_int_equal(timing.overdue_ns, 1200);
    assert_int_equal(timing.window_ns, 100);
}

static void test_impossible_paths_are_made_possible(void **state)
{
    (void)state;
    struct lh_path_view path = {.rtt_ns = 1000};
    struct sr_timing timing = sr_timing_of(&path);
    assert_int_equal(timing.overdue_ns, 1000);
    assert_int_equal(timing.window_ns, 1);
    path =
        (struct lh_path_view){.rtt_ns = LH_TIME_NEVER, .overdue_ns = 1, .reorder_window_ns = LH_TIME_NEVER};
    timing = sr_timing_of(&path);
    assert_true(timing.rtt_ns < LH_TIME_NEVER / 200);
    assert_int_equal(timing.overdue_ns, timing.rtt_ns);
    assert_int_equal(timing.window_ns, timing.overdue_ns);
}

static void test_nothing_measured(void **state)
{
    (void)state;
    struct lh_path_view path = {0};
    struct sr_timing timing = sr_timing_of(&path);
    assert_false(timing.measured);
    assert_int_equal(timing.rtt_ns, SR_INITIAL_RTT_NS);
    assert_in_range(timing.window_ns, 1, timing.overdue_ns);
}

static void test_moments_do_not_wrap(void **state)
{
    (void)state;
    assert_int_equal(sr_after(5, 6), 11);
    assert_int_equal(sr_after(LH_TIME_NEVER, 0), LH_TIME_NEVER);
    assert_int_equal(sr_after(LH_TIME_NEVER, 7), LH_TIME_NEVER);
    assert_int_equal(sr_after(LH_TIME_NEVER - 7, 7), LH_TIME_NEVER);
    assert_int_equal(sr_after(LH_TIME_NEVER - 7, 8), LH_TIME_NEVER);
}

static void test_word_masks(void **state)
{
    (void)state;
    assert_int_equal(sr_word_below(0, 0), 0);
    assert_int_equal(sr_word_below(0, 1), 1);
    assert_int_equal(sr_word_below(0, 63), UINT64_MAX >> 1);
    assert_int_equal(sr_word_below(0, 64), UINT64_MAX);
    assert_int_equal(sr_word_below(1, 64), 0);
    assert_int_equal(sr_word_below(1, 65), 1);
    assert_int_equal(sr_word_below(UINT32_MAX, UINT32_MAX), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_measured),      cmocka_unit_test(test_impossible_paths_are_made_possible),
        cmocka_unit_test(test_nothing_measured), cmocka_unit_test(test_moments_do_not_wrap),
        cmocka_unit_test(test_word_masks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
