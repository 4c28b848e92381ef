/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/schedule/transpose.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/schedule_bounds.h"

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
    assert_int_equal(counts.peers_most, 1);
    assert_int_equal(counts.link_most, 4);
    assert_int_equal(counts.site_most, 4 * 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alltoall),
        cmocka_unit_test(test_few_messages_across),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
