/*
 * test_summary.c - mean and percentiles of samples.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/model.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/near.h"

#include "base/prng.h"

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Against sorting: any number of samples, many equal, in order and not. */
static void test_is_what_sorting_finds(void **state)
{
    (void)state;
    static double values[3000];
    static double sorted[3000];
    struct lh_prng prng;
    lh_prng_seed(&prng, 1);
    for (size_t count = 1; count <= 3000; count = count * 3 / 2 + 1)
        for (unsigned kind = 0; kind < 4; kind++) {
            double sum = 0;
            for (size_t i = 0; i < count; i++) {
                double drawn = kind == 0   ? lh_prng_double(&prng)
                               : kind == 1 ? (double)lh_prng_below(&prng, 3)
                               : kind == 2 ? (double)i
                                           : (double)(count - i);
                values[i] = sorted[i] = drawn;
                sum += drawn;
            }
            struct lh_model_summary summary;
            qsort(sorted, count, sizeof *sorted, ascending);
            assert_int_equal(lh_model_summarize(values, count, &summary), 0);
            assert_near(summary.mean_s, sum / (double)count, 1e-12);
            assert_near(summary.p50_s, sorted[(count + 1) / 2 - 1], 0);
            assert_near(summary.p99_s, sorted[(size_t)ceil(0.99 * (double)count) - 1], 0);
            assert_near(summary.p999_s, sorted[(size_t)ceil(0.999 * (double)count) - 1], 0);
            qsort(values, count, sizeof *values, ascending); /* none was lost */
            assert_memory_equal(values, sorted, count * sizeof *values);
        }
}

static void test_error_of_the_mean(void **state)
{
    (void)state;
    double values[] = {1, 3, 1, 3};
    struct lh_model_summary summary;
    assert_int_equal(lh_model_summarize(values, 4, &summary), 0);
    assert_near(summary.mean_s, 2, 0);
    assert_near(summary.mean_error_s, sqrt(4.0 / 3 / 4), 1e-12);
    assert_int_equal(lh_model_summarize(values, 1, &summary), 0);
    assert_near(summary.mean_error_s, 0, 0);
}

static void test_refused(void **state)
{
    (void)state;
    double values[] = {1, NAN};
    struct lh_model_summary summary = {.mean_s = 7};
    assert_int_equal(lh_model_summarize(values, 0, &summary), -LH_EINVAL);
    assert_int_equal(lh_model_summarize(NULL, 1, &summary), -LH_EINVAL);
    assert_int_equal(lh_model_summarize(values, 2, &summary), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "sample 1"));
    assert_near(summary.mean_s, 7, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_is_what_sorting_finds),
        cmocka_unit_test(test_error_of_the_mean),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
