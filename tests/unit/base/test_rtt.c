/*
 * test_rtt.c - against values calculated by hand.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/rtt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_no_sample(void **state)
{
    (void)state;
    struct lh_rtt rtt;
    lh_rtt_init(&rtt);
    assert_true(rtt.smoothed_ns == 0 && rtt.samples == 0);
    assert_true(lh_rtt_overdue_ns(&rtt) == 0);
    assert_true(lh_rtt_reorder_window_ns(&rtt) == 0);
}

/* The first sample R: smoothed R, variance R / 2. */
static void test_first_sample(void **state)
{
    (void)state;
    struct lh_rtt rtt;
    lh_rtt_init(&rtt);
    lh_rtt_on_sample(&rtt, 800);
    assert_true(rtt.smoothed_ns == 800 && rtt.variance_ns == 400);
    assert_true(rtt.minimum_ns == 800 && rtt.latest_ns == 800 && rtt.samples == 1);
    assert_true(lh_rtt_overdue_ns(&rtt) == 800 + 4 * 400);
    assert_true(lh_rtt_reorder_window_ns(&rtt) == 400); /* 2 * 400 is over half of 800 */
}

/* 800, then 1600: variance 3/4 * 400 + 1/4 * 800 = 500, smoothed 7/8 * 800 + 1/8 * 1600 = 900.
 * Then 400: variance 3/4 * 500 + 1/4 * 500 = 500, smoothed 7/8 * 900 + 1/8 * 400 = 837.5. */
static void test_later_samples(void **state)
{
    (void)state;
    struct lh_rtt rtt;
    lh_rtt_init(&rtt);
    lh_rtt_on_sample(&rtt, 800);
    lh_rtt_on_sample(&rtt, 1600);
    assert_true(rtt.variance_ns == 500 && rtt.smoothed_ns == 900);
    assert_true(rtt.minimum_ns == 800 && rtt.latest_ns == 1600);
    lh_rtt_on_sample(&rtt, 400);
    assert_true(rtt.variance_ns == 500 && rtt.smoothed_ns == 837);
    assert_true(rtt.minimum_ns == 400 && rtt.latest_ns == 400 && rtt.samples == 3);
    assert_true(lh_rtt_overdue_ns(&rtt) == 837 + 4 * 500);
    assert_true(lh_rtt_reorder_window_ns(&rtt) == 837 / 2);
}

/* With a steady round trip the variance goes to nothing and the floors of an eighth remain. */
static void test_steady_samples_leave_the_floors(void **state)
{
    (void)state;
    struct lh_rtt rtt;
    lh_rtt_init(&rtt);
    for (int i = 0; i < 200; i++)
        lh_rtt_on_sample(&rtt, 8000000);
    assert_true(rtt.smoothed_ns == 8000000 && rtt.variance_ns == 0);
    assert_true(lh_rtt_overdue_ns(&rtt) == 9000000);
    assert_true(lh_rtt_reorder_window_ns(&rtt) == 1000000);
}

/* Variance between the floor and the ceiling: smoothed 8000, variance 600, minimum 8000. */
static void test_reorder_window_follows_the_variance(void **state)
{
    (void)state;
    struct lh_rtt rtt = {.smoothed_ns = 8000, .variance_ns = 600, .minimum_ns = 8000, .samples = 5};
    assert_true(lh_rtt_reorder_window_ns(&rtt) == 1200);
    assert_true(lh_rtt_overdue_ns(&rtt) == 8000 + 2400);
    rtt.variance_ns = 500;
    assert_true(lh_rtt_reorder_window_ns(&rtt) == 1000);
    rtt.variance_ns = 499;
    assert_true(lh_rtt_reorder_window_ns(&rtt) == 1000);
    rtt.variance_ns = 2001;
    assert_true(lh_rtt_reorder_window_ns(&rtt) == 4000);
}

static void test_zero_counts_as_one(void **state)
{
    (void)state;
    struct lh_rtt rtt;
    lh_rtt_init(&rtt);
    for (int i = 0; i < 10; i++)
        lh_rtt_on_sample(&rtt, 0);
    assert_true(rtt.smoothed_ns == 1 && rtt.minimum_ns == 1 && rtt.latest_ns == 1);
}

/* A forged echo may make any sample: nothing wraps, and good samples bring it down again. */
static void test_absurd_samples_do_not_wrap(void **state)
{
    (void)state;
    struct lh_rtt rtt;
    lh_rtt_init(&rtt);
    for (int i = 0; i < 10; i++) {
        lh_rtt_on_sample(&rtt, LH_TIME_NEVER);
        assert_true(rtt.smoothed_ns > LH_TIME_NEVER / 64);
        assert_true(lh_rtt_overdue_ns(&rtt) > rtt.smoothed_ns);
        lh_rtt_on_sample(&rtt, 1);
    }
    for (int i = 0; i < 1000; i++)
        lh_rtt_on_sample(&rtt, 1000);
    assert_in_range(rtt.smoothed_ns, 993, 1007);
    assert_in_range(lh_rtt_overdue_ns(&rtt), 1100, 1200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_sample),
        cmocka_unit_test(test_first_sample),
        cmocka_unit_test(test_later_samples),
        cmocka_unit_test(test_steady_samples_leave_the_floors),
        cmocka_unit_test(test_reorder_window_follows_the_variance),
        cmocka_unit_test(test_zero_counts_as_one),
        cmocka_unit_test(test_absurd_samples_do_not_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
