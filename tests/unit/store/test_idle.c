/*
 * test_idle.c - memory is given back a second after its last use, looked at once a second at most.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "store/idle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define S STORE_IDLE_NS

static void test_after_the_last_use(void **state)
{
    (void)state;
    struct idle idle;
    idle_init(&idle);
    assert_false(idle_is_over(&idle, 5 * S));
    assert_int_equal(idle.at, LH_TIME_NEVER);
    idle_note(&idle);
    assert_false(idle_is_over(&idle, 5 * S));
    assert_int_equal(idle.at, 6 * S);
    idle_note(&idle);
    assert_false(idle_is_over(&idle, 6 * S - 1));
    assert_int_equal(idle.at, 6 * S);
    assert_false(idle_is_over(&idle, 6 * S)); /* there was a use meanwhile */
    assert_int_equal(idle.at, 7 * S);
    assert_false(idle_is_over(&idle, 7 * S - 1));
    assert_true(idle_is_over(&idle, 7 * S));
    assert_int_equal(idle.at, LH_TIME_NEVER);
    assert_false(idle_is_over(&idle, 8 * S));
    idle_note(&idle);
    assert_false(idle_is_over(&idle, 9 * S));
    assert_true(idle_is_over(&idle, 20 * S));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_after_the_last_use)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
