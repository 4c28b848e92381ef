/*
 * test_scenario.c - which links a pattern means.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/sim/scenario.h"
#include "cli/terminal/terminal.h"

/* ---- test link list -------------------------------------------------------------------------------- */

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

static int run_link_list(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_names_and_stars),
        cmocka_unit_test(takes_lists_and_what_is_no_link),
        cmocka_unit_test(many_stars_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test scenario --------------------------------------------------------------------------------- */

/* Scenario files: settings, comments, and what is refused with which words. */

static struct cli_scenario scenario;

static int parse(const char *text)
{
    memset(&scenario, 0, sizeof scenario);
    return cli_scenario_parse(&scenario, "x.ini", text, strlen(text));
}

static void has(const char *key, const char *value)
{
    const struct cli_setting *setting = cli_scenario_find(&scenario, key);
    if (!setting)
        fail_msg("%s is not set", key);
    assert_string_equal(setting->value, value);
}

static void refuses(const char *text, const char *words)
{
    assert_int_equal(parse(text), -1);
    if (!strstr(scenario.wrong, words))
        fail_msg("\"%s\" does not say \"%s\"", scenario.wrong, words);
}

static void takes_settings_apart(void **state)
{
    (void)state;
    assert_int_equal(parse("# about\n[topology]\nkind = fat-tree\n  k=4\t\n\n[switch]\r\npfc = on # yes\r\n"
                           "[sweep]\nworkload.load = 30%, 50% ; loads\nrun.until=1ms"),
                     0);
    assert_int_equal(scenario.count, 5);
    has("topology.kind", "fat-tree");
    has("topology.k", "4");
    has("switch.pfc", "on");
    has("sweep.workload.load", "30%, 50%");
    has("sweep.run.until", "1ms");
    assert_int_equal(cli_scenario_find(&scenario, "topology.k")->line, 4);
    assert_null(cli_scenario_find(&scenario, "k"));
}

static void takes_nothing_and_no_section(void **state)
{
    (void)state;
    assert_int_equal(parse(""), 0);
    assert_int_equal(scenario.count, 0);
    assert_int_equal(parse("switch.pfc = on\n[output]\ntitle = a # b#c\n"), 0);
    has("switch.pfc", "on");
    has("output.title", "a");
    assert_int_equal(parse("[output]\ntitle = #1 of b#c\n"), 0);
    has("output.title", "#1 of b#c");
}

static void names_line_and_remedy(void **state)
{
    char text[CLI_SETTINGS_MAX * 16] = "";
    (void)state;
    refuses("[a]\nb = 1\nb = 2\n", "x.ini:3: a.b: set twice (first in line 2)");
    refuses("\n[a\n", "x.ini:2: invalid line ([section] or name = value)");
    refuses("hello\n", "x.ini:1: invalid line");
    refuses("[a]\nb =\n", "x.ini:2: a.b: missing value");
    refuses("[a]\n = 3\n", "x.ini:2: : invalid key");
    refuses("[a]\nb = 1\nc = \033[2J\n", "x.ini:3: byte 5 of the line is a control character");
    refuses("[a]\nb = \xc2\x9b\n", "x.ini:2: byte 5 of the line is a control character");
    refuses("[a]\nb = 1\nc = \xc3\xa9 \xe9\n", "x.ini:3: byte 8 of the line is not UTF-8");
    for (unsigned i = 0; i <= CLI_SETTINGS_MAX; i++)
        sprintf(text + strlen(text), "k%u=1\n", i);
    refuses(text, "more than 256 settings");
    memset(text, 'a', 300);
    text[300] = 0;
    refuses(text, "x.ini:1: line longer than");
    assert_int_equal(cli_scenario_parse(&scenario, "x.ini", "a=1\0b", 5), -1);
    assert_non_null(strstr(scenario.wrong, "control character"));
}

static void takes_the_longest_line_and_no_longer(void **state)
{
    char text[256] = "a=";
    (void)state;
    memset(text + 2, 'b', 196);
    assert_int_equal(parse(text), 0);
    assert_int_equal(strlen(scenario.settings[0].value), 196);
    text[198] = 'b';
    refuses(text, "longer than 198 bytes");
}

static void the_command_line_replaces(void **state)
{
    (void)state;
    assert_int_equal(parse("[switch]\npfc = on\n"), 0);
    assert_int_equal(cli_scenario_set(&scenario, "set", "switch.pfc=off"), 0);
    assert_int_equal(cli_scenario_set(&scenario, "set", "topology.link=loss=1e-3"), 0);
    has("switch.pfc", "off");
    has("topology.link", "loss=1e-3");
    assert_int_equal(cli_scenario_find(&scenario, "switch.pfc")->line, 0);
    assert_int_equal(scenario.count, 2);
    assert_int_equal(cli_scenario_set(&scenario, "set", "output.title=a\xff"), -1);
    assert_non_null(strstr(scenario.wrong, "--set: byte 15 is not UTF-8"));
    assert_int_equal(cli_scenario_set(&scenario, "set", "switch.pfc"), -1);
    assert_non_null(strstr(scenario.wrong, "--set switch.pfc: invalid setting"));
    assert_int_equal(cli_scenario_set(&scenario, "set", "=off"), -1);
    assert_int_equal(cli_scenario_set(&scenario, "set", "switch.pfc="), -1);
}

static void tells_what_a_file_is_about(void **state)
{
    char about[24];
    const char *text = "# \t One flow, alone on a cable.\n[topology]\n";
    (void)state;
    cli_scenario_about(text, strlen(text), about, sizeof about);
    assert_string_equal(about, "One flow, alone on a ca");
    char whole[200];
    text = "# Ten AllReduces\n#  of 2.5 MB, between hosts\r\n# that pause. Another sentence.\n";
    cli_scenario_about(text, strlen(text), whole, sizeof whole);
    assert_string_equal(whole, "Ten AllReduces of 2.5 MB, between hosts that pause.");
    text = "; A line without an end\n;\n; Another paragraph.\n";
    cli_scenario_about(text, strlen(text), whole, sizeof whole);
    assert_string_equal(whole, "A line without an end");
    text = "# A line without an end\n[topology]\n# b.\n";
    cli_scenario_about(text, strlen(text), whole, sizeof whole);
    assert_string_equal(whole, "A line without an end");
    cli_scenario_about("[a]\n# b\n", 8, about, sizeof about);
    assert_string_equal(about, "");
    cli_scenario_about("#", 1, about, sizeof about);
    assert_string_equal(about, "");
    cli_scenario_about("", 0, about, sizeof about);
    assert_string_equal(about, "");
}

static int run_scenario(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_settings_apart),      cmocka_unit_test(takes_nothing_and_no_section),
        cmocka_unit_test(names_line_and_remedy),     cmocka_unit_test(takes_the_longest_line_and_no_longer),
        cmocka_unit_test(the_command_line_replaces), cmocka_unit_test(tells_what_a_file_is_about),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_link_list() + run_scenario();
}
