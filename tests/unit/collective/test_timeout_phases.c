/*
 * test_timeout_phases.c - slices of a timeout: in proportion, and the last ends with the whole.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <longhaul/timeout.h>

static void test_in_proportion(void **state)
{
    (void)state;
    uint64_t bytes[] = {100, 300, 0, 600};
    assert_int_equal(lh_timeout_phase_end(1000, bytes, 4, 0), 100);
    assert_int_equal(lh_timeout_phase_end(1000, bytes, 4, 1), 400);
    assert_int_equal(lh_timeout_phase_end(1000, bytes, 4, 2), 400);
    assert_int_equal(lh_timeout_phase_end(1000, bytes, 4, 3), 1000);
}

static void test_nothing_to_send(void **state)
{
    (void)state;
    uint64_t bytes[] = {0, 0, 0};
    assert_int_equal(lh_timeout_phase_end(1000, bytes, 3, 0), 333);
    assert_int_equal(lh_timeout_phase_end(1000, bytes, 3, 2), 1000);
}

static void test_huge(void **state)
{
    (void)state;
    uint64_t bytes[] = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
    assert_int_equal(lh_timeout_phase_end(LH_TIME_NEVER, bytes, 3, 2), LH_TIME_NEVER);
    assert_in_range(lh_timeout_phase_end(3000, bytes, 3, 0), 999, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_proportion),
        cmocka_unit_test(test_nothing_to_send),
        cmocka_unit_test(test_huge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
