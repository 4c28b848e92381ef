/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/schedule/pairwise.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/schedule_bounds.h"

static void test_alltoall(void **state)
{
    (void)state;
    schedule_check_all(&pairwise_alltoall);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alltoall),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
