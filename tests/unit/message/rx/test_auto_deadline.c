/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/rx/auto_deadline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LIMIT (10 * LH_NS_PER_S)
#define SIZE  1000000u

static void test_begins_far_away(void **state)
{
    (void)state;
    struct auto_deadline automatic = {0};
    assert_int_equal(auto_deadline_of(&automatic, SIZE, 0, LIMIT), LH_NS_PER_S);
    assert_int_equal(auto_deadline_of(&automatic, UINT64_MAX, LIMIT, LIMIT), LH_NS_PER_S);
}

static void test_settles_above_what_messages_take(void **state)
{
    (void)state;
    struct auto_deadline automatic = {0};
    for (int i = 0; i < 50; i++)
        auto_deadline_on_end(&automatic, 8 * LH_NS_PER_MS, SIZE);
    lh_time ns = auto_deadline_of(&automatic, SIZE, LH_NS_PER_MS, LIMIT);
    assert_in_range(ns, 12 * LH_NS_PER_MS, 12 * LH_NS_PER_MS + 100 * LH_NS_PER_US);
    /* A path of half the rate: what is cut off counts as slow, so it grows. */
    for (int i = 0; i < 20; i++) {
        ns = auto_deadline_of(&automatic, SIZE, LH_NS_PER_MS, LIMIT);
        lh_time took = ns < 16 * LH_NS_PER_MS ? ns : 16 * LH_NS_PER_MS;
        auto_deadline_on_end(&automatic, took, (uint64_t)SIZE * took / (16 * LH_NS_PER_MS));
    }
    assert_true(auto_deadline_of(&automatic, SIZE, LH_NS_PER_MS, LIMIT) > 16 * LH_NS_PER_MS);
}

static void test_nothing_at_all_doubles_it(void **state)
{
    (void)state;
    struct auto_deadline automatic = {0};
    auto_deadline_on_end(&automatic, 8 * LH_NS_PER_MS, SIZE);
    lh_time before = auto_deadline_of(&automatic, SIZE, 0, LIMIT);
    auto_deadline_on_end(&automatic, before, 0);
    assert_in_range(auto_deadline_of(&automatic, SIZE, 0, LIMIT), 2 * before - 1, 2 * before + 1);
    for (int i = 0; i < 100; i++)
        auto_deadline_on_end(&automatic, before, 0);
    assert_in_range(auto_deadline_of(&automatic, SIZE, 0, LIMIT), before, LIMIT);
    auto_deadline_on_end(&automatic, 8 * LH_NS_PER_MS, SIZE);
    assert_in_range(auto_deadline_of(&automatic, SIZE, 0, LIMIT), before - 1, before + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_begins_far_away),
        cmocka_unit_test(test_settles_above_what_messages_take),
        cmocka_unit_test(test_nothing_at_all_doubles_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
