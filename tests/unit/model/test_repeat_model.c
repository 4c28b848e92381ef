/*
 * test_repeat.c - appendix A in closed sums, against its integral chunk by chunk.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "model/repeat.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/near.h"

static struct model_repeat repeat;

static void start(double loss, double overhead, double chunks)
{
    struct model_loss independent = model_loss_of_chunks(loss, 0, 1);
    model_repeat_start(&repeat, &independent, overhead, chunks);
}

/* Appendix A as it stands, at q behind the start of the last chunk: 1 - P(max X_i >= q). */
static double not_reached(double loss, double overhead, unsigned chunks, double q)
{
    double product = 1;
    for (unsigned behind = 0; behind < chunks; behind++)
        product *= 1 - pow(loss, ceil((q + behind) / overhead));
    return product;
}

/* All steps lie on multiples of 1 / 8 when the overhead does. */
static double integral(double loss, double overhead, unsigned chunks)
{
    double sum = 0;
    for (double q = 1.0 / 16;; q += 1.0 / 8) {
        double tail = 1 - not_reached(loss, overhead, chunks, q);
        sum += tail / 8;
        if (tail < 1e-15)
            return sum;
    }
}

static const struct {
    double loss;
    double overhead;
    unsigned chunks;
} cases[] = {
    {0.1, 7.25, 1},    {0.1, 7.25, 3},    {0.1, 7.25, 7},    {0.1, 7.25, 8},
    {0.1, 7.25, 9},    {0.1, 7.25, 50},   {0.5, 7.375, 50},  {0.5, 1, 50},
    {0.3, 2.5, 200},   {0.01, 30.25, 20}, {0.01, 30, 300},   {0.9, 5.5, 40},
    {0.99, 3.125, 30}, {0.001, 100, 64},  {0.2, 1.125, 100}, {0.7, 1.5, 500},
};
#define CASES (sizeof cases / sizeof *cases)

static void test_mean_is_the_integral(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CASES; i++) {
        start(cases[i].loss, cases[i].overhead, cases[i].chunks);
        assert_near(model_repeat_excess(&repeat, cases[i].chunks),
                    integral(cases[i].loss, cases[i].overhead, cases[i].chunks), 1e-8);
    }
}

static void test_distribution_is_the_product(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CASES; i++) {
        start(cases[i].loss, cases[i].overhead, cases[i].chunks);
        for (double q = 1.0 / 16; q < 12 * cases[i].overhead; q += 0.625)
            assert_near(model_repeat_cdf(&repeat, cases[i].chunks, q),
                        not_reached(cases[i].loss, cases[i].overhead, cases[i].chunks, q), 1e-12);
    }
}

/* A quantile is where the distribution first reaches the share, and not before. */
static void test_quantiles_invert(void **state)
{
    (void)state;
    const double shares[] = {0, 0.01, 0.5, 0.99, 0.999, 1 - 1e-9};
    for (unsigned i = 0; i < CASES; i++) {
        start(cases[i].loss, cases[i].overhead, cases[i].chunks);
        for (unsigned s = 0; s < sizeof shares / sizeof *shares; s++) {
            double at = model_repeat_quantile(&repeat, cases[i].chunks, shares[s]);
            assert_true(model_repeat_cdf(&repeat, cases[i].chunks, at) >= shares[s]);
            assert_true(at == 0 || model_repeat_cdf(&repeat, cases[i].chunks, at * (1 - 1e-9)) < shares[s]);
        }
    }
}

/* One chunk: RTO + T_inj for each of p / (1 - p) losses, to all digits. */
static void test_one_chunk(void **state)
{
    (void)state;
    const double losses[] = {1e-12, 1e-9, 1e-4, 0.01, 0.5, 0.9};
    for (unsigned i = 0; i < sizeof losses / sizeof *losses; i++) {
        start(losses[i], 57221.46, 1);
        assert_near(model_repeat_excess(&repeat, 1), 57221.46 * losses[i] / (1 - losses[i]), 1e-12);
    }
    start(0, 10, 1e9);
    assert_near(model_repeat_excess(&repeat, 1e9), 0, 0);
    assert_near(model_repeat_cdf(&repeat, 1e9, 0), 1, 0);
    assert_near(model_repeat_cdf(&repeat, 1e9, -1e-9), 0, 0);
}

/* With many chunks and one loss among them at most, the last A of them count: each of the losses p costs
 * A - d when d chunks follow; to first order, p A (A - 1) / 2 and what is left of the last step. */
static void test_rare_loss_in_many_chunks(void **state)
{
    (void)state;
    const double overhead = 1001;
    for (double chunks = 1e4; chunks <= 1e9; chunks *= 10) {
        start(1e-12, overhead, chunks);
        double sum = 1e-12 * overhead * (overhead + 1) / 2;
        assert_near(model_repeat_excess(&repeat, chunks), sum, 1e-6);
    }
}

static void test_grows(void **state)
{
    (void)state;
    double before = 0;
    for (double chunks = 1; chunks <= 1e9; chunks *= 10) {
        start(0.5, 915528.34, chunks);
        double excess = model_repeat_excess(&repeat, chunks);
        assert_true(isfinite(excess) && excess >= before * (1 - 1e-12)); /* enough is enough */
        before = excess;
    }
    before = 0;
    for (double loss = 1e-12; loss < 0.99; loss *= 1.5) {
        start(loss, 1e3, 1e5);
        double excess = model_repeat_excess(&repeat, 1e5);
        assert_true(excess > before);
        before = excess;
    }
}

/* Between two whole numbers of chunks there is no leap: the paper's formula is put a mean number in. */
static void test_parts_of_chunks(void **state)
{
    (void)state;
    start(0.01, 57221.5, 20);
    double sixteen = model_repeat_excess(&repeat, 16);
    double seventeen = model_repeat_excess(&repeat, 17);
    double between = model_repeat_excess(&repeat, 16.5);
    assert_true(sixteen < between && between < seventeen);
    assert_near(between, (sixteen + seventeen) / 2, 1e-4);
    assert_near(model_repeat_excess(&repeat, 1e-6), 57221.5 * 1e-6 * -log1p(-0.01), 0.02);
}

/* That nothing is lost of a short message is exact with bursts, too: its first packet passes as any does, and
 * none of the others begins a burst. */
static void test_bursts_that_miss(void **state)
{
    (void)state;
    for (double chunks = 1; chunks <= 1000; chunks *= 10) {
        struct model_loss loss = model_loss_of_packets(0.05, 40, 4);
        model_repeat_start(&repeat, &loss, 2000, chunks);
        assert_near(model_repeat_cdf(&repeat, chunks, 0), 0.95 * pow(1 - loss.enter, 4 * chunks - 1),
                    1e-12);
        double mean = model_repeat_excess(&repeat, chunks);
        double sum = 0;
        for (double q = 0.5; q < 40000; q++)
            sum += 1 - model_repeat_cdf(&repeat, chunks, q);
        assert_near(sum, mean, 1e-6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean_is_the_integral),     cmocka_unit_test(test_distribution_is_the_product),
        cmocka_unit_test(test_quantiles_invert),         cmocka_unit_test(test_one_chunk),
        cmocka_unit_test(test_rare_loss_in_many_chunks), cmocka_unit_test(test_grows),
        cmocka_unit_test(test_parts_of_chunks),          cmocka_unit_test(test_bursts_that_miss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
