/*
 * test_site_schedules.c -
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collective/schedules.h"
#include "support/schedule_bounds.h"

/* ---- test hierarchical ----------------------------------------------------------------------------- */

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
            assert_int_equal(counts.sent_max, 2 * (blocks - blocks / size) + 4 * (sites - 1));
            assert_int_equal(counts.site_max, 2 * (blocks - blocks / sites));
        }
}

static int run_hierarchical(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allreduce),
        cmocka_unit_test(test_even_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test hybrid ----------------------------------------------------------------------------------- */

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
                assert_int_equal(counts.site_max, map.map.sites > 1 ? 11 : 0);
                assert_int_equal(counts.site_moved, 11 * (map.map.sites - 1));
            }
}

static int run_hybrid(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broadcast),
        cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_once_per_site),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test transpose -------------------------------------------------------------------------------- */

static void test_alltoall(void **state)
{
    (void)state;
    schedule_check_all(&transpose_alltoall);
}

/* Of equal sites of m ranks, a message to each other site carries m * m parts of a rank each. */
static void test_few_messages_across(void **state)
{
    (void)state;
    struct schedule_map map;
    struct schedule_counts counts;
    schedule_map_of(&map, 12, 4, false);
    struct schedule_shape shape = {.ranks = 12, .blocks = 12, .map = &map.map};
    assert_null(schedule_check(&transpose_alltoall, &shape, &counts));
    assert_int_equal(counts.steps, 3 + 2);
    assert_int_equal(counts.peers_max, 1);
    assert_int_equal(counts.link_max, 4);
    assert_int_equal(counts.site_max, 4 * 8);
}

static int run_transpose(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alltoall),
        cmocka_unit_test(test_few_messages_across),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_hierarchical() + run_hybrid() + run_transpose();
}
