/*
 * test_units.c - decimal numbers to and from text.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>
#include <longhaul/units.h>

#include "base/units.h"

/* ---- test decimal ---------------------------------------------------------------------------------- */

static int scale(const char *text, uint64_t unit, uint64_t *value)
{
    struct lh_decimal decimal;
    const char *at = text;
    int rc = lh_decimal_read(&at, &decimal);
    return rc != 0 ? rc : lh_decimal_scale(&decimal, unit, value);
}

static void test_read_stops_behind_the_number(void **state)
{
    (void)state;
    struct lh_decimal decimal;
    const char *text = "12.034abc";
    assert_int_equal(lh_decimal_read(&text, &decimal), 0);
    assert_string_equal(text, "abc");
    assert_true(decimal.whole == 12 && decimal.fraction == 34 && decimal.fraction_digits == 3);
}

static void test_read_refuses_what_is_no_number(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "-1", "+1", " 1", ".5", "1.", "1.x", "x"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct lh_decimal decimal = {.whole = 77};
        const char *at = texts[i];
        assert_int_equal(lh_decimal_read(&at, &decimal), -LH_EINVAL);
        assert_ptr_equal(at, texts[i]);
        assert_true(decimal.whole == 77);
    }
}

static void test_whole_part_has_64_bits(void **state)
{
    (void)state;
    uint64_t value = 0;
    assert_int_equal(scale("18446744073709551615", 1, &value), 0);
    assert_true(value == UINT64_MAX);
    assert_int_equal(scale("18446744073709551616", 1, &value), -LH_ERANGE);
    assert_int_equal(scale("99999999999999999999", 1, &value), -LH_ERANGE);
    assert_int_equal(scale("184467440737095516150", 1, &value), -LH_ERANGE);
    assert_int_equal(scale("000000000000000000000000000000000007", 1, &value), 0);
    assert_true(value == 7);
}

static void test_scale_is_exact(void **state)
{
    (void)state;
    uint64_t value = 0;
    assert_int_equal(scale("1.5", 1024, &value), 0);
    assert_true(value == 1536);
    assert_int_equal(scale("18446744073.709551615", 1000000000, &value), 0);
    assert_true(value == UINT64_MAX);
    assert_int_equal(scale("18446744073.709551616", 1000000000, &value), -LH_ERANGE);
    assert_int_equal(scale("16777215.999999999999999999", (uint64_t)1 << 40, &value), -LH_ERANGE);
    assert_int_equal(scale("16777215", (uint64_t)1 << 40, &value), 0);
    assert_true(value == (uint64_t)16777215 << 40);
}

static void test_scale_rounds_to_the_nearest(void **state)
{
    (void)state;
    uint64_t value = 0;
    assert_int_equal(scale("1.4999", 1, &value), 0);
    assert_true(value == 1);
    assert_int_equal(scale("1.5", 1, &value), 0);
    assert_true(value == 2);
    assert_int_equal(scale("0.5", 1, &value), 0);
    assert_true(value == 1);
}

static void test_scale_refuses_to_round_to_nothing(void **state)
{
    (void)state;
    uint64_t value = 5;
    assert_int_equal(scale("0.4999", 1, &value), -LH_ERANGE);
    assert_true(value == 5);
    assert_int_equal(scale("0.000", 1, &value), 0);
    assert_true(value == 0);
}

/* Digits beyond the eighteenth of a fraction are read, but change nothing. */
static void test_long_fractions_are_cut(void **state)
{
    (void)state;
    uint64_t value = 0;
    assert_int_equal(scale("1.500000000000000000999999999999999999999999", 1000, &value), 0);
    assert_true(value == 1500);
}

static void check_double(const char *text, double expected, const char *rest)
{
    double value = -1;
    assert_int_equal(lh_decimal_read_double(&text, &value), 0);
    assert_true(value == expected);
    assert_string_equal(text, rest);
}

/* The compiler's own constants are correctly rounded. */
static void test_read_double(void **state)
{
    (void)state;
    check_double("0", 0, "");
    check_double("0.0e5", 0, "");
    check_double("1", 1, "");
    check_double("1e-4", 1e-4, "");
    check_double("0.0001", 1e-4, "");
    check_double("1E+3x", 1000, "x");
    check_double("123.456e-2,", 1.23456, ",");
    check_double("0.1", 0.1, "");
    check_double("7e-4", 7e-4, "");
    check_double("3.14159265358979323846264338327950288", 3.14159265358979323846264338327950288, "");
    check_double("00000000000000000000000000000.25", 0.25, "");
    check_double("123456789012345678901234567890", 123456789012345678901234567890., "");
    check_double("0.00000000000000000000000000001", 1e-29, "");
    check_double("0.5%", 0.5, "%");
}

static void test_read_double_refuses(void **state)
{
    (void)state;
    static const char *const junk[] = {"",    "e5", ".5",  "5.",  "5.e1", "1e",
                                       "1e+", "-1", "nan", "inf", "1e-x"};
    static const char *const extreme[] = {
        "1e999", "1e400", "1e-999", "1e99999999999999999999", "1e18446744073709551616", "2e308"};
    double value = 7;
    for (size_t i = 0; i < sizeof junk / sizeof junk[0]; i++) {
        const char *at = junk[i];
        assert_int_equal(lh_decimal_read_double(&at, &value), -LH_EINVAL);
        assert_ptr_equal(at, junk[i]);
    }
    for (size_t i = 0; i < sizeof extreme / sizeof extreme[0]; i++) {
        const char *at = extreme[i];
        assert_int_equal(lh_decimal_read_double(&at, &value), -LH_ERANGE);
    }
    assert_true(value == 7);
}

static void test_percent_is_the_same_double(void **state)
{
    (void)state;
    const char *at = "0.07%";
    double value = 0;
    assert_int_equal(lh_decimal_read_ratio(&at, &value), 0);
    assert_true(value == 7e-4);
    assert_string_equal(at, "");
    at = "0.25";
    assert_int_equal(lh_decimal_read_ratio(&at, &value), 0);
    assert_true(value == 0.25);
}

static void check_format(double value, const char *expected)
{
    char out[LH_DECIMAL_DOUBLE_MAX];
    assert_string_equal(lh_decimal_format_double(value, out, sizeof out), expected);
}

static void test_format_is_as_people_write(void **state)
{
    (void)state;
    check_format(0, "0");
    check_format(1, "1");
    check_format(10, "10");
    check_format(8.5, "8.5");
    check_format(123.25, "123.25");
    check_format(0.5, "0.5");
    check_format(0.05, "0.05");
    check_format(0.0123, "0.0123");
    check_format(0.001, "0.001");
    check_format(1e-4, "1e-4");
    check_format(1.25e-7, "1.25e-7");
    check_format(0.1, "0.1");
    check_format(1e9, "1000000000");
    check_format(1e15, "1000000000000000");
    check_format(1e16, "1e16");
    check_format(1.0 / 3, "0.3333333333333333");
}

static void test_format_cuts(void **state)
{
    (void)state;
    char out[4] = "zzz";
    lh_decimal_format_double(123.25, out, sizeof out);
    assert_string_equal(out, "123");
}

/* Any double between 1e-20 and 1e20 comes back as it was. */
static void test_format_and_read_round_trip(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < 20000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t bits = ((seed >> 12) & 0xFFFFFFFFFFFFF) | (uint64_t)(1023 - 66 + seed % 132) << 52;
        double value;
        double back = -1;
        char out[LH_DECIMAL_DOUBLE_MAX];
        memcpy(&value, &bits, sizeof value);
        const char *at = lh_decimal_format_double(value, out, sizeof out);
        assert_int_equal(lh_decimal_read_double(&at, &back), 0);
        assert_true(back == value);
        assert_string_equal(at, "");
    }
}

static void test_extremes_fit(void **state)
{
    (void)state;
    static const double values[] = {DBL_MAX, DBL_MIN, 1.2345678901234567e-300};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char out[LH_DECIMAL_DOUBLE_MAX + 16];
        double back = -1;
        const char *at = lh_decimal_format_double(values[i], out, sizeof out);
        assert_true(strlen(out) < LH_DECIMAL_DOUBLE_MAX);
        assert_int_equal(lh_decimal_read_double(&at, &back), 0);
        assert_true(back >= values[i] * (1 - 1e-15) && back <= values[i] * (1 + 1e-15));
    }
}

static int run_decimal(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_stops_behind_the_number),
        cmocka_unit_test(test_read_refuses_what_is_no_number),
        cmocka_unit_test(test_whole_part_has_64_bits),
        cmocka_unit_test(test_scale_is_exact),
        cmocka_unit_test(test_scale_rounds_to_the_nearest),
        cmocka_unit_test(test_scale_refuses_to_round_to_nothing),
        cmocka_unit_test(test_long_fractions_are_cut),
        cmocka_unit_test(test_read_double),
        cmocka_unit_test(test_read_double_refuses),
        cmocka_unit_test(test_percent_is_the_same_double),
        cmocka_unit_test(test_format_is_as_people_write),
        cmocka_unit_test(test_format_cuts),
        cmocka_unit_test(test_format_and_read_round_trip),
        cmocka_unit_test(test_extremes_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test units format ----------------------------------------------------------------------------- */

/* Three digits and the unit that fits. */

static void check_size(uint64_t bytes, const char *expected)
{
    char out[LH_FORMAT_MAX];
    assert_string_equal(lh_format_size(bytes, out, sizeof out), expected);
}

static void check_rate(double bps, const char *expected)
{
    char out[LH_FORMAT_MAX];
    assert_string_equal(lh_format_rate(bps, out, sizeof out), expected);
}

static void check_time(double seconds, const char *expected)
{
    char out[LH_FORMAT_MAX];
    assert_string_equal(lh_format_time(seconds, out, sizeof out), expected);
}

static void test_sizes(void **state)
{
    (void)state;
    check_size(0, "0B");
    check_size(1, "1B");
    check_size(1023, "1023B");
    check_size(1024, "1KiB");
    check_size(1536, "1.5KiB");
    check_size(1300, "1.27KiB");
    check_size(13000, "12.7KiB");
    check_size(130000, "127KiB");
    check_size((uint64_t)1023 << 10, "1023KiB");
    check_size(((uint64_t)1 << 20) - 1, "1MiB");
    check_size((uint64_t)128 << 20, "128MiB");
    check_size((uint64_t)3 << 29, "1.5GiB");
    check_size((uint64_t)5 << 40, "5TiB");
    check_size(UINT64_MAX, "16777216TiB");
}

static void test_rates(void **state)
{
    (void)state;
    check_rate(0, "0bit/s");
    check_rate(0.25, "0.25bit/s");
    check_rate(1, "1bit/s");
    check_rate(999.4, "999bit/s");
    check_rate(999.5, "1kbit/s");
    check_rate(9.994e9, "9.99Gbit/s");
    check_rate(9.996e9, "10Gbit/s");
    check_rate(99.94e9, "99.9Gbit/s");
    check_rate(99.96e9, "100Gbit/s");
    check_rate(12345, "12.3kbit/s");
    check_rate(1.5e6, "1.5Mbit/s");
    check_rate(4e11, "400Gbit/s");
    check_rate(2e15, "2000Tbit/s");
}

static void test_times(void **state)
{
    (void)state;
    check_time(0, "0ns");
    check_time(1e-9, "1ns");
    check_time(2.5e-10, "0.25ns");
    check_time(999.6e-9, "1us");
    check_time(25e-3, "25ms");
    check_time(12.5e-3, "12.5ms");
    check_time(1, "1s");
    check_time(90, "90s");
    check_time(599, "599s");
    check_time(600, "10min");
    check_time(3600, "60min");
}

/* What is no number that anyone means still makes a text that ends. */
static void test_absurd_values(void **state)
{
    (void)state;
    static const double values[] = {-1, -1e300, 1e300, INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char out[LH_FORMAT_MAX];
        assert_true(strlen(lh_format_rate(values[i], out, sizeof out)) < sizeof out);
        assert_true(strlen(lh_format_time(values[i], out, sizeof out)) < sizeof out);
    }
    check_rate(INFINITY, "infTbit/s");
    check_rate(1e28, "infTbit/s");
    check_rate(-5, "0bit/s");
}

static void test_cuts_at_size(void **state)
{
    (void)state;
    char out[5] = "zzzz";
    lh_format_rate(4e11, out, 4);
    assert_string_equal(out, "400");
    assert_int_equal(out[4], '\0');
    lh_format_size(5, out, 0);
    assert_string_equal(out, "400");
}

/* What is formatted parses again, to within half of the last of three digits. */
static void test_parses_again(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < 20000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t value = seed >> (8 + seed % 56);
        uint64_t back = 0;
        char out[LH_FORMAT_MAX];
        assert_int_equal(lh_parse_size(lh_format_size(value, out, sizeof out), &back), 0);
        assert_true(fabs((double)back - (double)value) <= 0.0051 * (double)value);
        assert_int_equal(lh_parse_rate(lh_format_rate((double)value, out, sizeof out), &back), 0);
        assert_true(fabs((double)back - (double)value) <= 0.0051 * (double)value);
        assert_int_equal(lh_parse_time(lh_format_time((double)value * 1e-9, out, sizeof out), &back), 0);
        assert_true(fabs((double)back - (double)value) <= 0.0051 * (double)value + 0.5);
    }
}

static int run_units_format(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_times),        cmocka_unit_test(test_absurd_values),
        cmocka_unit_test(test_cuts_at_size), cmocka_unit_test(test_parses_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test units parse ------------------------------------------------------------------------------ */

/* Every unit, fraction, limit and piece of junk. */

static void units_parse_check_size(const char *text, uint64_t expected)
{
    uint64_t value = ~expected;
    assert_int_equal(lh_parse_size(text, &value), 0);
    assert_true(value == expected);
}

static void units_parse_check_rate(const char *text, uint64_t expected)
{
    uint64_t value = ~expected;
    assert_int_equal(lh_parse_rate(text, &value), 0);
    assert_true(value == expected);
}

static void units_parse_check_time(const char *text, uint64_t expected)
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
    units_parse_check_size("0", 0);
    units_parse_check_size("1", 1);
    units_parse_check_size("4096", 4096);
    units_parse_check_size("7B", 7);
    units_parse_check_size("7kB", 7000);
    units_parse_check_size("7MB", 7000000);
    units_parse_check_size("7GB", 7000000000);
    units_parse_check_size("7TB", 7000000000000);
    units_parse_check_size("7KiB", (uint64_t)7 << 10);
    units_parse_check_size("7MiB", (uint64_t)7 << 20);
    units_parse_check_size("7GiB", (uint64_t)7 << 30);
    units_parse_check_size("7TiB", (uint64_t)7 << 40);
    units_parse_check_size("1.5GiB", (uint64_t)3 << 29);
    units_parse_check_size("0.5KiB", 512);
    units_parse_check_size("2.0001kB", 2000);
}

static void test_size_limits(void **state)
{
    (void)state;
    units_parse_check_size("18446744073709551615", UINT64_MAX);
    units_parse_check_size("16777215TiB", (uint64_t)16777215 << 40);
    refuse(lh_parse_size, "18446744073709551616", -LH_ERANGE, "128MiB");
    refuse(lh_parse_size, "16777216TiB", -LH_ERANGE, "128MiB");
    refuse(lh_parse_size, "0.1B", -LH_ERANGE, "128MiB");
}

static void test_rate_units(void **state)
{
    (void)state;
    units_parse_check_rate("0", 0);
    units_parse_check_rate("0.0", 0);
    units_parse_check_rate("3bit", 3);
    units_parse_check_rate("3kbit", 3000);
    units_parse_check_rate("3Mbit", 3000000);
    units_parse_check_rate("3Gbit", 3000000000);
    units_parse_check_rate("3Tbit", 3000000000000);
    units_parse_check_rate("2.5Gbit/s", 2500000000);
    units_parse_check_rate("2.5Gbitps", 2500000000);
    units_parse_check_rate("2.5Gbps", 2500000000);
    units_parse_check_rate("1bit/s", 1);
    units_parse_check_rate("1bps", 1);
    units_parse_check_rate("1kbps", 1000);
    units_parse_check_rate("1Mbit/s", 1000000);
    units_parse_check_rate("0bit", 0);
    units_parse_check_rate("400G", 400000000000);
    units_parse_check_rate("2.5G", 2500000000);
    units_parse_check_rate("7k", 7000);
    units_parse_check_rate("7M", 7000000);
    units_parse_check_rate("7T", 7000000000000);
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
    units_parse_check_rate("18446744Tbit", 18446744000000000000u);
    refuse(lh_parse_rate, "18446745Tbit", -LH_ERANGE, "10Gbit");
    refuse(lh_parse_rate, "0.4bit", -LH_ERANGE, "10Gbit");
}

static void test_time_units(void **state)
{
    (void)state;
    units_parse_check_time("0", 0);
    units_parse_check_time("9ns", 9);
    units_parse_check_time("9us", 9000);
    units_parse_check_time("9ms", 9000000);
    units_parse_check_time("9s", 9000000000);
    units_parse_check_time("9min", 540000000000);
    units_parse_check_time("1h", 3600000000000);
    units_parse_check_time("1.5h", 5400000000000);
    units_parse_check_time("12.5ms", 12500000);
    units_parse_check_time("0.001us", 1);
}

static void test_time_limits(void **state)
{
    (void)state;
    units_parse_check_time("18446744073.709551615s", UINT64_MAX);
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

static int run_units_parse(void)
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

int main(void)
{
    return run_decimal() + run_units_format() + run_units_parse();
}
