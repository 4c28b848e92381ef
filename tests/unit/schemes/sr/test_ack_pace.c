/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/ack_pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct sr_timing timing = {
    .rtt_ns = 8000, .overdue_ns = 9000, .window_ns = 1000, .measured = true};

static lh_time due_after(bool nack, uint32_t arrivals, uint32_t chunks)
{
    struct sr_ack_pace pace;
    sr_ack_pace_init(&pace, nack, 1000);
    if (arrivals > 0)
        sr_ack_pace_on_arrivals(&pace, arrivals, 1500);
    return sr_ack_pace_expiry(&pace, chunks, &timing);
}

static void test_by_count(void **state)
{
    (void)state;
    assert_int_equal(due_after(true, 0, 100), LH_TIME_NEVER);
    assert_int_not_equal(due_after(true, 15, 100), 0);
    assert_int_equal(due_after(true, 16, 100), 0);
    assert_int_not_equal(due_after(true, 127, 1024), 0);
    assert_int_equal(due_after(true, 128, 1024), 0);
    assert_int_not_equal(due_after(false, 63, 100), 0);
    assert_int_equal(due_after(false, 64, 100), 0);
    assert_int_not_equal(due_after(false, 127, 1024), 0);
    assert_int_equal(due_after(false, 128, 1024), 0);
}

static void test_by_time(void **state)
{
    (void)state;
    assert_int_equal(due_after(false, 1, 100), 3000); /* a quarter round trip after the start */
    assert_int_equal(due_after(true, 1, 100), 3500);  /* … after the arrival */
}

static void test_a_steady_trickle_is_acknowledged_once_a_round_trip(void **state)
{
    (void)state;
    struct sr_ack_pace pace;
    sr_ack_pace_init(&pace, true, 0);
    for (lh_time now = 1000; now < 8000; now += 1000) {
        sr_ack_pace_on_arrivals(&pace, 1, now);
        assert_true(sr_ack_pace_expiry(&pace, 1000, &timing) > now);
    }
    assert_int_equal(sr_ack_pace_expiry(&pace, 1000, &timing), 8000);
    sr_ack_pace_on_ack(&pace, 8000);
    assert_int_equal(sr_ack_pace_expiry(&pace, 1000, &timing), LH_TIME_NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_count),
        cmocka_unit_test(test_by_time),
        cmocka_unit_test(test_a_steady_trickle_is_acknowledged_once_a_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
