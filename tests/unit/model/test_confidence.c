/*
 * test_confidence.c - Wilson's interval against values from elsewhere, and how often it holds the truth.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "model/confidence.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/prng.h"

#include <cmocka.h>

static void assert_near(double got, double wanted)
{
    if (!(fabs(got - wanted) <= 1e-6))
        fail_msg("%.9g, not %.9g", got, wanted);
}

/* From the formula in another language; the first is an example that many textbooks have. */
static void test_reference_values(void **state)
{
    (void)state;
    const struct {
        double hits, draws, low, high;
    } known[] = {
        {1, 10, 0.017876213, 0.404150027}, {5, 10, 0.236593090, 0.763406910},    {0, 10, 0, 0.277532799},
        {10, 10, 0.722467201, 1},          {10, 1000, 0.005440754, 0.018309469},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct model_confidence got = model_confidence_of(known[i].hits, known[i].draws);
        assert_near(got.low, known[i].low);
        assert_near(got.high, known[i].high);
    }
}

static void test_nothing_is_known_without_draws(void **state)
{
    (void)state;
    struct model_confidence got = model_confidence_of(0, 0);
    assert_true(got.low == 0 && got.high == 1);
}

/* 2000 trials of 500 draws: the truth lies inside 95 % of them. */
static void test_holds_the_truth_as_often_as_it_says(void **state)
{
    (void)state;
    const double shares[] = {0.01, 0.1, 0.5};
    struct lh_prng prng;
    lh_prng_seed(&prng, 7);
    for (size_t s = 0; s < sizeof shares / sizeof *shares; s++) {
        unsigned held = 0;
        for (unsigned trial = 0; trial < 2000; trial++) {
            double hits = 0;
            for (unsigned i = 0; i < 500; i++)
                hits += lh_prng_double(&prng) < shares[s];
            struct model_confidence got = model_confidence_of(hits, 500);
            held += got.low <= shares[s] && shares[s] <= got.high;
        }
        assert_in_range(held, 1860, 1960);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference_values),
        cmocka_unit_test(test_nothing_is_known_without_draws),
        cmocka_unit_test(test_holds_the_truth_as_often_as_it_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
