/*
 * test_path_line_histogram.c - quantiles are off by at most a sixteenth, and never above the largest time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/path/path_line.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void an_empty_one_has_zeros(void **state)
{
    (void)state;
    static struct path_histogram histogram;
    assert_int_equal(path_histogram_quantile_ns(&histogram, 0.99), 0);
    assert_true(path_histogram_mean_ns(&histogram) == 0);
}

static void buckets_follow_one_another(void **state)
{
    (void)state;
    unsigned last = 0;
    for (uint64_t ns = 0; ns < 1u << 20; ns++) {
        unsigned bucket = bucket_of(ns);
        assert_in_range(bucket, last, last + 1);
        assert_true(bucket_end(bucket) >= (int64_t)ns && bucket_end(bucket) <= (int64_t)(ns + ns / 16));
        last = bucket;
    }
    assert_int_equal(bucket_of(UINT64_MAX), PATH_HISTOGRAM_BUCKETS - 1);
}

static void quantiles_are_near(void **state)
{
    (void)state;
    static struct path_histogram histogram;
    for (int64_t i = 1; i <= 10000; i++)
        path_histogram_add(&histogram, i * 1000);
    path_histogram_add(&histogram, -5);
    assert_in_range(path_histogram_quantile_ns(&histogram, 0.5), 5000000 - 1000, 5000000 * 17 / 16);
    assert_in_range(path_histogram_quantile_ns(&histogram, 0.99), 9900000 - 1000, 10000000);
    assert_int_equal(path_histogram_quantile_ns(&histogram, 1), 10000000);
    assert_int_equal(path_histogram_quantile_ns(&histogram, 0), 0);
    assert_in_range((int64_t)path_histogram_mean_ns(&histogram), 4999000, 5001000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_one_has_zeros),
        cmocka_unit_test(buckets_follow_one_another),
        cmocka_unit_test(quantiles_are_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
