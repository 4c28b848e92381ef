/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/schedule/bruck.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/schedule_bounds.h"

static void test_allgather(void **state)
{
    (void)state;
    schedule_check_all(&bruck_allgather);
}

static void test_reduce_scatter(void **state)
{
    (void)state;
    schedule_check_all(&bruck_reduce_scatter);
}

static void test_allreduce(void **state)
{
    (void)state;
    schedule_check_all(&bruck_allreduce);
}

static void test_alltoall(void **state)
{
    (void)state;
    schedule_check_all(&bruck_alltoall);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allgather),
        cmocka_unit_test(test_reduce_scatter),
        cmocka_unit_test(test_allreduce),
        cmocka_unit_test(test_alltoall),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
