/*
 * test_schedule.c - the time is kept, and where it is short there are fewer trials.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "probe/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const uint32_t sizes[] = {256, 1024, 4096};

static struct schedule_wish wish_of(lh_time left_ns, lh_time overhead_ns)
{
    return (struct schedule_wish){.left_ns = left_ns,
                                  .overhead_ns = overhead_ns,
                                  .rate_bps = 1000000000,
                                  .header_bytes = 48,
                                  .size_count = 3,
                                  .payload_bytes = sizes,
                                  .trials = 5};
}

static void test_time_is_kept(void **state)
{
    (void)state;
    struct schedule_wish wish = wish_of(6 * LH_NS_PER_S, 50 * LH_NS_PER_MS);
    struct schedule made = schedule_make(&wish);
    lh_time sum = 0;
    assert_int_equal(made.trials, 5);
    for (uint32_t i = 0; i < 3; i++)
        sum += made.trials * (made.packets[i] * made.gap_ns[i] + wish.overhead_ns);
    assert_in_range(sum, 5900 * LH_NS_PER_MS, 6000 * LH_NS_PER_MS);
    assert_int_equal(made.gap_ns[0], SCHEDULE_GAP_MIN_NS); /* 2.4 us at that rate */
    assert_int_equal(made.gap_ns[2], 4144 * 8);
}

static void test_long_paths_have_fewer_trials(void **state)
{
    (void)state;
    struct schedule_wish wish = wish_of(6 * LH_NS_PER_S, LH_NS_PER_S);
    assert_int_equal(schedule_make(&wish).trials, 1);
    wish.left_ns = 0;
    struct schedule made = schedule_make(&wish);
    assert_int_equal(made.trials, 1);
    assert_int_equal(made.packets[0], SCHEDULE_PACKETS_MIN);
}

static void test_what_was_asked_for_is_done(void **state)
{
    (void)state;
    struct schedule_wish wish = wish_of(0, LH_NS_PER_S);
    wish.packets = 777;
    struct schedule made = schedule_make(&wish);
    assert_int_equal(made.trials, 5);
    assert_int_equal(made.packets[2], 777);
    wish = wish_of(600 * LH_NS_PER_S, 0);
    assert_int_equal(schedule_make(&wish).packets[0], LH_PROBE_PACKETS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_is_kept),
        cmocka_unit_test(test_long_paths_have_fewer_trials),
        cmocka_unit_test(test_what_was_asked_for_is_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
