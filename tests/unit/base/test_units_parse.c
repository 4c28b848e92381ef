/*
 * test_units_parse.c - every unit, fraction, limit and piece of junk.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/units.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

static void check_size(const char *text, uint64_t expected)
{
    uint64_t value = ~expected;
    assert_int_equal(lh_parse_size(text, &value), 0);
    assert_true(value == expected);
}

static void check_rate(const char *text, uint64_t expected)
{
    uint64_t value = ~expected;
    assert_int_equal(lh_parse_rate(text, &value), 0);
    assert_true(value == expected);
}

static void check_time(const char *text, uint64_t expected)
{
    lh_time value = ~expected;
    assert_int_equal(lh_parse_time(text, &value), 0);
    assert_true(value == expected);
}

static void check_ratio(const char *text, double expected)
{
    double value = -1;
    assert_int_equal(lh_parse_ratio(text, &value), 0);
    assert_true(value == expected);
}

typedef int parse_integer(const char *text, uint64_t *value);

/* Refused with that code; the value stays; the message names the text and the example. */
static void refuse(parse_integer *parse, const char *text, int code, const char *example)
{
    uint64_t value = 4711;
    assert_int_equal(parse(text, &value), code);
    assert_true(value == 4711);
    assert_non_null(strstr(lh_last_error(), example));
    if (strlen(text) < 64)
        assert_non_null(strstr(lh_last_error(), text));
}

/* Refused; the message names both spellings. */
static void check_ambiguous(parse_integer *parse, const char *text, const char *one, const char *other)
{
    refuse(parse, text, -LH_EINVAL, one);
    assert_non_null(strstr(lh_last_error(), other));
    assert_non_null(strstr(lh_last_error(), "ambiguous"));
}

static void refuse_ratio(const char *text, int code)
{
    double value = 4711;
    assert_int_equal(lh_parse_ratio(text, &value), code);
    assert_true(value == 4711);
    assert_non_null(strstr(lh_last_error(), code == -LH_ERANGE ? "(0 to 1)" : "0.01%"));
    assert_non_null(strstr(lh_last_error(), text));
}

static void test_size_units(void **state)
{
    (void)state;
    check_size("0", 0);
    check_size("1", 1);
    check_size("4096", 4096);
    check_size("7B", 7);
    check_size("7kB", 7000);
    check_size("7MB", 7000000);
    check_size("7GB", 7000000000);
    check_size("7TB", 7000000000000);
    check_size("7KiB", (uint64_t)7 << 10);
    check_size("7MiB", (uint64_t)7 << 20);
    check_size("7GiB", (uint64_t)7 << 30);
    check_size("7TiB", (uint64_t)7 << 40);
    check_size("1.5GiB", (uint64_t)3 << 29);
    check_size("0.5KiB", 512);
    check_size("2.0001kB", 2000);
}

static void test_size_limits(void **state)
{
    (void)state;
    check_size("18446744073709551615", UINT64_MAX);
    check_size("16777215TiB", (uint64_t)16777215 << 40);
    refuse(lh_parse_size, "18446744073709551616", -LH_ERANGE, "128MiB");
    refuse(lh_parse_size, "16777216TiB", -LH_ERANGE, "128MiB");
    refuse(lh_parse_size, "0.1B", -LH_ERANGE, "128MiB");
}

static void test_rate_units(void **state)
{
    (void)state;
    check_rate("0", 0);
    check_rate("0.0", 0);
    check_rate("3bit", 3);
    check_rate("3kbit", 3000);
    check_rate("3Mbit", 3000000);
    check_rate("3Gbit", 3000000000);
    check_rate("3Tbit", 3000000000000);
    check_rate("2.5Gbit/s", 2500000000);
    check_rate("2.5Gbitps", 2500000000);
    check_rate("2.5Gbps", 2500000000);
    check_rate("1bit/s", 1);
    check_rate("1bps", 1);
    check_rate("1kbps", 1000);
    check_rate("1Mbit/s", 1000000);
    check_rate("0bit", 0);
    check_rate("400G", 400000000000);
    check_rate("2.5G", 2500000000);
    check_rate("7k", 7000);
    check_rate("7M", 7000000);
    check_rate("7T", 7000000000000);
}

static void test_ambiguous(void **state)
{
    (void)state;
    check_ambiguous(lh_parse_size, "64KB", "64kB", "64KiB");
    check_ambiguous(lh_parse_size, "64kb", "64kB", "64KiB");
    check_ambiguous(lh_parse_size, "64K", "64kB", "64KiB");
    check_ambiguous(lh_parse_size, "64k", "64kB", "64KiB");
    check_ambiguous(lh_parse_size, "128M", "128MB", "128MiB");
    check_ambiguous(lh_parse_size, "128mb", "128MB", "128MiB");
    check_ambiguous(lh_parse_size, "1.5G", "1.5GB", "1.5GiB");
    check_ambiguous(lh_parse_size, "1.5Gb", "1.5GB", "1.5GiB");
    check_ambiguous(lh_parse_size, "2T", "2TB", "2TiB");
    check_ambiguous(lh_parse_size, "2tb", "2TB", "2TiB");
    check_ambiguous(lh_parse_time, "5m", "5min", "5ms");
}

static void test_rate_limits(void **state)
{
    (void)state;
    check_rate("18446744Tbit", 18446744000000000000u);
    refuse(lh_parse_rate, "18446745Tbit", -LH_ERANGE, "10Gbit");
    refuse(lh_parse_rate, "0.4bit", -LH_ERANGE, "10Gbit");
}

static void test_time_units(void **state)
{
    (void)state;
    check_time("0", 0);
    check_time("9ns", 9);
    check_time("9us", 9000);
    check_time("9ms", 9000000);
    check_time("9s", 9000000000);
    check_time("9min", 540000000000);
    check_time("1h", 3600000000000);
    check_time("1.5h", 5400000000000);
    check_time("12.5ms", 12500000);
    check_time("0.001us", 1);
}

static void test_time_limits(void **state)
{
    (void)state;
    check_time("18446744073.709551615s", UINT64_MAX);
    refuse(lh_parse_time, "18446744073.709551616s", -LH_ERANGE, "25ms");
    refuse(lh_parse_time, "0.0004us", -LH_ERANGE, "25ms");
}

static void test_junk(void **state)
{
    (void)state;
    static const char *const sizes[] = {"",    " ",     "-1",  "+1",     " 1",   "1 ",    "1 B",  "x",
                                        "B",   ".5B",   "1.B", "1.5.5B", "1b",   "1kbit", "1KBB", "1mib",
                                        "1Ki", "1MiBB", "1e3", "0x10",   "1PiB", "1,5B",  "١"};
    static const char *const rates[] = {
        "",   "10",   "10Gi", "10g",   "10Gb",    "10GB",   "10Gbits", "10Gbit/",    "10Gbit/S",  "10GBps",
        "/s", "10/s", "10ps", "-1bit", "10 Gbit", "10gbit", "10Kbit",  "10Gbit/s/s", "10Gbit/sps"};
    static const char *const times[] = {"",      "25",    "25 ms", "25hr",   "25MS",
                                        "25sec", "-25ms", "1H",    "25msms", "s"};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        refuse(lh_parse_size, sizes[i], -LH_EINVAL, "128MiB");
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
        refuse(lh_parse_rate, rates[i], -LH_EINVAL, "10Gbit");
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        refuse(lh_parse_time, times[i], -LH_EINVAL, "25ms");
}

static void test_long_text_is_refused_with_short_words(void **state)
{
    (void)state;
    char text[3000];
    memset(text, '1', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    refuse(lh_parse_size, text, -LH_ERANGE, "128MiB");
    text[sizeof text - 2] = 'M';
    refuse(lh_parse_size, text, -LH_ERANGE, "128MiB");
    memset(text, '0', sizeof text - 2);
    check_ambiguous(lh_parse_size, text, "MB", "MiB");
    memset(text + 1, 'M', sizeof text - 2);
    refuse(lh_parse_size, text, -LH_EINVAL, "128MiB");
}

static void test_ratios(void **state)
{
    (void)state;
    check_ratio("0", 0);
    check_ratio("1", 1);
    check_ratio("100%", 1);
    check_ratio("1e-4", 1e-4);
    check_ratio("0.0001", 1e-4);
    check_ratio("0.01%", 1e-4);
    check_ratio("1E-4", 1e-4);
    check_ratio("1.5e-3%", 1.5e-5);
    check_ratio("0.29", 0.29);
}

static void test_ratio_limits_and_junk(void **state)
{
    (void)state;
    static const char *const junk[] = {"",      "-0.1", "x",   "1e", "0.1%%", "% ",
                                       "1e-4x", "0.1 ", "nan", ".1", "1/10"};
    refuse_ratio("1.0000001", -LH_ERANGE);
    refuse_ratio("100.1%", -LH_ERANGE);
    refuse_ratio("1e999", -LH_ERANGE);
    refuse_ratio("1e-999", -LH_ERANGE);
    for (size_t i = 0; i < sizeof junk / sizeof junk[0]; i++)
        refuse_ratio(junk[i], -LH_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_size_units),
        cmocka_unit_test(test_size_limits),
        cmocka_unit_test(test_rate_units),
        cmocka_unit_test(test_rate_limits),
        cmocka_unit_test(test_time_units),
        cmocka_unit_test(test_time_limits),
        cmocka_unit_test(test_ambiguous),
        cmocka_unit_test(test_junk),
        cmocka_unit_test(test_long_text_is_refused_with_short_words),
        cmocka_unit_test(test_ratios),
        cmocka_unit_test(test_ratio_limits_and_junk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
