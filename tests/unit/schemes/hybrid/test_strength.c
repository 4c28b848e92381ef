/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/hybrid/strength.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "base/prng.h"

static double exact(uint32_t n, double p, uint32_t spared)
{
    double sum = 0;
    for (uint32_t x = spared + 1; x <= n; x++)
        sum +=
            exp(lgamma(n + 1.0) - lgamma(x + 1.0) - lgamma(n - x + 1.0) + x * log(p) + (n - x) * log1p(-p));
    return sum;
}

static void test_independent_losses_are_binomial(void **state)
{
    (void)state;
    static const double losses[] = {1e-6, 1e-3, 1e-2, 0.1, 0.4};
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++)
        for (uint32_t sent = 1; sent <= 255; sent += 23)
            for (uint32_t needed = 1; needed <= sent; needed += 1 + sent / 9) {
                const struct hybrid_loss loss = {losses[i], 1};
                double expected = exact(sent, losses[i], sent - needed);
                double got = hybrid_failure(&loss, sent, needed);
                assert_true(fabs(got - expected) <= 1e-9 * expected + 1e-300);
            }
}

/* Poisson bursts of geometric lengths, counted. */
static double counted(double mean, double burst, uint32_t spared, uint32_t runs)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, 7);
    uint32_t more = 0;
    for (uint32_t i = 0; i < runs; i++) {
        uint32_t losses = 0;
        double left = exp(-mean / burst);
        for (double product = lh_prng_double(&prng); product > left; product *= lh_prng_double(&prng))
            do
                losses++;
            while (!lh_prng_chance(&prng, 1 / burst));
        more += losses > spared;
    }
    return (double)more / runs;
}

static void test_bursts_are_counted_whole(void **state)
{
    (void)state;
    const struct hybrid_loss loss = {0.02, 4};
    for (uint32_t spared = 0; spared <= 20; spared += 5) {
        double expected = counted(100 * 0.02, 4, spared, 200000);
        assert_true(fabs(hybrid_failure(&loss, 100, 100 - spared) - expected) < 0.004);
    }
    const struct hybrid_loss alone = {0.02, 1};
    assert_true(hybrid_failure(&loss, 100, 90) > 10 * hybrid_failure(&alone, 100, 90));
}

static void test_nothing_and_too_little(void **state)
{
    (void)state;
    const struct hybrid_loss loss = {0.01, 1}, none = {0, 1};
    assert_true(hybrid_failure(&loss, 5, 0) == 0);
    assert_true(hybrid_failure(&loss, 4, 5) == 1);
    assert_true(hybrid_failure(&none, 5, 5) == 0);
    assert_int_equal(hybrid_strength(&loss, 0, 0, 1e-6, 10), 0);
    assert_int_equal(hybrid_strength(&loss, 3, 5, 1, 10), 2);
    assert_int_equal(hybrid_strength(&loss, 3, 9, 1, 4), 4);
    assert_int_equal(hybrid_strength(&loss, 200, 200, 1e-300, 3), 3);
}

/* The least number: one less is not enough. All are tried, as a slower search would. */
static void test_strength_is_the_least(void **state)
{
    (void)state;
    static const double losses[] = {1e-6, 1e-3, 1e-2, 0.1, 0.3}, bursts[] = {1, 1.05, 3, 20};
    for (size_t i = 0; i < 20; i++)
        for (uint32_t size = 1; size <= 240; size += 17)
            for (double failure = 1e-2; failure > 1e-10; failure /= 30)
                for (uint32_t missing = 0; missing < 4; missing++) {
                    const struct hybrid_loss loss = {losses[i / 4], bursts[i % 4]};
                    uint32_t rows = missing, most = 95;
                    while (rows < most &&
                           hybrid_failure(&loss, size - 1 + rows, size - 1 + missing) > failure)
                        rows++;
                    assert_int_equal(hybrid_strength(&loss, size - 1, size - 1 + missing, failure, most),
                                     rows);
                }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_independent_losses_are_binomial),
        cmocka_unit_test(test_bursts_are_counted_whole),
        cmocka_unit_test(test_nothing_and_too_little),
        cmocka_unit_test(test_strength_is_the_least),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
