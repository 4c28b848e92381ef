/*
 * test_prng.c - the published outputs, uniformity, independence.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Published reference output of xoshiro256** for the state 1, 2, 3, 4. */
static void test_reference_outputs(void **state)
{
    (void)state;
    static const uint64_t expected[] = {
        11520u,
        0u,
        1509978240u,
        1215971899390074240u,
        1216172134540287360u,
        607988272756665600u,
        16172922978634559625u,
        8476171486693032832u,
        10595114339597558777u,
        2904607092377533576u,
    };
    struct lh_prng prng = {{1, 2, 3, 4}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_true(lh_prng_next(&prng) == expected[i]);
}

/* Published reference output of splitmix64 for the seed 1234567. */
static void test_seed_is_spread_by_splitmix64(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 1234567);
    assert_true(prng.state[0] == 6457827717110365317u);
    assert_true(prng.state[1] == 3203168211198807973u);
    assert_true(prng.state[2] == 9817491932198370423u);
    assert_true(prng.state[3] == 4593380528125082431u);
}

static void test_seed_zero_is_good(void **state)
{
    (void)state;
    struct lh_prng prng;
    uint64_t all = 0;
    lh_prng_seed(&prng, 0);
    for (int i = 0; i < 4; i++)
        all |= lh_prng_next(&prng);
    assert_true(all != 0);
}

static void test_fork_does_not_move_the_parent(void **state)
{
    (void)state;
    struct lh_prng parent;
    lh_prng_seed(&parent, 5);
    struct lh_prng before = parent;
    struct lh_prng first = lh_prng_fork(&parent, 1);
    struct lh_prng second = lh_prng_fork(&parent, 2);
    struct lh_prng again = lh_prng_fork(&parent, 1);
    assert_memory_equal(&parent, &before, sizeof parent);
    assert_memory_equal(&first, &again, sizeof first);
    assert_memory_not_equal(&first, &second, sizeof first);
}

static void test_forks_share_no_output(void **state)
{
    (void)state;
    struct lh_prng parents[2];
    struct lh_prng prngs[8];
    lh_prng_seed(&parents[0], 5);
    lh_prng_seed(&parents[1], 6);
    for (unsigned i = 0; i < 8; i++)
        prngs[i] = lh_prng_fork(&parents[i / 4], i % 4);
    for (int step = 0; step < 100; step++) {
        uint64_t outputs[8];
        for (unsigned i = 0; i < 8; i++) {
            outputs[i] = lh_prng_next(&prngs[i]);
            for (unsigned j = 0; j < i; j++)
                assert_true(outputs[i] != outputs[j]);
        }
    }
}

static void test_below_stays_below_and_is_even(void **state)
{
    (void)state;
    struct lh_prng prng;
    unsigned counts[6] = {0};
    lh_prng_seed(&prng, 7);
    for (int i = 0; i < 60000; i++) {
        uint64_t draw = lh_prng_below(&prng, 6);
        assert_true(draw < 6);
        counts[draw]++;
    }
    /* Standard deviation 91. */
    for (int i = 0; i < 6; i++)
        assert_in_range(counts[i], 9600, 10400);
}

/* A bound of 3/4 of the range: remainders alone would give the lower third twice as often. */
static void test_below_has_no_bias_for_large_bounds(void **state)
{
    (void)state;
    struct lh_prng prng;
    const uint64_t bound = (uint64_t)3 << 62;
    unsigned lower_third = 0;
    lh_prng_seed(&prng, 8);
    for (int i = 0; i < 30000; i++) {
        uint64_t draw = lh_prng_below(&prng, bound);
        assert_true(draw < bound);
        lower_third += draw < bound / 3;
    }
    assert_in_range(lower_third, 9600, 10400);
}

static void test_below_one_is_zero(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 9);
    for (int i = 0; i < 100; i++)
        assert_true(lh_prng_below(&prng, 1) == 0);
}

static void test_double_is_in_range_with_the_right_mean(void **state)
{
    (void)state;
    struct lh_prng prng;
    double sum = 0;
    lh_prng_seed(&prng, 10);
    for (int i = 0; i < 100000; i++) {
        double draw = lh_prng_double(&prng);
        assert_true(draw >= 0 && draw < 1);
        sum += draw;
    }
    /* Standard deviation of the mean 0.0009. */
    assert_true(sum / 100000 > 0.495 && sum / 100000 < 0.505);
}

static void test_double_never_reaches_one(void **state)
{
    (void)state;
    /* State 1 gives rotl(state * 5, 7) * 9: this one makes the largest output. */
    struct lh_prng prng = {{0, 0, 0, 0}};
    uint64_t inverse_of_9 = 0x8E38E38E38E38E39u;
    uint64_t inverse_of_5 = 0xCCCCCCCCCCCCCCCDu;
    uint64_t rotated = UINT64_MAX * inverse_of_9;
    prng.state[1] = (rotated >> 7 | rotated << 57) * inverse_of_5;
    struct lh_prng copy = prng;
    assert_true(lh_prng_next(&copy) == UINT64_MAX);
    assert_true(lh_prng_double(&prng) < 1);
}

static void test_chance(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 11);
    struct lh_prng before = prng;
    assert_false(lh_prng_chance(&prng, 0));
    assert_true(lh_prng_chance(&prng, 1));
    assert_memory_equal(&prng, &before, sizeof prng); /* nothing was drawn */
    unsigned hits = 0;
    for (int i = 0; i < 100000; i++)
        hits += lh_prng_chance(&prng, 0.25);
    /* Standard deviation 137. */
    assert_in_range(hits, 24400, 25600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference_outputs),
        cmocka_unit_test(test_seed_is_spread_by_splitmix64),
        cmocka_unit_test(test_seed_zero_is_good),
        cmocka_unit_test(test_fork_does_not_move_the_parent),
        cmocka_unit_test(test_forks_share_no_output),
        cmocka_unit_test(test_below_stays_below_and_is_even),
        cmocka_unit_test(test_below_has_no_bias_for_large_bounds),
        cmocka_unit_test(test_below_one_is_zero),
        cmocka_unit_test(test_double_is_in_range_with_the_right_mean),
        cmocka_unit_test(test_double_never_reaches_one),
        cmocka_unit_test(test_chance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
