/*
 * test_cpu_others.c - whose CPU time it was.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/perf/cpu_others.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void others_are_what_is_not_ours(void **state)
{
    const struct cli_cpu_mark from = {100, 1000, 10}, to = {108, 1020, 12};
    (void)state;
    assert_float_equal(cli_cpu_others(&from, &to), 6.0 / 20, 1e-9);
}

static void what_cannot_be_is_nothing(void **state)
{
    const struct cli_cpu_mark from = {100, 1000, 10}, same = from, unknown = {-1, 0, 0};
    const struct cli_cpu_mark more_than_all = {101, 1020, 15};
    (void)state;
    assert_float_equal(cli_cpu_others(&from, &same), 0, 1e-9);
    assert_float_equal(cli_cpu_others(&from, &unknown), 0, 1e-9);
    assert_float_equal(cli_cpu_others(&unknown, &from), 0, 1e-9);
    assert_float_equal(cli_cpu_others(&from, &more_than_all), 0, 1e-9);
}

static void marks_only_grow(void **state)
{
    struct cli_cpu_mark from, to;
    (void)state;
    cli_cpu_mark(&from);
    for (volatile unsigned i = 0; i < 30000000; i++)
        ;
    cli_cpu_mark(&to);
    assert_true(to.own_s > from.own_s || from.busy_s < 0);
    assert_true(to.busy_s >= from.busy_s && to.total_s >= from.total_s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_are_what_is_not_ours),
        cmocka_unit_test(what_cannot_be_is_nothing),
        cmocka_unit_test(marks_only_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
