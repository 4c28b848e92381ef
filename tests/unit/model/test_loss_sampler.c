/*
 * test_loss_sampler.c - draws of losses have the chances that they are to have.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "model/loss_sampler.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/near.h"

/* A mean of so many draws lies within five standard errors. Seeds are fixed: no test changes its mind. */
static void near_mean(double sum, double count, double mean, double variance)
{
    double error = sqrt(variance / count);
    if (!(fabs(sum / count - mean) <= 5 * error))
        fail_msg("a mean of %g, not %g within 5 of %g", sum / count, mean, error);
}

static void test_gaps(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 1);
    const double losses[] = {1e-9, 0.01, 0.5, 0.99};
    for (unsigned l = 0; l < 4; l++) {
        double p = losses[l];
        double sum = 0;
        for (int i = 0; i < 20000; i++) {
            double gap = model_draw_gap(&prng, log1p(-p));
            assert_true(gap >= 0 && gap == floor(gap));
            sum += gap;
        }
        near_mean(sum, 20000, (1 - p) / p, (1 - p) / (p * p));
    }
    assert_true(isinf(model_draw_gap(&prng, 0)));
    assert_near(model_draw_gap(&prng, -INFINITY), 0, 0);
}

/* Few and many, likely and unlikely: both ways to draw. */
static void test_binomial(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 2);
    const struct {
        double n;
        double p;
    } cases[] = {{1, 0.3},   {40, 0.01},   {1e9, 1e-9}, {40, 0.6},
                 {100, 0.5}, {1000, 0.03}, {1e7, 0.2},  {50, 0.97}};
    for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++) {
        const double n = cases[c].n;
        const double p = cases[c].p;
        const double variance = n * p * (1 - p);
        double sum = 0;
        double squares = 0;
        for (int i = 0; i < 20000; i++) {
            double drawn = model_draw_binomial(&prng, n, p);
            assert_true(drawn >= 0 && drawn <= n && drawn == floor(drawn));
            sum += drawn;
            squares += (drawn - n * p) * (drawn - n * p);
        }
        near_mean(sum, 20000, n * p, variance);
        near_mean(squares, 20000, variance, 3 * variance * variance + variance);
    }
    assert_near(model_draw_binomial(&prng, 1e9, 0), 0, 0);
    assert_near(model_draw_binomial(&prng, 1e9, 1), 1e9, 0);
    assert_near(model_draw_binomial(&prng, 0, 0.5), 0, 0);
}

/* Each count of a binomial that is drawn by rejection is as likely as it is to be. */
static void test_binomial_counts(void **state)
{
    (void)state;
    struct lh_prng prng;
    static unsigned seen[101];
    lh_prng_seed(&prng, 3);
    for (int i = 0; i < 100000; i++)
        seen[(unsigned)model_draw_binomial(&prng, 100, 0.3)]++;
    double chance = pow(0.7, 100);
    for (unsigned x = 0; x <= 100; x++) {
        double error = sqrt(chance * (1 - chance) / 1e5);
        assert_true(fabs(seen[x] / 1e5 - chance) <= 5 * error + 1e-5);
        chance *= (100.0 - x) / (x + 1) * (0.3 / 0.7);
    }
}

/* Rows of lost packets: as many, and as long, as the link says, also where it is looked at in pieces. */
static void look(const struct model_loss *loss, double piece, double between, double *lost, double *rows,
                 double *sent)
{
    struct lh_prng prng;
    struct model_bursts bursts;
    struct model_burst row;
    double told = -1;
    lh_prng_seed(&prng, 4);
    model_bursts_start(&bursts, loss);
    *lost = *rows = *sent = 0;
    for (double at = 0; at < 3e7; at += piece + between) {
        model_bursts_skip(&bursts, &prng, at);
        *sent += piece;
        while (model_bursts_next(&bursts, &prng, at + piece, &row)) {
            assert_true(row.first >= at && row.first > told + (row.first > at) && row.last >= row.first);
            assert_true(row.last < at + piece);
            told = row.last;
            *lost += row.last - row.first + 1;
            *rows += 1;
        }
    }
}

static void test_bursts(void **state)
{
    (void)state;
    struct model_loss loss = model_loss_of_packets(0.01, 12, 16);
    double lost;
    double rows;
    double sent;
    look(&loss, 3.1e7, 0, &lost, &rows, &sent);
    assert_near(lost / sent, 0.01, 0.03);
    assert_near(lost / rows, 12, 0.03);
    look(&loss, 7, 3, &lost, &rows, &sent); /* in pieces, with breaks */
    assert_near(lost / sent, 0.01, 0.03);
    look(&loss, 7, 0, &lost, &rows, &sent); /* a row that goes on is told again: 1 / 7 of its packets */
    assert_near(lost / sent, 0.01, 0.03);
    assert_near(lost / rows, 12 / (1 + 11.0 / 7), 0.05);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_binomial),
        cmocka_unit_test(test_binomial_counts),
        cmocka_unit_test(test_bursts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
