/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/schedule/dissemination.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/schedule_bounds.h"

static void test_barrier(void **state)
{
    (void)state;
    schedule_check_all(&dissemination_barrier);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_barrier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
