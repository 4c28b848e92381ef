/*
 * test_file_names.c - which names from elsewhere are safe to create.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/file/file_blocks.h"
#include "cli/file/file_names.h"
#include "cli/terminal/terminal.h"

#include <stdio.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static bool fine(const char *name)
{
    return cli_file_name_wrong(name, strlen(name)) == NULL;
}

static void plain_names_pass(void **state)
{
    (void)state;
    assert_true(fine("a"));
    assert_true(fine("data 1.tar.gz"));
    assert_true(fine(".profile"));
    assert_true(fine("..."));
    assert_true(fine("..a"));
    assert_true(fine("\xC3\xA9t\xC3\xA9")); /* été */
    assert_true(fine("-rf"));
}

static void names_that_lead_elsewhere_do_not(void **state)
{
    (void)state;
    assert_false(fine(""));
    assert_false(fine("."));
    assert_false(fine(".."));
    assert_false(fine("/"));
    assert_false(fine("/etc/passwd"));
    assert_false(fine("../x"));
    assert_false(fine("x/"));
}

static void control_characters_do_not(void **state)
{
    (void)state;
    assert_false(fine("a\nb"));
    assert_false(fine("\033[2J"));
    assert_false(fine("a\x7F"));
    assert_false(fine("a\xC2\x9Bm")); /* C1: the 8-bit form of ESC [ */
    assert_true(fine("a\xC2\xA0m"));  /* the first that is none */
    assert_true(fine("a\xC2"));
    assert_non_null(cli_file_name_wrong("a\0b", 3));
}

static void length_has_a_limit(void **state)
{
    char name[CLI_FILE_NAME_MAX + 2];
    (void)state;
    memset(name, 'a', sizeof name);
    assert_null(cli_file_name_wrong(name, CLI_FILE_NAME_MAX));
    assert_non_null(cli_file_name_wrong(name, CLI_FILE_NAME_MAX + 1));
}

static const char *partial_of(const char *name)
{
    static char out[CLI_FILE_NAME_MAX + 1];
    return cli_file_name_unfinished(name, CLI_PARTIAL_SUFFIX, out);
}

/* Up to where .NAME and the suffix fit, that is the name; of longer ones it is short, differs where any of
 * them differ, and has whole characters. */
static void unfinished_files_have_names_of_any_name(void **state)
{
    char name[CLI_FILE_NAME_MAX + 1] = "", expected[2 * CLI_FILE_NAME_MAX], before[CLI_FILE_NAME_MAX + 1];
    (void)state;
    for (size_t length = 1; length <= CLI_FILE_NAME_MAX; length++) {
        memset(name, 'a', length);
        name[length] = '\0';
        snprintf(expected, sizeof expected, ".%s.longhaul-partial", name);
        snprintf(before, sizeof before, "%s", partial_of(name));
        assert_true(strlen(before) <= 255);
        assert_int_equal(strcmp(before, expected) == 0, length <= 237);
        name[length - 1] = 'b';
        assert_string_not_equal(before, partial_of(name));
    }
    for (int i = 0; i < 85; i++)
        memcpy(name + 3L * i, "\xE6\xBC\xA2", 3); /* a character of three bytes */
    assert_null(cli_file_name_wrong(name, strlen(name)));
    const char *dash = strchr(partial_of(name), '-');
    assert_int_equal(dash - partial_of(name), 1 + 78); /* 26 of them */
    memset(name, 0x80, 255);                           /* no text */
    assert_int_equal(strchr(partial_of(name), '-') - partial_of(name), 1 + 80);
}

static void names_of_unfinished_files_do_not(void **state)
{
    (void)state;
    assert_false(fine(".x.longhaul-partial"));
    assert_false(fine(".x.longhaul-resume"));
    assert_true(fine("longhaul-partial"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_names_pass),
        cmocka_unit_test(names_that_lead_elsewhere_do_not),
        cmocka_unit_test(control_characters_do_not),
        cmocka_unit_test(length_has_a_limit),
        cmocka_unit_test(unfinished_files_have_names_of_any_name),
        cmocka_unit_test(names_of_unfinished_files_do_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
