/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/schedule/ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/schedule_bounds.h"

static void test_allreduce(void **state)
{
    (void)state;
    schedule_check_all(&ring_allreduce);
}

static void test_reduce_scatter(void **state)
{
    (void)state;
    schedule_check_all(&ring_reduce_scatter);
}

static void test_allgather(void **state)
{
    (void)state;
    schedule_check_all(&ring_allgather);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allreduce),
        cmocka_unit_test(test_reduce_scatter),
        cmocka_unit_test(test_allgather),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
