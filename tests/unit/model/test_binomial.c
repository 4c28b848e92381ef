/*
 * test_binomial.c - chances of losses, to their last digit and in bursts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "model/binomial.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/near.h"

static void test_known_values(void **state)
{
    (void)state;
    double chance[MODEL_COUNT_MAX + 1];
    model_binomial(4, 0.5, chance);
    assert_near(chance[0], 1.0 / 16, 1e-14);
    assert_near(chance[1], 4.0 / 16, 1e-14);
    assert_near(chance[2], 6.0 / 16, 1e-14);
    model_binomial(40, 1e-12, chance);
    assert_near(chance[0], 1 - 40e-12, 1e-14);
    assert_near(chance[9], 273438880.0 * 1e-108, 1e-9);
    model_binomial(7, 0, chance);
    assert_near(chance[0], 1, 0);
    model_binomial(7, 1, chance);
    assert_near(chance[7], 1, 0);
}

/* Also where the least likely count is too small for a double. */
static void test_sums_to_one(void **state)
{
    (void)state;
    double chance[MODEL_COUNT_MAX + 1];
    const double shares[] = {1e-12, 1e-3, 0.3, 0.5, 0.9, 0.999999};
    for (unsigned n = 1; n <= MODEL_COUNT_MAX; n += 127)
        for (unsigned s = 0; s < sizeof shares / sizeof *shares; s++) {
            model_binomial(n, shares[s], chance);
            double sum = 0;
            double mean = 0;
            for (unsigned x = 0; x <= n; x++) {
                sum += chance[x];
                mean += x * chance[x];
                if (chance[x] > 1e-280)
                    assert_near(chance[x], exp(model_binomial_log(n, x, shares[s])), 1e-9);
            }
            assert_near(sum, 1, 1e-11);
            assert_near(mean, n * shares[s], 1e-11);
        }
}

/* Each of the 2^packets histories of a link, one by one. */
static void all_histories(const struct model_loss *loss, unsigned n, unsigned between, double *chance)
{
    const unsigned size = (unsigned)loss->chunk_packets;
    const unsigned packets = n * size + (n - 1) * between;
    for (unsigned x = 0; x <= n; x++)
        chance[x] = 0;
    for (uint32_t history = 0; history < (uint32_t)1 << packets; history++) {
        double p = history & 1 ? loss->packet : 1 - loss->packet;
        for (unsigned i = 1; i < packets; i++) {
            double lost = history >> (i - 1) & 1 ? 1 - 1 / loss->burst : loss->enter;
            p *= history >> i & 1 ? lost : 1 - lost;
        }
        unsigned x = 0;
        for (unsigned c = 0; c < n; c++)
            x += (history >> c * (size + between) & (((uint32_t)1 << size) - 1)) != 0;
        chance[x] += p;
    }
}

static void test_bursts_by_all_histories(void **state)
{
    (void)state;
    for (unsigned between = 0; between <= 3; between += 3) {
        struct model_loss loss = model_loss_of_packets(0.1, 3, 2);
        double chance[MODEL_COUNT_MAX + 1];
        double wanted[MODEL_COUNT_MAX + 1];
        model_lost_chunks(&loss, 4, between, chance);
        all_histories(&loss, 4, between, wanted);
        for (unsigned x = 0; x <= 4; x++)
            assert_near(chance[x], wanted[x], 1e-12);
    }
}

/* Far apart, bursts are as independent loss of chunks. */
static void test_bursts_far_apart(void **state)
{
    (void)state;
    struct model_loss loss = model_loss_of_packets(0.01, 20, 16);
    double apart[MODEL_COUNT_MAX + 1];
    double independent[MODEL_COUNT_MAX + 1];
    model_lost_chunks(&loss, 40, 1e6, apart);
    model_binomial(40, loss.chunk, independent);
    for (unsigned x = 0; x <= 12; x++)
        assert_near(apart[x], independent[x], 1e-9);
}

static void test_quantiles(void **state)
{
    (void)state;
    assert_near(model_binomial_quantile(1e-3, 1e9, 0.999), 0, 0);
    assert_near(model_binomial_quantile(0, 1e9, 0.999), 0, 0);
    assert_near(model_binomial_quantile(7, 7, 0.5), 7, 0);
    /* Poisson with mean 1: 98.1 % see at most 3, 99.634 at most 4, 99.941 at most 5. */
    assert_near(model_binomial_quantile(1, 1e9, 0.99), 4, 0);
    assert_near(model_binomial_quantile(1, 1e9, 0.999), 5, 0);
    /* Normal: 3.0902 standard deviations above the mean. */
    assert_near(model_binomial_quantile(1e8, 1e9, 0.999), 1e8 + 3.0902 * sqrt(9e7), 1e-7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_values),
        cmocka_unit_test(test_sums_to_one),
        cmocka_unit_test(test_bursts_by_all_histories),
        cmocka_unit_test(test_bursts_far_apart),
        cmocka_unit_test(test_quantiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
