/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/schedule/direct.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/schedule_bounds.h"

static void test_allreduce(void **state)
{
    (void)state;
    schedule_check_all(&direct_allreduce);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allreduce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
