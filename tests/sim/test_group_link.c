/*
 * test_group_link.c - how many receives a link of a group has posted: what its round trip needs, so that few
 * buffers are in turn on a short path, and all of them on a long one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "group/group.h"
#include "support/collective_case.h"

#define LIMIT_NS (60 * LH_NS_PER_S)
#define COUNT    (12u << 20) /* of f32: 96 blocks each way, of 64 that a link has buffers for */

/* Posted after an all-reduce of two ranks; nothing holds a buffer then. */
static uint32_t posted_after(const char *link)
{
    struct group_world world;
    struct collective_case c = {.collective = COLLECTIVE_ALLREDUCE, .type = LH_F32, .count = COUNT};
    struct lh_group_attr attr;
    uint32_t posted = 0;
    lh_collective_options_init(&c.options);
    c.options.schedule = "ring";
    lh_group_attr_init(&attr);
    group_world_open(&world, "link", 1, link, 2, &attr, NULL);
    collective_case_start(&c, &world);
    assert_true(group_world_run(&world, c.ops, 2, LIMIT_NS));
    for (uint32_t r = 0; r < 2; r++) {
        const struct link_lane *to = &world.groups[r]->mesh->links[1 - r].lanes[LANE_BULK];
        collective_case_check(&c, r);
        assert_int_equal(to->places, 64);
        assert_int_equal(to->posted_places + to->spare_places, to->places);
        posted = to->posted_places;
    }
    collective_case_free(&c);
    group_world_close(&world);
    return posted;
}

static void test_short(void **state)
{
    (void)state;
    assert_in_range(posted_after("delay=10us,rate=10Gbit"), 5, 9);
}

static void test_long(void **state)
{
    (void)state;
    assert_in_range(posted_after("delay=5ms,rate=10Gbit"), 61, 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_short), cmocka_unit_test(test_long)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
