/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/run/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/collective.h>

static void test_types(void **state)
{
    static const size_t bytes[] = {4, 8, 2, 2, 4, 8, 1};
    (void)state;
    for (int type = 0; type < LH_TYPES; type++)
        assert_int_equal(lh_type_bytes((enum lh_type)type), bytes[type]);
    assert_string_equal(lh_type_name(LH_BF16), "bf16");
    assert_string_equal(lh_reduction_name(LH_AVG), "avg");
    assert_int_equal(lh_type_bytes(LH_TYPES), 0);
    assert_null(lh_type_name(LH_TYPES));
    assert_null(lh_reduction_name(LH_REDUCTIONS));
}

static void test_schedules(void **state)
{
    bool ring = false;
    uint32_t count = 0;
    (void)state;
    for (const char *name; (name = lh_collective_schedule("allgather", count)); count++)
        ring = ring || strcmp(name, "ring") == 0;
    assert_true(ring && count >= 2);
    assert_null(lh_collective_schedule("allreduction", 0));
}

static void test_named(void **state)
{
    char names[64], few[12];
    (void)state;
    assert_string_equal(named_schedule(COLLECTIVE_SCATTER, "binomial-tree", names, sizeof names)->name,
                        "binomial-tree");
    assert_null(named_schedule(COLLECTIVE_ALLGATHER, "chain", names, sizeof names));
    assert_non_null(strstr(names, "ring"));
    assert_null(named_schedule(COLLECTIVE_ALLREDUCE, "none", few, sizeof few));
    assert_true(strlen(few) < sizeof few);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
