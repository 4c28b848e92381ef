/*
 * test_series.c - the closed sum against the sum, term by term.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "model/series.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/near.h"

static double term_by_term(double first, double rise, unsigned count)
{
    double sum = 0;
    for (unsigned j = 0; j < count; j++)
        sum += -expm1(first + j * rise);
    return sum;
}

static void test_is_the_sum(void **state)
{
    (void)state;
    const double firsts[] = {-1e-15, -1e-6, -1.9e-3, -2.1e-3, -0.5, -30, -800};
    const unsigned counts[] = {1, 2, 3, 4, 17, 1000};
    for (unsigned f = 0; f < sizeof firsts / sizeof *firsts; f++)
        for (unsigned c = 0; c < sizeof counts / sizeof *counts; c++)
            for (int part = 0; part <= 4; part++) { /* from level to all the way up to 0 */
                double rise = counts[c] > 1 ? -firsts[f] * part / 4 / (counts[c] - 1) : 0;
                assert_near(model_series_missing(firsts[f], rise, counts[c]),
                            term_by_term(firsts[f], rise, counts[c]), 2e-12);
            }
}

static void test_ends(void **state)
{
    (void)state;
    assert_near(model_series_missing(-1, 0.1, 0), 0, 0);
    assert_near(model_series_missing(0, 0, 1e9), 0, 0);
    assert_near(model_series_missing(-1e-12, 0, 1e9), 1e-3, 1e-9);
    /* 10^9 terms that end at 0: half of the first, on average. */
    assert_near(model_series_missing(-1e-9, 1e-18, 1e9), 0.5, 1e-8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_is_the_sum),
        cmocka_unit_test(test_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
