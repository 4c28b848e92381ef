/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/backoff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct sr_timing timing = {
    .rtt_ns = 1000, .overdue_ns = 1100, .window_ns = 125, .measured = true};

/* A round, and the receiver's word about it. Returns how long repairs wait then. */
static lh_time round_of(struct sr_backoff *backoff, lh_time now, uint32_t arrived)
{
    sr_backoff_on_heard(backoff, arrived);
    sr_backoff_on_repair(backoff, &timing, now);
    return sr_backoff_expiry(backoff) > now ? sr_backoff_expiry(backoff) - now : 0;
}

static void test_waits_longer_with_each_round_that_brings_nothing(void **state)
{
    (void)state;
    static const lh_time spans[] = {0, 0, 0, 2000, 4000, 8000, 8000, 8000};
    struct sr_backoff backoff;
    sr_backoff_init(&backoff);
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++)
        assert_int_equal(round_of(&backoff, i * 1000000, 7), spans[i]);
    assert_int_equal(round_of(&backoff, 20000000, 8), 0);
    assert_int_equal(round_of(&backoff, 21000000, 7), 0);
}

static void test_what_arrives_ends_the_wait(void **state)
{
    (void)state;
    struct sr_backoff backoff;
    sr_backoff_init(&backoff);
    for (lh_time now = 0; now < 6000; now += 1000)
        (void)round_of(&backoff, now, 1);
    assert_true(sr_backoff_expiry(&backoff) > 6000);
    sr_backoff_on_heard(&backoff, 1);
    assert_true(sr_backoff_expiry(&backoff) > 6000);
    sr_backoff_on_heard(&backoff, 2);
    assert_int_equal(sr_backoff_expiry(&backoff), 0);
}

static void test_repairs_within_a_round_trip_are_one_round(void **state)
{
    (void)state;
    struct sr_backoff backoff;
    sr_backoff_init(&backoff);
    for (lh_time now = 0; now < 3000; now += 1000)
        (void)round_of(&backoff, now, 1);
    for (lh_time now = 2001; now < 3000; now++)
        assert_int_equal(round_of(&backoff, now, 1), 0);
    assert_int_equal(round_of(&backoff, 3000, 1), 2000);
}

static void test_a_silent_receiver_is_no_reason_to_wait(void **state)
{
    (void)state;
    struct sr_backoff backoff;
    sr_backoff_init(&backoff);
    sr_backoff_on_heard(&backoff, 1);
    for (lh_time now = 0; now < 50000; now += 1000)
        sr_backoff_on_repair(&backoff, &timing, now);
    assert_int_equal(sr_backoff_expiry(&backoff), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_longer_with_each_round_that_brings_nothing),
        cmocka_unit_test(test_what_arrives_ends_the_wait),
        cmocka_unit_test(test_repairs_within_a_round_trip_are_one_round),
        cmocka_unit_test(test_a_silent_receiver_is_no_reason_to_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
