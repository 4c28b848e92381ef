/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/settle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Samples within 100 share an entry. */
static const struct sr_timing timing = {
    .rtt_ns = 8000, .overdue_ns = 9000, .window_ns = 1600, .measured = true};

/* Settles what is due, as the receiver does. */
static uint32_t settle_until(struct sr_settle *settle, lh_time now)
{
    while (sr_settle_expiry(settle, &timing) <= now)
        sr_settle_on_expired(settle);
    return settle->settled.through;
}

static void test_settles_after_a_window(void **state)
{
    (void)state;
    struct sr_settle settle;
    sr_settle_init(&settle);
    assert_int_equal(sr_settle_expiry(&settle, &timing), LH_TIME_NEVER);
    sr_settle_add(&settle, 5, 0, &timing, 1000);
    assert_int_equal(settle_until(&settle, 2599), 0);
    assert_int_equal(settle_until(&settle, 2600), 5);
    assert_int_equal(sr_settle_expiry(&settle, &timing), LH_TIME_NEVER);
}

static void test_close_samples_share_and_none_settles_early(void **state)
{
    (void)state;
    struct sr_settle settle;
    sr_settle_init(&settle);
    sr_settle_add(&settle, 5, 0, &timing, 1000);
    sr_settle_add(&settle, 6, 0, &timing, 1099);
    sr_settle_add(&settle, 7, 0, &timing, 1100);
    assert_int_equal(settle.count, 2);
    assert_int_equal(settle_until(&settle, 2698), 0);
    assert_int_equal(settle_until(&settle, 2699), 6);
    assert_int_equal(settle_until(&settle, 2700), 7);
}

static void test_numbers_only_grow(void **state)
{
    (void)state;
    struct sr_settle settle;
    sr_settle_init(&settle);
    sr_settle_add(&settle, 5, 3, &timing, 0);
    sr_settle_add(&settle, 5, 3, &timing, 500); /* says nothing new: the first time counts */
    sr_settle_add(&settle, 4, 2, &timing, 600);
    assert_int_equal(settle.count, 1);
    sr_settle_add(&settle, 4, 4, &timing, 700); /* an old number of chunks with a new MARK */
    assert_int_equal(settle.count, 2);
    assert_int_equal(settle_until(&settle, 1600), 5);
    assert_int_equal(settle.settled.mark, 3);
    assert_int_equal(settle_until(&settle, 2300), 5);
    assert_int_equal(settle.settled.mark, 4);
}

static void test_a_full_ring_settles_late_not_early(void **state)
{
    (void)state;
    struct sr_settle settle;
    sr_settle_init(&settle);
    /* Nothing is settled meanwhile, as when the receiver is not called. */
    for (uint32_t i = 1; i <= SR_SAMPLES + 10; i++)
        sr_settle_add(&settle, i, 0, &timing, i * 100);
    assert_int_equal(settle.count, SR_SAMPLES);
    assert_int_equal(settle_until(&settle, SR_SAMPLES * 100 + 1599), SR_SAMPLES - 1);
    assert_int_equal(settle_until(&settle, (SR_SAMPLES + 10) * 100 + 1599), SR_SAMPLES - 1);
    assert_int_equal(settle_until(&settle, (SR_SAMPLES + 10) * 100 + 1600), SR_SAMPLES + 10);
}

static void test_goes_round_the_ring(void **state)
{
    (void)state;
    struct sr_settle settle;
    sr_settle_init(&settle);
    for (uint32_t i = 1; i <= 5 * SR_SAMPLES; i++) {
        sr_settle_add(&settle, i, i, &timing, i * 100);
        assert_int_equal(settle_until(&settle, i * 100), i > 16 ? i - 16 : 0);
        assert_true(settle.count <= 17);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settles_after_a_window),
        cmocka_unit_test(test_close_samples_share_and_none_settles_early),
        cmocka_unit_test(test_numbers_only_grow),
        cmocka_unit_test(test_a_full_ring_settles_late_not_early),
        cmocka_unit_test(test_goes_round_the_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
