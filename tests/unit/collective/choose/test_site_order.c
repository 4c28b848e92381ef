/*
 * test_site_order.c -
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "collective/choose/site_order.h"

/* ---- test found sites ------------------------------------------------------------------------------ */

#define RANKS_MAX 48u
#define US        UINT64_C(1000)
#define MS        UINT64_C(1000000)

static struct path_figures found_sites_pairs[RANKS_MAX * RANKS_MAX];
static uint32_t site_at[RANKS_MAX];

/* inside, across: round trips, to which up to a share of noise is added, each direction by itself. */
static void set_pairs(uint32_t ranks, uint32_t sites, uint64_t inside_ns, uint64_t across_ns,
                      uint64_t noise_ns, struct lh_prng *prng)
{
    for (uint32_t a = 0; a < ranks; a++)
        for (uint32_t b = 0; b < ranks; b++)
            found_sites_pairs[a * ranks + b].rtt_ns = (a % sites == b % sites ? inside_ns : across_ns) +
                                                      (noise_ns > 0 ? lh_prng_below(prng, noise_ns) : 0);
}

static void find(uint32_t ranks)
{
    uint64_t joins[3 * RANKS_MAX];
    found_sites(found_sites_pairs, ranks, site_at, joins);
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
                found_sites_pairs[a * 8 + b].rtt_ns = 300 * MS;
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
                found_sites_pairs[a * RANKS_MAX + b].rtt_ns = 50 * US + lh_prng_below(&prng, spread);
            }
        find(RANKS_MAX);
        assert_sites(RANKS_MAX, 1);
    }
}

static int run_found_sites(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found),  cmocka_unit_test(test_one),  cmocka_unit_test(test_edges),
        cmocka_unit_test(test_levels), cmocka_unit_test(test_busy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test place order ------------------------------------------------------------------------------ */

#define PLACE_ORDER_RANKS_MAX 256u
#define GBIT                  UINT64_C(1000000000)

/* Ranks with equal paths between them, and their order. */
struct fixture {
    uint32_t ranks;
    struct path_figures *pairs;
    struct site_map map;
    uint32_t numbers[4 * PLACE_ORDER_RANKS_MAX + 1];
    uint32_t order[PLACE_ORDER_RANKS_MAX];
};

static void set_up(struct fixture *f, uint32_t ranks, const uint32_t *site_of)
{
    static const uint32_t one[PLACE_ORDER_RANKS_MAX] = {0};
    f->ranks = ranks;
    f->pairs = calloc((size_t)ranks * ranks, sizeof *f->pairs);
    assert_non_null(f->pairs);
    for (uint32_t i = 0; i < ranks * ranks; i++)
        f->pairs[i] = (struct path_figures){.rtt_ns = MS, .rate_bps = 4 * GBIT};
    site_map_build(&f->map, site_of ? site_of : one, NULL, ranks, f->numbers);
}

static void set_path(struct fixture *f, uint32_t a, uint32_t b, uint64_t rate_bps, uint64_t rtt_ns)
{
    f->pairs[a * f->ranks + b] = f->pairs[b * f->ranks + a] =
        (struct path_figures){.rtt_ns = rtt_ns, .rate_bps = rate_bps};
}

static void order(struct fixture *f)
{
    void *memory = malloc(place_order_memory(f->ranks));
    bool seen[PLACE_ORDER_RANKS_MAX] = {false};
    assert_non_null(memory);
    place_order(f->pairs, f->ranks, &f->map, f->order, memory);
    free(memory);
    for (uint32_t i = 0; i < f->ranks; i++) {
        assert_true(f->order[i] < f->ranks && !seen[f->order[i]]);
        seen[f->order[i]] = true;
    }
}

static bool are_neighbors(const struct fixture *f, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < f->ranks; i++) {
        uint32_t one = f->order[i], next = f->order[(i + 1) % f->ranks];
        if ((one == a && next == b) || (one == b && next == a))
            return true;
    }
    return false;
}

static void assert_in_order(const struct fixture *f)
{
    for (uint32_t i = 0; i < f->ranks; i++)
        assert_int_equal(f->order[i], i);
}

/* Equal paths, one rank, two: nothing changes. */
static void test_ties(void **state)
{
    struct fixture f;
    (void)state;
    for (uint32_t ranks = 1; ranks <= 20; ranks++) {
        set_up(&f, ranks, NULL);
        order(&f);
        assert_in_order(&f);
        free(f.pairs);
    }
}

/* Any link of a ring of five may be the slow one, in one direction alone. */
static void test_slow_link(void **state)
{
    struct fixture f;
    (void)state;
    for (uint32_t a = 0; a < 5; a++)
        for (uint32_t b = 0; b < 5; b++) {
            if (a == b)
                continue;
            set_up(&f, 5, NULL);
            f.pairs[a * 5 + b].rate_bps = GBIT;
            order(&f);
            assert_int_equal(f.order[0], 0);
            assert_false(are_neighbors(&f, a, b));
            free(f.pairs);
        }
}

/* Noise: rates within a quarter, round trips within a fifth. */
static void test_noise(void **state)
{
    struct fixture f;
    struct lh_prng prng;
    (void)state;
    lh_prng_seed(&prng, 7);
    for (uint32_t run = 0; run < 200; run++) {
        uint32_t ranks = 2 + (uint32_t)lh_prng_below(&prng, 12);
        set_up(&f, ranks, NULL);
        for (uint32_t i = 0; i < ranks * ranks; i++) {
            f.pairs[i].rate_bps = 4 * GBIT + lh_prng_below(&prng, GBIT * 9 / 10);
            f.pairs[i].rtt_ns = MS + lh_prng_below(&prng, MS / 5);
        }
        order(&f);
        assert_in_order(&f);
        free(f.pairs);
    }
}

/* Of equal rates the shortest ring: ranks on a line, in any order. */
static void check_line(uint32_t ranks, uint32_t step)
{
    struct fixture f;
    uint64_t sum = 0;
    set_up(&f, ranks, NULL);
    for (uint32_t a = 0; a < ranks; a++)
        for (uint32_t b = 0; b < a; b++) {
            uint32_t one = a * step % ranks, other = b * step % ranks;
            set_path(&f, a, b, 4 * GBIT, MS * (one > other ? one - other : other - one));
        }
    order(&f);
    for (uint32_t i = 0; i < ranks; i++)
        sum += f.pairs[f.order[i] * ranks + f.order[(i + 1) % ranks]].rtt_ns;
    assert_int_equal(sum, 2 * (ranks - 1) * MS); /* there and back */
    free(f.pairs);
}

static void test_line(void **state)
{
    (void)state;
    check_line(5, 2);
    check_line(8, 3);
    check_line(17, 7);
    check_line(64, 27);
}

/* The sites' ring avoids the slow link between two of them; who has the best paths leads. */
static void test_sites(void **state)
{
    static const uint32_t site_of[] = {0, 0, 1, 1, 2, 2, 3, 3};
    struct fixture f;
    (void)state;
    set_up(&f, 8, site_of);
    for (uint32_t a = 0; a < 8; a++)
        for (uint32_t b = 0; b < a; b++) {
            bool slow = (site_of[a] == 1 && site_of[b] == 0) || (site_of[a] == 3 && site_of[b] == 2);
            if (site_of[a] != site_of[b])
                set_path(&f, a, b, slow ? GBIT / 4 : GBIT, 20 * MS);
        }
    for (uint32_t other = 2; other < 8; other++) /* rank 0 is behind a slow port, rank 1 is not */
        set_path(&f, 0, other, GBIT / 16, 20 * MS);
    order(&f);
    assert_int_equal(f.order[0], 1);
    assert_int_equal(f.order[1], 0);
    for (uint32_t i = 2; i < 8; i += 2) {
        assert_int_equal(site_of[f.order[i]], site_of[f.order[i + 1]]);
        assert_true(f.order[i] < f.order[i + 1]);
    }
    assert_int_not_equal(site_of[f.order[2]], 1);
    assert_int_equal(site_of[f.order[4]], 1); /* opposite of site 0 */
    free(f.pairs);
}

/* With 256 ranks each slow path is avoided that can be, and what comes is the same each time. */
static void test_many(void **state)
{
    struct fixture f;
    struct lh_prng prng;
    uint32_t first[PLACE_ORDER_RANKS_MAX];
    (void)state;
    set_up(&f, PLACE_ORDER_RANKS_MAX, NULL);
    lh_prng_seed(&prng, 1);
    for (uint32_t a = 0; a < PLACE_ORDER_RANKS_MAX; a++)
        for (uint32_t b = 0; b < a; b++)
            if (lh_prng_below(&prng, 4) == 0 || a == b + 1)
                set_path(&f, a, b, GBIT / 2, MS);
    order(&f);
    for (uint32_t i = 0; i < PLACE_ORDER_RANKS_MAX; i++)
        assert_int_equal(
            f.pairs[f.order[i] * PLACE_ORDER_RANKS_MAX + f.order[(i + 1) % PLACE_ORDER_RANKS_MAX]].rate_bps,
            4 * GBIT);
    memcpy(first, f.order, sizeof first);
    order(&f);
    assert_memory_equal(first, f.order, sizeof first);
    free(f.pairs);
}

/* An order that is as good as the best stays, by whichever it came. */
static void test_stays(void **state)
{
    static const uint32_t one[6] = {0}, present[] = {0, 2, 4, 1, 3, 5};
    struct fixture f;
    (void)state;
    set_up(&f, 6, NULL);
    site_map_build(&f.map, one, present, 6, f.numbers);
    order(&f);
    assert_memory_equal(f.order, present, sizeof present);
    set_path(&f, 2, 4, GBIT, MS);
    order(&f);
    assert_false(are_neighbors(&f, 2, 4));
    free(f.pairs);
}

static int run_place_order(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ties),  cmocka_unit_test(test_slow_link), cmocka_unit_test(test_noise),
        cmocka_unit_test(test_line),  cmocka_unit_test(test_sites),     cmocka_unit_test(test_many),
        cmocka_unit_test(test_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_found_sites() + run_place_order();
}
