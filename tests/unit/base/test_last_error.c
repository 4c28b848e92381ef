/*
 * test_last_error.c - the last error of a thread, as it is set from outside of the library.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_set_returns_the_negative_code(void **state)
{
    (void)state;
    assert_int_equal(lh_error_set(LH_EINVAL, "first"), -LH_EINVAL);
    assert_string_equal(lh_last_error(), "first");
    assert_int_equal(lh_error_set(-LH_ERANGE, "second"), -LH_ERANGE);
    assert_string_equal(lh_last_error(), "second");
}

static void test_text_may_be_the_last_error(void **state)
{
    (void)state;
    lh_error_set(LH_EINVAL, "outer: inner");
    lh_error_set(LH_EINVAL, lh_last_error() + strlen("outer: "));
    assert_string_equal(lh_last_error(), "inner");
}

static void test_long_text_is_cut(void **state)
{
    (void)state;
    char text[2 * LH_ERROR_TEXT_BYTES];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    lh_error_set(LH_EINVAL, text);
    assert_int_equal(strlen(lh_last_error()), LH_ERROR_TEXT_BYTES - 1);
    text[LH_ERROR_TEXT_BYTES - 1] = '\0';
    lh_error_set(LH_EINVAL, text);
    assert_string_equal(lh_last_error(), text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_returns_the_negative_code),
        cmocka_unit_test(test_text_may_be_the_last_error),
        cmocka_unit_test(test_long_text_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
