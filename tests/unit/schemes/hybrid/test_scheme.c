/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/hybrid/scheme.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schemes/hybrid/params.h"

static void test_one_name_and_one_code(void **state)
{
    (void)state;
    uint8_t params[LH_SCHEME_PARAMS];
    assert_string_equal(hybrid_scheme.name, "hybrid");
    assert_string_equal(hybrid_entry.shown.name, hybrid_scheme.name);
    assert_ptr_equal(hybrid_entry.shown.machines, &hybrid_scheme);
    assert_int_equal(hybrid_scheme.id, 6);
    assert_int_equal(hybrid_scheme.parse("", params), 0);
    hybrid_scheme.measured(0.05, 3, 1024, params);
    assert_true(hybrid_scheme.params_valid(params));
    assert_int_equal(params[0], hybrid_code_for(0.05, 3, 1024));
    assert_true(hybrid_scheme.coding != NULL && hybrid_scheme.deadline == NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_name_and_one_code)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
