/*
 * test_version.c - lh_version(): that of the header and of the build.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/longhaul.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void version_is_that_of_header_and_build(void **state)
{
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", LH_VERSION_MAJOR, LH_VERSION_MINOR, LH_VERSION_PATCH);
    assert_string_equal(lh_version(), text);
    assert_string_equal(lh_version(), LH_VERSION_STRING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(version_is_that_of_header_and_build)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
