/*
 * test_bounded_missing.c - what is missing at a deadline, against sums chunk by chunk.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "schemes/sr/bounded_missing.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/binomial.h"

#include "support/near.h"

static const struct {
    double loss;
    double overhead;
    unsigned chunks;
} cases[] = {
    {0.1, 7.25, 1},  {0.1, 7.25, 9}, {0.1, 7.25, 50},   {0.5, 1, 50},  {0.3, 2.5, 200},  {0.01, 30.25, 20},
    {0.01, 30, 300}, {0.9, 5.5, 40}, {0.2, 1.125, 100}, {0, 7.25, 50}, {0.001, 100, 64}, {0.99, 3.125, 30},
};
#define CASES      (sizeof cases / sizeof *cases)
#define CHUNKS_MAX 300

/* Chance that a chunk is missing: so many chunks started after it. */
static double missing(double loss, double overhead, double behind, double s)
{
    return pow(loss, floor((s + behind) / overhead) + 1);
}

static void test_mean_is_the_sum(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CASES; i++)
        for (double s = 0; s < 12 * cases[i].overhead; s += 0.4375) {
            double sum = 0;
            for (unsigned behind = 0; behind < cases[i].chunks; behind++)
                sum += missing(cases[i].loss, cases[i].overhead, behind, s);
            assert_near(sr_bounded_missing(cases[i].loss, cases[i].overhead, cases[i].chunks, s), sum,
                        1e-12);
        }
}

static void test_many_chunks(void **state)
{
    (void)state;
    assert_near(sr_bounded_missing(1e-12, 5e9, 1e9, 0), 1e-3, 1e-12); /* all sent once */
    assert_near(sr_bounded_missing(1e-12, 5e9, 1e9, 5e9), 1e-15, 1e-12);
    /* Half of them twice, the rest once. */
    assert_near(sr_bounded_missing(1e-3, 5e8, 1e9, 0), 5e8 * 1e-3 + 5e8 * 1e-6, 1e-12);
}

/* P(N <= most), N the number missing, chunk by chunk. */
static double reached(unsigned i, double s, unsigned most)
{
    double chance[CHUNKS_MAX + 1] = {1}, sum = 0;
    for (unsigned behind = 0; behind < cases[i].chunks; behind++) {
        double p = missing(cases[i].loss, cases[i].overhead, behind, s);
        for (unsigned x = behind + 1; x > 0; x--)
            chance[x] = chance[x] * (1 - p) + chance[x - 1] * p;
        chance[0] *= 1 - p;
    }
    for (unsigned x = 0; x <= most; x++)
        sum += chance[x];
    return sum;
}

/* What is promised is kept; and where all were sent once nothing less would do. */
static void test_quantiles_are_kept(void **state)
{
    (void)state;
    const double shares[] = {0.5, 0.99, 0.999};
    for (unsigned i = 0; i < CASES; i++)
        for (double s = 0; s < 4 * cases[i].overhead; s += cases[i].overhead / 3)
            for (unsigned share = 1; share < 3; share++) {
                double mean = sr_bounded_missing(cases[i].loss, cases[i].overhead, cases[i].chunks, s);
                double most = model_binomial_quantile(mean, cases[i].chunks, shares[share]);
                assert_true(most == floor(most) && most <= cases[i].chunks);
                assert_true(reached(i, s, (unsigned)most) >= shares[share] - 1e-12);
                bool once = s + cases[i].chunks - 1 < cases[i].overhead;
                assert_true(!once || most == 0 || reached(i, s, (unsigned)most - 1) < shares[share]);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean_is_the_sum),
        cmocka_unit_test(test_many_chunks),
        cmocka_unit_test(test_quantiles_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
