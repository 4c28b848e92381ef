/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/schedule/hierarchical.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/schedule_bounds.h"

static void test_allreduce(void **state)
{
    (void)state;
    schedule_check_all(&hierarchical_allreduce);
}

/* Of blocks that can be shared out evenly: 2 (m - 1) / m of them in a site of m, of an m-th 2 (s - 1) / s
 * across; and into each of s sites 2 (s - 1) / s. */
static void test_even_shares(void **state)
{
    (void)state;
    struct schedule_map map;
    struct schedule_counts counts;
    for (uint32_t sites = 2; sites <= 8; sites++)
        for (uint32_t size = 1; size <= 8; size++) {
            uint32_t blocks = 2 * sites * size;
            schedule_map_of(&map, sites * size, size, false);
            struct schedule_shape shape = {.ranks = sites * size, .blocks = blocks, .map = &map.map};
            assert_null(schedule_check(&hierarchical_allreduce, &shape, &counts));
            assert_int_equal(counts.sent_most, 2 * (blocks - blocks / size) + 4 * (sites - 1));
            assert_int_equal(counts.site_most, 2 * (blocks - blocks / sites));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allreduce),
        cmocka_unit_test(test_even_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
