/*
 * test_decimal.c - decimal numbers to and from text.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/decimal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <float.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

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

int main(void)
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
