/*
 * test_link_list.c - which links a pattern means.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/sim/scenario/link_list.h"

#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void matches_names_and_stars(void **state)
{
    (void)state;
    assert_true(cli_link_matches("leaf0>host3", "leaf0", "host3"));
    assert_false(cli_link_matches("leaf0>host3", "leaf0", "host33"));
    assert_false(cli_link_matches("leaf0>host3", "host3", "leaf0"));
    assert_true(cli_link_matches("*>*", "a", "b"));
    assert_true(cli_link_matches("*>host3", "leaf0", "host3"));
    assert_true(cli_link_matches("leaf*>*3", "leaf12", "host13"));
    assert_false(cli_link_matches("leaf*>*3", "spine1", "host13"));
    assert_true(cli_link_matches("a*b*c>x", "aXbbYc", "x"));
    assert_false(cli_link_matches("a*b*c>x", "aXbbY", "x"));
    assert_true(cli_link_matches("**>x", "", "x"));
}

static void takes_lists_and_what_is_no_link(void **state)
{
    (void)state;
    assert_true(cli_link_matches("a>b, c>d ,e>f", "c", "d"));
    assert_true(cli_link_matches("a>b, c>d ,e>f", "e", "f"));
    assert_false(cli_link_matches("a>b, c>d ,e>f", "a", "d"));
    assert_false(cli_link_matches("", "a", "b"));
    assert_false(cli_link_matches(",, ,", "a", "b"));
    assert_false(cli_link_matches("ab", "a", "b"));
    assert_false(cli_link_matches(">", "a", "b"));
    assert_true(cli_link_matches("x,>", "", ""));
}

/* A pattern of many stars must not take time that grows with their power. */
static void many_stars_end(void **state)
{
    char pattern[200] = "", text[400];
    (void)state;
    for (unsigned i = 0; i < 90; i++)
        strcat(pattern, "*a");
    strcat(pattern, "b>*");
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = 0;
    assert_false(cli_link_matches(pattern, text, "x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_names_and_stars),
        cmocka_unit_test(takes_lists_and_what_is_no_link),
        cmocka_unit_test(many_stars_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
