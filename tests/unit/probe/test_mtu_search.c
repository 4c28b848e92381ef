/*
 * test_mtu_search.c - every MTU is found exactly, also when packets are lost.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "probe/mtu_search.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"

/* A path of that MTU that loses that share of everything. */
static uint32_t search_path(uint32_t mtu, double loss, struct lh_prng *prng, uint32_t *rounds)
{
    struct mtu_search search;
    mtu_search_init(&search, 104, 65535);
    while (!search.done) {
        struct mtu_search_round round = mtu_search_next(&search);
        bool passed[MTU_SEARCH_SIZES_MAX] = {false};
        assert_in_range(round.count, 1, MTU_SEARCH_SIZES_MAX);
        for (uint32_t i = 0; i < round.count; i++) {
            assert_in_range(round.sizes[i], 104, 65535);
            assert_true(i == 0 || round.sizes[i] > round.sizes[i - 1]);
            for (uint32_t try = 0; try < round.tries; try++)
                passed[i] |= round.sizes[i] <= mtu && !lh_prng_chance(prng, loss);
        }
        mtu_search_on_round(&search, &round, passed);
    }
    assert_int_equal(mtu_search_next(&search).count, 0);
    *rounds = search.rounds;
    return search.passed_bytes;
}

static void test_every_mtu(void **state)
{
    (void)state;
    struct lh_prng prng;
    uint32_t rounds;
    lh_prng_seed(&prng, 1);
    for (uint32_t mtu = 104; mtu <= 65535; mtu += mtu < 10000 ? 1 : 37) {
        assert_int_equal(search_path(mtu, 0, &prng, &rounds), mtu);
        assert_in_range(rounds, 1, 7);
    }
    assert_int_equal(search_path(65535, 0, &prng, &rounds), 65535);
    assert_int_equal(rounds, 1);
    assert_int_equal(search_path(1500, 0, &prng, &rounds), 1500);
}

static void test_nothing_passes(void **state)
{
    (void)state;
    struct lh_prng prng;
    uint32_t rounds;
    lh_prng_seed(&prng, 1);
    assert_int_equal(search_path(103, 0, &prng, &rounds), 103); /* below the floor */
    assert_int_equal(search_path(0, 0, &prng, &rounds), 103);
}

static void test_loss(void **state)
{
    (void)state;
    const uint32_t mtus[] = {576, 1400, 1500, 9000, 1437, 8999, 65535, 20001};
    struct lh_prng prng;
    uint32_t rounds;
    lh_prng_seed(&prng, 5);
    for (uint32_t trial = 0; trial < 200; trial++)
        for (size_t i = 0; i < sizeof mtus / sizeof *mtus; i++)
            assert_int_equal(search_path(mtus[i], 0.1, &prng, &rounds), mtus[i]);
}

/* Half of everything lost: bounded, and never a size that does not pass. */
static void test_heavy_loss_ends(void **state)
{
    (void)state;
    struct lh_prng prng;
    uint32_t rounds;
    lh_prng_seed(&prng, 2);
    for (uint32_t trial = 0; trial < 500; trial++) {
        assert_in_range(search_path(1500, 0.5, &prng, &rounds), 103, 1500);
        assert_in_range(rounds, 1, MTU_SEARCH_ROUNDS_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_mtu),
        cmocka_unit_test(test_nothing_passes),
        cmocka_unit_test(test_loss),
        cmocka_unit_test(test_heavy_loss_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
