/*
 * test_limits.c - times of what limited a sender, and what of a pace's time was the host's.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/rate/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void times_add_up(void **state)
{
    (void)state;
    struct limits limits = {0};
    assert_int_equal(limits_ns(&limits, LH_LIMIT_IDLE, 90), 0);
    limits_note(&limits, LH_LIMIT_RATE, 100);
    limits_note(&limits, LH_LIMIT_RATE, 110);
    assert_int_equal(limits_ns(&limits, LH_LIMIT_RATE, 130), 30);
    limits_note(&limits, LH_LIMIT_WINDOW, 130);
    limits_note(&limits, LH_LIMIT_RATE, 170);
    assert_int_equal(limits_ns(&limits, LH_LIMIT_RATE, 171), 31);
    assert_int_equal(limits_ns(&limits, LH_LIMIT_WINDOW, 171), 40);
    assert_int_equal(limits_ns(&limits, LH_LIMIT_IDLE, 171), 0);
}

static void the_host_came_late(void **state)
{
    (void)state;
    struct limits limits = {0};
    limits_late(&limits, 50, 90); /* nothing was noted yet */
    limits_note(&limits, LH_LIMIT_RATE, 100);
    limits_late(&limits, 140, 140); /* just in time */
    assert_int_equal(limits.now, LH_LIMIT_RATE);
    limits_late(&limits, 140, 150);
    limits_note(&limits, LH_LIMIT_RATE, 150);
    assert_int_equal(limits_ns(&limits, LH_LIMIT_RATE, 150), 40);
    assert_int_equal(limits_ns(&limits, LH_LIMIT_HOST, 150), 10);
    limits_late(&limits, 120, 160); /* full since before: no time counts twice */
    limits_note(&limits, LH_LIMIT_IDLE, 160);
    assert_int_equal(limits_ns(&limits, LH_LIMIT_RATE, 160), 40);
    assert_int_equal(limits_ns(&limits, LH_LIMIT_HOST, 160), 20);
    limits_late(&limits, 165, 170); /* no pace held it */
    assert_int_equal(limits.now, LH_LIMIT_IDLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_add_up),
        cmocka_unit_test(the_host_came_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
