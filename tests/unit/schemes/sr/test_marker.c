/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/marker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct sr_timing timing = {
    .rtt_ns = 8000, .overdue_ns = 9000, .window_ns = 1000, .measured = true};

static void test_new_chunks_are_covered_within_a_quarter_round_trip(void **state)
{
    (void)state;
    struct sr_marker marker;
    sr_marker_init(&marker);
    assert_int_equal(sr_marker_cover_expiry(&marker, &timing), LH_TIME_NEVER);
    assert_false(sr_marker_wants_cover(&marker, false, true));
    assert_int_equal(sr_marker_stamp(&marker), 1);
    sr_marker_on_injection(&marker, false, 100);
    sr_marker_on_injection(&marker, false, 200); /* does not push it away */
    assert_int_equal(sr_marker_cover_expiry(&marker, &timing), 2100);
    assert_false(sr_marker_wants_cover(&marker, false, false));
    assert_false(sr_marker_wants_cover(&marker, true, true));
    assert_true(sr_marker_wants_cover(&marker, false, true));
}

static void test_repairs_are_covered_sooner(void **state)
{
    (void)state;
    struct sr_marker marker;
    sr_marker_init(&marker);
    sr_marker_on_injection(&marker, false, 100);
    sr_marker_on_injection(&marker, true, 200);
    sr_marker_on_injection(&marker, false, 210);
    sr_marker_on_injection(&marker, true, 220);
    assert_int_equal(sr_marker_cover_expiry(&marker, &timing), 450);
    assert_false(sr_marker_wants_cover(&marker, true, false));
    assert_true(sr_marker_wants_cover(&marker, false, false));
    sr_marker_on_cover(&marker, false, &timing, 300);
    assert_int_equal(marker.mark, 1);
    assert_int_equal(sr_marker_stamp(&marker), 2);
    assert_int_equal(sr_marker_cover_expiry(&marker, &timing), LH_TIME_NEVER);
    assert_int_equal(sr_marker_repeat_expiry(&marker), 1300);
}

static void test_repeats_until_a_probe_would_ask(void **state)
{
    (void)state;
    struct sr_marker marker;
    sr_marker_init(&marker);
    sr_marker_on_injection(&marker, false, 0);
    sr_marker_on_cover(&marker, true, &timing, 0);
    static const lh_time moments[] = {1000, 3000, 7000, 15000,
                                      LH_TIME_NEVER}; /* 1, 2, 4, 8 windows apart */
    for (size_t i = 0; i + 1 < sizeof(moments) / sizeof(*moments); i++) {
        assert_int_equal(sr_marker_repeat_expiry(&marker), moments[i]);
        sr_marker_on_repeat_expired(&marker, &timing, moments[i]);
        assert_int_equal(marker.mark, 1); /* the same MARK: it covers nothing more */
        assert_int_equal(sr_marker_repeat_expiry(&marker), moments[i + 1]);
    }
}

static void test_a_mark_in_mid_injection_is_not_repeated(void **state)
{
    (void)state;
    struct sr_marker marker;
    sr_marker_init(&marker);
    sr_marker_on_injection(&marker, false, 0);
    sr_marker_on_cover(&marker, false, &timing, 2000);
    assert_int_equal(sr_marker_repeat_expiry(&marker), LH_TIME_NEVER);
}

static void test_what_was_heard_is_not_repeated(void **state)
{
    (void)state;
    struct sr_marker marker;
    sr_marker_init(&marker);
    for (lh_time now = 0; now < 2; now++) {
        sr_marker_on_injection(&marker, true, now);
        sr_marker_on_cover(&marker, true, &timing, now);
    }
    sr_marker_on_settled(&marker, 1);
    assert_int_equal(sr_marker_repeat_expiry(&marker), 1001);
    sr_marker_on_settled(&marker, 2);
    assert_int_equal(sr_marker_repeat_expiry(&marker), LH_TIME_NEVER);
    sr_marker_on_settled(&marker, 1); /* an old ACK */
    assert_int_equal(marker.settled, 2);
}

static void test_numbers_end_and_stay(void **state)
{
    (void)state;
    struct sr_marker marker;
    sr_marker_init(&marker);
    marker.mark = UINT32_MAX - 1;
    for (int i = 0; i < 3; i++) {
        sr_marker_on_injection(&marker, true, 0);
        sr_marker_on_cover(&marker, true, &timing, 0);
        assert_int_equal(marker.mark, UINT32_MAX);
        assert_int_equal(sr_marker_stamp(&marker), UINT32_MAX);
    }
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(sr_cover_name(SR_COVERED), "covered");
    assert_string_equal(sr_cover_name(SR_REPAIRS_UNCOVERED), "repairs uncovered");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_chunks_are_covered_within_a_quarter_round_trip),
        cmocka_unit_test(test_repairs_are_covered_sooner),
        cmocka_unit_test(test_repeats_until_a_probe_would_ask),
        cmocka_unit_test(test_a_mark_in_mid_injection_is_not_repeated),
        cmocka_unit_test(test_what_was_heard_is_not_repeated),
        cmocka_unit_test(test_numbers_end_and_stay),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
