/*
 * test_cli_options.c - the option parser: every kind of value, at its limits.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/options/cli_options.h"
#include "cli/terminal/terminal.h"

#include <longhaul/link.h>
#include <longhaul/scheme.h>
#include <stdio.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct {
    bool flag;
    const char *text, *scheme;
    uint32_t count, mtu;
    uint64_t size, rate;
    lh_time time;
    struct lh_link_spec link;
} got;

static const struct cli_option some[] = {
    {.name = "flag", .kind = CLI_FLAG, .target = &got.flag, .help = ""},
    {.name = "text", .value = "T", .kind = CLI_TEXT, .target = &got.text, .letter = 't', .help = ""},
    {.name = "count",
     .value = "N",
     .kind = CLI_COUNT,
     .target = &got.count,
     .min = 2,
     .max = 5,
     .help = ""},
    {.name = "slots",
     .value = "N",
     .kind = CLI_COUNT,
     .target = &got.count,
     .min = 1,
     .multiple = CLI_POWER_OF_TWO,
     .help = ""},
    {.name = NULL},
};

static const struct cli_option others[] = {
    {.name = "mtu",
     .value = "SIZE",
     .kind = CLI_SIZE32,
     .target = &got.mtu,
     .min = 256,
     .max = 4096,
     .multiple = CLI_POWER_OF_TWO,
     .help = ""},
    {.name = "size", .value = "SIZE", .kind = CLI_SIZE, .target = &got.size, .help = ""},
    {.name = "rate", .value = "RATE", .kind = CLI_RATE, .target = &got.rate, .help = ""},
    {.name = "time", .value = "TIME", .kind = CLI_TIME, .target = &got.time, .min = 1000, .help = ""},
    {.name = "link", .value = "LINK", .kind = CLI_LINK, .target = &got.link, .help = ""},
    {.name = "scheme", .value = "S", .kind = CLI_SCHEME, .target = &got.scheme, .help = ""},
    {.name = NULL},
};

static const struct cli_usage usage = {
    .command = "test",
    .operands = "A [B]",
    .about = "",
    .groups = {some, others},
    .operands_min = 1,
    .operands_max = 2,
};

static struct cli_operands operands;

/* Splits at blanks; the operand "a" is always there. */
static int parse(const char *line)
{
    static char copy[256];
    char *words[16] = {(char *)"test", (char *)"a"};
    int count = 2;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        words[count++] = word;
    memset(&got, 0, sizeof got);
    return cli_options_parse(&usage, count, words, &operands);
}

static void values_arrive(void **state)
{
    (void)state;
    assert_int_equal(parse("--flag --text x --count 3 --mtu 4KiB --size=1.5GiB --rate 10Gbit --time 25ms"),
                     -1);
    assert_true(got.flag);
    assert_string_equal(got.text, "x");
    assert_int_equal(got.count, 3);
    assert_int_equal(got.mtu, 4096);
    assert_true(got.size == 1610612736u);
    assert_true(got.rate == 10000000000u);
    assert_true(got.time == 25000000u);
}

static void forms_of_writing(void **state)
{
    (void)state;
    assert_int_equal(parse("-t x"), -1);
    assert_string_equal(got.text, "x");
    assert_int_equal(parse("-ty"), -1);
    assert_string_equal(got.text, "y");
    assert_int_equal(parse("--text="), -1);
    assert_string_equal(got.text, "");
    assert_int_equal(parse("--text --flag"), -1); /* a value may look like an option */
    assert_string_equal(got.text, "--flag");
    assert_int_equal(parse("-- --flag"), -1);
    assert_false(got.flag);
    assert_int_equal(operands.count, 2);
    assert_string_equal(operands.text[1], "--flag");
    assert_int_equal(parse("-"), -1);
    assert_string_equal(operands.text[1], "-");
}

static void wrong_lines_are_misuse(void **state)
{
    static const char *const wrong[] = {
        "--nothing",   "-x",           "--flag=1",     "--text",
        "--count",     "--count 1",    "--count 6",    "--count -3",
        "--count 3x",  "--count=",     "--count 0x3",  "--slots 3",
        "--slots 0",   "--mtu 128",    "--mtu 3000",   "--mtu 8192",
        "--mtu 4Kib",  "--size 12Q",   "--size -1",    "--rate 10",
        "--time 5",    "--time 999ns", "--link foo=1", "--link rtt=x",
        "--scheme no", "--scheme sr-", "b c",          "--count 99999999999999999999999",
        "--fla",
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (parse(wrong[i]) != CLI_EXIT_USAGE)
            fail_msg("taken, but wrong: %s", wrong[i]);
}

static void wrong_values_leave_the_target(void **state)
{
    (void)state;
    assert_int_equal(parse("--count 3 --count 9"), CLI_EXIT_USAGE);
    assert_int_equal(got.count, 3);
    assert_int_equal(parse("--mtu 1024 --mtu 9KiB"), CLI_EXIT_USAGE);
    assert_int_equal(got.mtu, 1024);
}

static void limits_themselves_are_taken(void **state)
{
    (void)state;
    assert_int_equal(parse("--count 2"), -1);
    assert_int_equal(parse("--count 5"), -1);
    assert_int_equal(parse("--mtu 256"), -1);
    assert_int_equal(parse("--mtu 4096"), -1);
    assert_int_equal(parse("--time 1us"), -1);
    assert_int_equal(parse("--slots 2147483648"), -1);
}

static void links_and_schemes(void **state)
{
    (void)state;
    assert_int_equal(parse("--link rtt=25ms,rate=2Gbit,loss=1e-3"), -1);
    assert_true(got.link.delay_ns == 12500000u && got.link.rate_bps == 2000000000u);
    for (const struct lh_scheme *const *scheme = lh_schemes(); *scheme; scheme++) {
        char line[64];
        snprintf(line, sizeof line, "--scheme %s", (*scheme)->name);
        assert_int_equal(parse(line), -1);
        assert_string_equal(got.scheme, (*scheme)->name);
        snprintf(line, sizeof line, "--scheme %s,nonsense=1", (*scheme)->name);
        assert_int_equal(parse(line), CLI_EXIT_USAGE);
    }
}

static void operands_are_counted(void **state)
{
    char *none[] = {(char *)"test", NULL};
    (void)state;
    assert_int_equal(cli_options_parse(&usage, 1, none, &operands), CLI_EXIT_USAGE);
    assert_int_equal(parse(""), -1);
    assert_int_equal(operands.count, 1);
    assert_int_equal(parse("b"), -1);
    assert_int_equal(operands.count, 2);
}

static void near_misses_are_close(void **state)
{
    (void)state;
    assert_int_equal(cli_distance("", "abc"), 3);
    assert_int_equal(cli_distance("kitten", "sitting"), 3);
    assert_int_equal(cli_distance("same", "same"), 0);
    assert_true(cli_is_close("sned", "send") || cli_is_close("sen", "send"));
    assert_true(cli_is_close("relability", "reliability"));
    assert_false(cli_is_close("zebra", "send"));
    assert_false(cli_is_close("", "send"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_arrive),
        cmocka_unit_test(forms_of_writing),
        cmocka_unit_test(wrong_lines_are_misuse),
        cmocka_unit_test(wrong_values_leave_the_target),
        cmocka_unit_test(limits_themselves_are_taken),
        cmocka_unit_test(links_and_schemes),
        cmocka_unit_test(operands_are_counted),
        cmocka_unit_test(near_misses_are_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
