/*
 * test_refresh.c - what is said anew: when, and how often it may be.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/flowcontrol.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define GBIT UINT64_C(1000000000)

static void nothing_is_due_before_it_was_said(void **state)
{
    (void)state;
    struct lh_flow_refresh refresh;
    lh_flow_refresh_init(&refresh, 100);
    assert_false(lh_flow_refresh_on_expired(&refresh, 0));
    assert_false(lh_flow_refresh_on_expired(&refresh, LH_TIME_NEVER - 1));
    lh_flow_refresh_on_said(&refresh, 1000);
    lh_flow_refresh_end(&refresh);
    assert_false(lh_flow_refresh_on_expired(&refresh, 5000));
}

static void it_is_said_once_in_a_period(void **state)
{
    (void)state;
    struct lh_flow_refresh refresh;
    lh_flow_refresh_init(&refresh, 100);
    lh_flow_refresh_on_said(&refresh, 1000);
    assert_false(lh_flow_refresh_on_expired(&refresh, 1099));
    assert_true(lh_flow_refresh_on_expired(&refresh, 1100));
    assert_false(lh_flow_refresh_on_expired(&refresh, 1199));
    assert_int_equal(refresh.due_ns, 1200);
    assert_true(lh_flow_refresh_on_expired(&refresh, 1250)); /* late, and the beat stays */
    assert_int_equal(refresh.due_ns, 1300);
    assert_true(lh_flow_refresh_on_expired(&refresh, 1750));
    assert_int_equal(refresh.due_ns, 1800);
}

/* 65,535 quanta of 64 bytes at 400 Gbit/s are 83.88 us, a packet and a pause 31 ns. */
static void the_period_is_within_the_quanta(void **state)
{
    (void)state;
    assert_int_equal(lh_pfc_refresh_max(400 * GBIT, 1500), 83853);
    assert_int_equal(lh_pfc_refresh_check(83853, 400 * GBIT, 1500), 0);
    assert_int_equal(lh_pfc_refresh_check(83854, 400 * GBIT, 1500), -LH_ERANGE);
    assert_non_null(strstr(lh_last_error(), "shorten"));
    assert_int_equal(lh_pfc_refresh_max(100 * GBIT, 1500), 335414);
}

static void pauses_leave_room_for_the_rest(void **state)
{
    (void)state;
    lh_time least = lh_pfc_refresh_min(100 * GBIT); /* ten frames of 5.12 ns */
    assert_int_equal(least, 52);
    assert_int_equal(lh_pfc_refresh_check(least, 100 * GBIT, 1500), 0);
    assert_int_equal(lh_pfc_refresh_check(least - 1, 100 * GBIT, 1500), -LH_ERANGE);
    assert_non_null(strstr(lh_last_error(), "lengthen"));
}

static void no_link_has_that(void **state)
{
    (void)state;
    assert_int_equal(lh_pfc_refresh_check(1000, 0, 1500), -LH_ERANGE);
    assert_int_equal(lh_pfc_refresh_check(1000, UINT64_MAX, 1500), -LH_ERANGE);
    assert_int_equal(lh_pfc_refresh_check(1000, 100 * GBIT, 65536), -LH_ERANGE);
    assert_int_equal(lh_pfc_refresh_check(UINT64_MAX, 1000000, 0), -LH_ERANGE);
    assert_int_equal(lh_pfc_refresh_check(0, 100 * GBIT, 0), -LH_ERANGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_due_before_it_was_said),
        cmocka_unit_test(it_is_said_once_in_a_period),
        cmocka_unit_test(the_period_is_within_the_quanta),
        cmocka_unit_test(pauses_leave_room_for_the_rest),
        cmocka_unit_test(no_link_has_that),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
