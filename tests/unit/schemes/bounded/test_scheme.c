/*
 * test_scheme.c - bounded completion keeps its id; machines and entry are one scheme, which nobody
 * chooses unasked.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "schemes/bounded/scheme.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_entry(void **state)
{
    (void)state;
    assert_int_equal(bounded_scheme.id, 5); /* on the wire: for ever */
    assert_ptr_equal(bounded_entry.shown.machines, &bounded_scheme);
    assert_string_equal(bounded_entry.shown.name, bounded_scheme.name);
    assert_int_equal(bounded_entry.shown.codes, bounded_scheme.coding != NULL);
    assert_null(bounded_entry.candidates);
    assert_non_null(bounded_scheme.deadline);
    assert_non_null(bounded_scheme.coding->recoverable);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
