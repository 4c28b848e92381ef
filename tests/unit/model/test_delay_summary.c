/*
 * test_delay_summary.c - by hand, and sorted rows of every shape.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "model/delay_summary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/prng.h"

#include <cmocka.h>

static void test_few(void **state)
{
    (void)state;
    struct model_delays spread = model_delays_of(NULL, 0);
    assert_true(spread.samples == 0 && spread.maximum_ns == 0);
    spread = model_delays_of((lh_time[]){7}, 1);
    assert_true(spread.samples == 1 && spread.minimum_ns == 7 && spread.p50_ns == 7 && spread.p99_ns == 7);
    assert_true(spread.maximum_ns == 7 && spread.mean_ns == 7 && spread.jitter_ns == 0);
}

/* Distances 2, 6, 3: jitter 11 / 3. The median of four is the second. */
static void test_by_hand(void **state)
{
    (void)state;
    struct model_delays spread = model_delays_of((lh_time[]){4, 2, 8, 5}, 4);
    assert_true(spread.minimum_ns == 2 && spread.p50_ns == 4 && spread.maximum_ns == 8);
    assert_true(spread.p99_ns == 8 && spread.mean_ns == 4 && spread.jitter_ns == 3);
}

static void test_ranks_of_any_order(void **state)
{
    (void)state;
    lh_time samples[200];
    struct lh_prng prng;
    lh_prng_seed(&prng, 1);
    for (size_t i = 0; i < 200; i++)
        samples[i] = i + 1;
    for (size_t i = 200; i-- > 1;) {
        size_t other = (size_t)lh_prng_below(&prng, i + 1);
        lh_time moved = samples[i];
        samples[i] = samples[other];
        samples[other] = moved;
    }
    struct model_delays spread = model_delays_of(samples, 200);
    assert_true(spread.minimum_ns == 1 && spread.p50_ns == 100 && spread.p99_ns == 198);
    assert_true(spread.maximum_ns == 200 && spread.mean_ns == 100);
    for (size_t i = 0; i < 200; i++)
        assert_true(samples[i] == i + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_ranks_of_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
