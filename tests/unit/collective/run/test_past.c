/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/run/past.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The last PAST_OPERATIONS that were noted, and no other. */
static void test_window(void **state)
{
    static struct past past;
    (void)state;
    assert_null(past_find(&past, 0));
    for (uint32_t i = 0; i < 3 * PAST_OPERATIONS; i++) {
        const struct signature signature = {.count = i};
        past_note(&past, i, &signature);
    }
    for (uint32_t i = 0; i < 4 * PAST_OPERATIONS; i++) {
        const struct signature *found = past_find(&past, i);
        if (i < 2 * PAST_OPERATIONS || i >= 3 * PAST_OPERATIONS)
            assert_null(found);
        else
            assert_int_equal(found->count, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_window)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
