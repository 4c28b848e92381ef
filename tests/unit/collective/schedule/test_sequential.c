/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/schedule/sequential.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/schedule_bounds.h"

static void test_broadcast(void **state)
{
    (void)state;
    schedule_check_all(&sequential_broadcast);
}

static void test_reduce(void **state)
{
    (void)state;
    schedule_check_all(&sequential_reduce);
}

static void test_scatter(void **state)
{
    (void)state;
    schedule_check_all(&sequential_scatter);
}

static void test_gather(void **state)
{
    (void)state;
    schedule_check_all(&sequential_gather);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broadcast),
        cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_scatter),
        cmocka_unit_test(test_gather),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
