/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Sites in the order of their first ranks, whatever their numbers are. */
static void test_build(void **state)
{
    (void)state;
    static const uint32_t SITES[] = {9, 4, 9, 4, 4, 0}, RANK_AT[] = {0, 2, 1, 3, 4, 5};
    static const uint32_t SITE_OF[] = {0, 0, 1, 1, 1, 2}, FIRST[] = {0, 2, 5, 6};
    uint32_t numbers[25];
    struct site_map map;
    assert_int_equal(site_map_numbers(6), 25);
    site_map_build(&map, SITES, NULL, 6, numbers);
    assert_int_equal(map.sites, 3);
    assert_int_equal(map.largest, 3);
    assert_memory_equal(map.rank_at, RANK_AT, sizeof RANK_AT);
    assert_memory_equal(map.site_of, SITE_OF, sizeof SITE_OF);
    assert_memory_equal(map.first, FIRST, sizeof FIRST);
    for (uint32_t rank = 0; rank < 6; rank++)
        assert_int_equal(map.rank_at[map.place_of[rank]], rank);
}

/* Of a given order: sites and ranks follow it. */
static void test_order(void **state)
{
    (void)state;
    static const uint32_t SITES[] = {0, 0, 1, 1, 2}, ORDER[] = {3, 4, 1, 2, 0}, RANK_AT[] = {3, 2, 4, 1, 0};
    uint32_t numbers[21];
    struct site_map map;
    site_map_build(&map, SITES, ORDER, 5, numbers);
    assert_int_equal(map.sites, 3);
    assert_memory_equal(map.rank_at, RANK_AT, sizeof RANK_AT);
    for (uint32_t rank = 0; rank < 5; rank++)
        assert_int_equal(map.rank_at[map.place_of[rank]], rank);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_build),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
