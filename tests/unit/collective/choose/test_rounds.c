/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/choose/rounds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"

#define RANKS_MAX 48u

static uint32_t site_at(const struct site_map *map, uint32_t rank)
{
    return map->site_of[map->place_of[rank]];
}

/* Partners agree; in a round a pair of sites has one pair, and a site one pair across. */
static void check_round(const struct site_map *map, uint32_t ranks, uint32_t round,
                        bool met[RANKS_MAX][RANKS_MAX])
{
    bool inside = round < rounds_inside(map), busy[RANKS_MAX] = {false};
    for (uint32_t a = 0; a < ranks; a++) {
        uint32_t b = rounds_partner(map, a, round);
        if (b == ROUNDS_NONE)
            continue;
        assert_true(b < ranks && b != a);
        assert_int_equal(rounds_partner(map, b, round), a);
        assert_int_equal(inside, site_at(map, a) == site_at(map, b));
        assert_false(met[a][b]);
        met[a][b] = true;
        if (!inside) {
            assert_false(busy[site_at(map, a)]);
            busy[site_at(map, a)] = true;
        }
    }
}

static void check_met(const struct site_map *map, uint32_t ranks, bool met[RANKS_MAX][RANKS_MAX])
{
    for (uint32_t a = 0; a < ranks; a++)
        for (uint32_t site = 0; site < map->sites; site++) {
            uint32_t count = 0, size = map->first[site + 1] - map->first[site];
            for (uint32_t place = map->first[site]; place < map->first[site + 1]; place++)
                count += met[a][map->rank_at[place]];
            assert_true(site == site_at(map, a) ? count == size - 1 : count >= 1);
        }
}

static void check_map(const uint32_t *site_of, uint32_t ranks)
{
    static bool met[RANKS_MAX][RANKS_MAX];
    uint32_t numbers[4 * RANKS_MAX + 1];
    struct site_map map;
    memset(met, 0, sizeof met);
    site_map_build(&map, site_of, NULL, ranks, numbers);
    for (uint32_t round = 0; round < rounds_count(&map); round++)
        check_round(&map, ranks, round, met);
    check_met(&map, ranks, met);
    assert_true(rounds_count(&map) <= ranks + map.sites * map.largest);
}

static void test_one_site(void **state)
{
    static const uint32_t site_of[RANKS_MAX] = {0};
    (void)state;
    for (uint32_t ranks = 1; ranks <= RANKS_MAX; ranks++)
        check_map(site_of, ranks);
}

static void test_sites(void **state)
{
    uint32_t site_of[RANKS_MAX];
    struct lh_prng prng;
    (void)state;
    lh_prng_seed(&prng, 3);
    for (uint32_t run = 0; run < 1000; run++) {
        uint32_t ranks = 1 + (uint32_t)lh_prng_below(&prng, RANKS_MAX);
        uint32_t sites = 1 + (uint32_t)lh_prng_below(&prng, ranks);
        for (uint32_t r = 0; r < ranks; r++)
            site_of[r] = (uint32_t)lh_prng_below(&prng, sites);
        check_map(site_of, ranks);
    }
}

/* What was not measured is as slow as the slower of the two with the other's site, each direction by
 * itself. */
static void test_fill(void **state)
{
    static const uint32_t site_of[] = {0, 0, 0, 1, 1, 1};
    struct path_figures pairs[36] = {0};
    uint32_t numbers[25], measured = 0;
    struct site_map map;
    (void)state;
    site_map_build(&map, site_of, NULL, 6, numbers);
    for (uint32_t round = rounds_inside(&map); round < rounds_count(&map); round++)
        for (uint32_t a = 0; a < 3; a++) {
            uint32_t b = rounds_partner(&map, a, round);
            if (b == ROUNDS_NONE)
                continue;
            pairs[a * 6 + b].rate_bps = a == 1 ? 100 : 1000;
            pairs[b * 6 + a].rate_bps = 500;
            measured++;
        }
    assert_int_equal(measured, 3);
    rounds_fill(&map, pairs);
    for (uint32_t a = 0; a < 3; a++)
        for (uint32_t b = 3; b < 6; b++) {
            uint32_t partner_of_slow = 4; /* of rank 1: it received no more than that sent */
            bool slow = a == 1 || b == partner_of_slow;
            assert_int_equal(pairs[a * 6 + b].rate_bps, slow ? 100 : 1000);
            assert_int_equal(pairs[b * 6 + a].rate_bps, 500);
        }
    assert_int_equal(pairs[1].rate_bps, 0); /* inside a site */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_site),
        cmocka_unit_test(test_sites),
        cmocka_unit_test(test_fill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
