/*
 * test_units_format.c - three digits and the unit that fits.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/units.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_times),        cmocka_unit_test(test_absurd_values),
        cmocka_unit_test(test_cuts_at_size), cmocka_unit_test(test_parses_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
