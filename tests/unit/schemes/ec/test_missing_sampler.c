/*
 * test_missing_sampler.c - what is missing, drawn, against its mean.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "schemes/ec/missing_sampler.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct ec_missing missing;
static struct lh_model_scheme scheme;
static struct lh_prng prng;

static void of(const char *text, const struct model_loss *loss, double chunks)
{
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    ec_missing_of(&scheme, loss, chunks, &missing);
    lh_prng_seed(&prng, 11);
}

static double mean_of(const struct model_loss *loss, unsigned count, double *error)
{
    uint8_t *cells = calloc(1, ec_missing_cells(&missing, &scheme));
    double sum = 0, squares = 0;
    assert_non_null(cells);
    for (unsigned i = 0; i < count; i++) {
        double chunks = ec_missing_draw(&missing, &scheme, loss, &prng, cells).chunks;
        sum += chunks;
        squares += chunks * chunks;
    }
    free(cells);
    *error = sqrt(fmax(0, squares / count - sum / count * sum / count) / count);
    return sum / count;
}

/* Losses one by one, and bursts that are as long as chance makes them: the mean is that of the formula. */
static void test_mean(void **state)
{
    (void)state;
    static const char *const texts[] = {"ec:mds,k=8,m=2", "ec:mds,k=8,m=2,spread=3", "ec:xor,k=8,m=4",
                                        "ec:mds,k=8,m=2,fallback=sr", "ec:xor,k=9,m=4,fallback=sr"};
    for (unsigned t = 0; t < sizeof texts / sizeof *texts; t++)
        for (int bursty = 0; bursty < 2; bursty++) {
            struct model_loss loss = model_loss_of_packets(0.1, bursty ? 1 / 0.9 : 0, 1);
            double error;
            of(texts[t], &loss, 200);
            double mean = mean_of(&loss, 4000, &error);
            if (fabs(mean - missing.mean) > 4 * error)
                fail_msg("%s: %g drawn, %g by formula, error %g", texts[t], mean, missing.mean, error);
        }
}

static void test_nothing_is_lost(void **state)
{
    (void)state;
    struct model_loss none = model_loss_of_packets(0, 0, 1);
    double error;
    of("ec:mds", &none, 1000);
    assert_true(mean_of(&none, 10, &error) == 0);
    assert_true(ec_rounds_draw(&none, 1000, &prng) == 1);
}

/* One chunk is sent until it comes: 1 / (1 - p) rounds in the mean. */
static void test_rounds(void **state)
{
    (void)state;
    struct model_loss loss = model_loss_of_packets(0.25, 1 / 0.75, 1);
    double sum = 0;
    lh_prng_seed(&prng, 12);
    for (unsigned i = 0; i < 10000; i++)
        sum += ec_rounds_draw(&loss, 1, &prng);
    assert_true(fabs(sum / 10000 - 1 / 0.75) < 4 * sqrt(0.25 / 0.75 / 0.75 / 10000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean),
        cmocka_unit_test(test_nothing_is_lost),
        cmocka_unit_test(test_rounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
