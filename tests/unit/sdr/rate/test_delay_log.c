/*
 * test_delay_log.c - delays above the minimum, and their quantiles.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/rate/delay_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_empty(void **state)
{
    (void)state;
    struct delay_log log = {.buckets = (uint32_t[DELAY_LOG_BUCKETS]){0}};
    assert_int_equal(delay_log_quantile(&log, 0.99), 0);
}

/* Each delay comes back at most a quarter of an octave too long, and never too short. */
static void test_precision(void **state)
{
    (void)state;
    for (lh_time delay = 0; delay < (lh_time)1 << 47; delay = delay * 9 / 8 + 1) {
        struct delay_log log = {.buckets = (uint32_t[DELAY_LOG_BUCKETS]){0}};
        delay_log_add(&log, 1000);
        for (uint32_t i = 0; i < 99; i++)
            delay_log_add(&log, 1000 + delay);
        lh_time found = delay_log_quantile(&log, 0.99);
        assert_true(found >= delay && found <= delay + delay / 4);
    }
}

static void test_quantiles(void **state)
{
    (void)state;
    struct delay_log log = {.buckets = (uint32_t[DELAY_LOG_BUCKETS]){0}};
    delay_log_add(&log, 500);
    for (uint32_t i = 1; i < 1000; i++)
        delay_log_add(&log, 500 + (i >= 985 ? 1000000 : 0));
    assert_int_equal(log.minimum_ns, 500);
    assert_int_equal(delay_log_quantile(&log, 0.98), 0);
    assert_true(delay_log_quantile(&log, 0.99) >= 1000000);
}

/* Those of before there were buckets are no part of the quantiles. */
static void test_buckets_that_come_later(void **state)
{
    (void)state;
    struct delay_log log = {0};
    for (uint32_t i = 0; i < 100; i++)
        delay_log_add(&log, 1000);
    assert_int_equal(delay_log_quantile(&log, 0.99), 0);
    log.buckets = (uint32_t[DELAY_LOG_BUCKETS]){0};
    assert_int_equal(delay_log_quantile(&log, 0.99), 0);
    for (uint32_t i = 0; i < 100; i++)
        delay_log_add(&log, 9000);
    assert_in_range(delay_log_quantile(&log, 0.99), 8000, 10000);
}

static void test_smoothed(void **state)
{
    (void)state;
    struct delay_log log = {.buckets = (uint32_t[DELAY_LOG_BUCKETS]){0}};
    delay_log_add(&log, 1000);
    for (uint32_t i = 0; i < 100; i++)
        delay_log_add(&log, 9000);
    assert_in_range(log.smoothed_ns, 7900, 8000);
    delay_log_add(&log, (lh_time)1 << 60); /* beyond the last bucket */
    assert_int_equal(log.samples, 102);
}

/* The shortest of the last samples: one that is not held up by jitter shows that no queue stands. */
static void test_standing(void **state)
{
    (void)state;
    struct delay_log log = {0};
    delay_log_add(&log, 1000);
    for (uint32_t i = 1; i < DELAY_LOG_RECENT; i++) {
        assert_int_equal(delay_log_standing(&log), 0);
        delay_log_add(&log, 9000);
    }
    assert_int_equal(delay_log_standing(&log), 0); /* of the first sample */
    for (uint32_t i = 0; i < DELAY_LOG_RECENT; i++)
        delay_log_add(&log, 9000 + i);
    assert_int_equal(delay_log_standing(&log), 8000);
    delay_log_add(&log, 1500);
    assert_int_equal(delay_log_standing(&log), 500);
    for (uint32_t i = 1; i < 2 * DELAY_LOG_RECENT; i++) {
        assert_int_equal(delay_log_standing(&log), 500);
        delay_log_add(&log, 9000);
    }
    assert_int_equal(delay_log_standing(&log), 8000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),     cmocka_unit_test(test_precision),
        cmocka_unit_test(test_quantiles), cmocka_unit_test(test_buckets_that_come_later),
        cmocka_unit_test(test_smoothed),  cmocka_unit_test(test_standing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
