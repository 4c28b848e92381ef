/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/schedule/hybrid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/schedule_bounds.h"

static void test_broadcast(void **state)
{
    (void)state;
    schedule_check_all(&hybrid_broadcast);
}

static void test_reduce(void **state)
{
    (void)state;
    schedule_check_all(&hybrid_reduce);
}

/* Each block crosses into each site but the root's once, however ranks are spread over sites. */
static void test_once_per_site(void **state)
{
    (void)state;
    struct schedule_map map;
    struct schedule_counts counts;
    for (uint32_t ranks = 2; ranks <= 100; ranks += 7)
        for (uint32_t site = 1; site < ranks; site = 2 * site + 1)
            for (uint32_t root = 0; root < ranks; root += 1 + ranks / 3) {
                schedule_map_of(&map, ranks, site, true);
                struct schedule_shape shape = {.ranks = ranks, .blocks = 11, .root = root, .map = &map.map};
                assert_null(schedule_check(&hybrid_broadcast, &shape, &counts));
                assert_int_equal(counts.site_most, map.map.sites > 1 ? 11 : 0);
                assert_int_equal(counts.site_moved, 11 * (map.map.sites - 1));
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broadcast),
        cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_once_per_site),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
