/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/choose/found_sites.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"

#define RANKS_MAX 48u
#define US        UINT64_C(1000)
#define MS        UINT64_C(1000000)

static struct path_figures pairs[RANKS_MAX * RANKS_MAX];
static uint32_t site_at[RANKS_MAX];

/* inside, across: round trips, to which up to a share of noise is added, each direction by itself. */
static void set_pairs(uint32_t ranks, uint32_t sites, uint64_t inside_ns, uint64_t across_ns,
                      uint64_t noise_ns, struct lh_prng *prng)
{
    for (uint32_t a = 0; a < ranks; a++)
        for (uint32_t b = 0; b < ranks; b++)
            pairs[a * ranks + b].rtt_ns = (a % sites == b % sites ? inside_ns : across_ns) +
                                          (noise_ns > 0 ? lh_prng_below(prng, noise_ns) : 0);
}

static void find(uint32_t ranks)
{
    uint64_t joins[3 * RANKS_MAX];
    found_sites(pairs, ranks, site_at, joins);
}

static void assert_sites(uint32_t ranks, uint32_t sites)
{
    for (uint32_t r = 0; r < ranks; r++)
        assert_int_equal(site_at[r], r % sites);
}

static void test_found(void **state)
{
    struct lh_prng prng;
    (void)state;
    lh_prng_seed(&prng, 1);
    for (uint32_t sites = 1; sites <= 5; sites++)
        for (uint32_t ranks = 2 * sites; ranks <= RANKS_MAX; ranks += 7) {
            set_pairs(ranks, sites, 50 * US, 25 * MS, 20 * US, &prng);
            find(ranks);
            assert_sites(ranks, sites);
        }
}

/* Equal distances, near or far, one rank, two: one site. */
static void test_one(void **state)
{
    (void)state;
    for (uint32_t ranks = 1; ranks < 10; ranks++) {
        set_pairs(ranks, ranks, 50 * US, 25 * MS, 0, NULL);
        find(ranks);
        assert_sites(ranks, 1);
        set_pairs(ranks, 1, 0, 0, 0, NULL);
        find(ranks);
        assert_sites(ranks, 1);
    }
}

/* Neither a ratio alone is a gap nor a difference alone. */
static void test_edges(void **state)
{
    (void)state;
    set_pairs(8, 2, 10 * US, 900 * US, 0, NULL);
    find(8);
    assert_sites(8, 1);
    set_pairs(8, 2, 10 * MS, 39 * MS, 0, NULL);
    find(8);
    assert_sites(8, 1);
    set_pairs(8, 2, 10 * MS, 41 * MS, 0, NULL);
    find(8);
    assert_sites(8, 2);
    set_pairs(8, 2, 10 * US, 1100 * US, 0, NULL);
    find(8);
    assert_sites(8, 2);
}

/* Of two levels the greater gap. */
static void test_levels(void **state)
{
    (void)state;
    set_pairs(8, 4, 50 * US, 2 * MS, 0, NULL);
    for (uint32_t a = 0; a < 8; a++)
        for (uint32_t b = 0; b < 8; b++)
            if (a % 2 != b % 2)
                pairs[a * 8 + b].rtt_ns = 300 * MS;
    find(8);
    assert_sites(8, 2);
}

/* A busy machine's round trips differ at random, from some rank to all others, too. */
static void test_busy(void **state)
{
    struct lh_prng prng;
    (void)state;
    lh_prng_seed(&prng, 5);
    for (uint32_t run = 0; run < 1000; run++) {
        uint64_t slow = lh_prng_below(&prng, RANKS_MAX), other = lh_prng_below(&prng, RANKS_MAX);
        for (uint32_t a = 0; a < RANKS_MAX; a++)
            for (uint32_t b = 0; b < RANKS_MAX; b++) {
                bool late = a == slow || b == slow || a == other || b == other;
                uint64_t spread = late ? 50 * MS : 300 * US;
                pairs[a * RANKS_MAX + b].rtt_ns = 50 * US + lh_prng_below(&prng, spread);
            }
        find(RANKS_MAX);
        assert_sites(RANKS_MAX, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found),  cmocka_unit_test(test_one),  cmocka_unit_test(test_edges),
        cmocka_unit_test(test_levels), cmocka_unit_test(test_busy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
