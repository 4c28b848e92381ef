/*
 * test_tree_rules.c - patterns of --include and --exclude, and which rule decides. tests/e2e/cli_rules.sh
 * compares with rsync.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/file/tree_rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/terminal/terminal.h"

static void patterns_match_names_and_paths(void **state)
{
    static const struct {
        const char *pattern, *path;
        bool folder, matches;
    } cases[] = {
        {"*.o", "a.o", false, true},        {"*.o", "in/b/a.o", false, true},
        {"*.o", "a.oo", false, false},      {"*.o", "a.o/b", false, false},
        {"b/a.o", "in/b/a.o", false, true}, {"b/a.o", "in/xb/a.o", false, false},
        {"/b", "in/b", false, false},       {"/in/b", "in/b", false, true},
        {"/in/*", "in/b/c", false, false},  {"/in/**", "in/b/c", false, true},
        {"b/", "in/b", false, false},       {"b/", "in/b", true, true},
        {"b/***", "in/b", true, true},      {"b/***", "in/b", false, false},
        {"b/***", "in/b/c/d", false, true}, {"b/***", "in/xb/c", false, false},
        {"a/**/b", "a/b", false, false},    {"a/**/b", "a/x/y/b", false, true},
        {"?", "ab", false, false},          {"?", "in/b", false, true},
        {"[a-c]x", "bx", false, true},      {"[!a-c]x", "bx", false, false},
        {"[^a-c]x", "dx", false, true},     {"[]]", "]", false, true},
        {"[a-]", "-", false, true},         {"a[!b]c", "a/c", false, false},
        {"\\*", "\\*", false, false},       {"\\**", "*x", false, true},
        {"a\\b", "a\\b", false, true},      {"**b", "a/xb", false, true},
        {"*", "\xff\xfe", false, true},     {"", "x", false, false},
        {"x**", "in/x/y", false, true},     {"a*b*c", "aXbYbZc", false, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (*cases[i].pattern &&
            cli_tree_pattern_matches(cases[i].pattern, cases[i].path, cases[i].folder) != cases[i].matches)
            fail_msg("%s and %s", cases[i].pattern, cases[i].path);
}

static void wrong_patterns_are_refused(void **state)
{
    char pattern[CLI_TREE_PATTERN_MAX + 2];
    (void)state;
    assert_null(cli_tree_pattern_wrong("a"));
    assert_non_null(cli_tree_pattern_wrong(""));
    assert_non_null(cli_tree_pattern_wrong("/"));
    assert_non_null(cli_tree_pattern_wrong("[a"));
    assert_non_null(cli_tree_pattern_wrong("[]"));
    assert_non_null(cli_tree_pattern_wrong("*\\"));
    assert_non_null(cli_tree_pattern_wrong("[[:alpha:]]"));
    assert_null(cli_tree_pattern_wrong("a\\"));
    memset(pattern, '*', sizeof pattern);
    pattern[sizeof pattern - 1] = 0;
    assert_non_null(cli_tree_pattern_wrong(pattern));
    pattern[sizeof pattern - 2] = 0;
    assert_null(cli_tree_pattern_wrong(pattern));
}

/* Of the order on the command line, the first that matches. */
static void the_first_rule_decides(void **state)
{
    char first[] = "--exclude=b.c", second[] = "--include", third[] = "*.c", fourth[] = "--exclude",
         fifth[] = "*";
    char *argv[] = {first, second, third, fourth, fifth};
    const struct cli_texts includes = {.count = 1, .text = {third}},
                           excludes = {.count = 2, .text = {first + 10, fifth}};
    struct cli_tree_rules rules;
    (void)state;
    assert_int_equal(cli_tree_rules_read(&includes, &excludes, 5, argv, &rules), CLI_PROCEED);
    assert_int_equal(rules.count, 3);
    assert_true(cli_tree_rules_exclude(&rules, "in/b.c", false));
    assert_false(cli_tree_rules_exclude(&rules, "in/a.c", false));
    assert_true(cli_tree_rules_exclude(&rules, "in/a.h", false));
    assert_false(cli_tree_rules_exclude(NULL, "in/a.h", false));
}

/* Patterns at which matchers by trial take for ever. */
static void time_is_bounded(void **state)
{
    char path[4096], pattern[] = "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b";
    (void)state;
    memset(path, 'a', sizeof path);
    path[sizeof path - 1] = 0;
    assert_false(cli_tree_pattern_matches(pattern, path, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_match_names_and_paths),
        cmocka_unit_test(wrong_patterns_are_refused),
        cmocka_unit_test(the_first_rule_decides),
        cmocka_unit_test(time_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
