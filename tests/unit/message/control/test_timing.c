/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/control/timing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_doubles_six_times(void **state)
{
    (void)state;
    const struct lh_sdr_path path = {.overdue_ns = 10};
    assert_int_equal(timing_refresh_interval(&path, 0), 10);
    assert_int_equal(timing_refresh_interval(&path, 1), 20);
    assert_int_equal(timing_refresh_interval(&path, 6), 640);
    assert_int_equal(timing_refresh_interval(&path, 7), 640);
    assert_int_equal(timing_refresh_interval(&path, UINT32_MAX), 640);
}

static void test_before_a_round_trip_was_measured(void **state)
{
    (void)state;
    const struct lh_sdr_path path = {0};
    assert_int_equal(timing_refresh_interval(&path, 0), 100 * LH_NS_PER_MS);
}

static void test_path_view(void **state)
{
    (void)state;
    const struct lh_sdr_path path = {
        .rtt_ns = 1, .rtt_minimum_ns = 2, .overdue_ns = 3, .reorder_window_ns = 4};
    const struct lh_path_view view = timing_path_view(&path);
    assert_true(view.rtt_ns == 1 && view.rtt_minimum_ns == 2);
    assert_true(view.overdue_ns == 3 && view.reorder_window_ns == 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_doubles_six_times),
        cmocka_unit_test(test_before_a_round_trip_was_measured),
        cmocka_unit_test(test_path_view),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
