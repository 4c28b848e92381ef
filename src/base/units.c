/*
 * decimal.c - decimal numbers in text, by integer arithmetic.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/decimal.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <longhaul/error.h>

__extension__ typedef unsigned __int128 uint128;

/* Any number of this many decimal digits fits 64 bits. */
#define DIGITS_MAX 19u

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int read_whole(const char **text, uint64_t *whole)
{
    uint64_t value = 0;
    const char *at = *text;
    if (!is_digit(*at))
        return -LH_EINVAL;
    for (; is_digit(*at); at++) {
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (unsigned)(*at - '0'), &value))
            return -LH_ERANGE;
    }
    *whole = value;
    *text = at;
    return 0;
}

int lh_decimal_read(const char **text, struct lh_decimal *decimal)
{
    const char *at = *text;
    struct lh_decimal read = {0};
    int rc = read_whole(&at, &read.whole);
    if (rc != 0)
        return rc;
    if (*at == '.') {
        at++;
        if (!is_digit(*at))
            return -LH_EINVAL;
        for (; is_digit(*at); at++) {
            if (read.fraction_digits < LH_DECIMAL_FRACTION_MAX) {
                read.fraction = read.fraction * 10 + (unsigned)(*at - '0');
                read.fraction_digits++;
            }
        }
    }
    *decimal = read;
    *text = at;
    return 0;
}

int lh_decimal_scale(const struct lh_decimal *decimal, uint64_t unit, uint64_t *value)
{
    assert(unit > 0 && decimal->fraction_digits <= LH_DECIMAL_FRACTION_MAX);
    uint128 divisor = 1;
    for (unsigned i = 0; i < decimal->fraction_digits; i++)
        divisor *= 10;
    assert(decimal->fraction < divisor);
    /* Neither product reaches 2^128: both factors are below 2^64. */
    uint128 scaled =
        (uint128)decimal->whole * unit + ((uint128)decimal->fraction * unit + divisor / 2) / divisor;
    bool vanished = scaled == 0 && (decimal->whole | decimal->fraction) != 0;
    if (scaled > UINT64_MAX || vanished)
        return -LH_ERANGE;
    *value = (uint64_t)scaled;
    return 0;
}

/* A number as digits * 10^exponent. */
struct scientific {
    uint64_t digits;
    unsigned count; /* digits kept, without leading zeros */
    long exponent;
};

static void add_digit(struct scientific *number, char c, bool after_point)
{
    bool kept = number->count < DIGITS_MAX;
    if (kept) {
        number->digits = number->digits * 10 + (unsigned)(c - '0');
        number->count += number->digits != 0;
    }
    if (kept && after_point)
        number->exponent--;
    else if (!kept && !after_point)
        number->exponent++;
}

/* Reads e-4; any larger exponent means the same as this one: nothing that a double holds. */
#define EXPONENT_MAX 100000

static int read_exponent(const char **text, long *exponent)
{
    const char *at = *text + 1;
    bool negative = *at == '-';
    if (*at == '-' || *at == '+')
        at++;
    if (!is_digit(*at))
        return -LH_EINVAL;
    long value = 0;
    for (; is_digit(*at); at++)
        value = value < EXPONENT_MAX ? value * 10 + (*at - '0') : EXPONENT_MAX;
    *exponent += negative ? -value : value;
    *text = at;
    return 0;
}

static int read_scientific(const char **text, struct scientific *number)
{
    const char *at = *text;
    if (!is_digit(*at))
        return -LH_EINVAL;
    for (; is_digit(*at); at++)
        add_digit(number, *at, false);
    if (*at == '.') {
        at++;
        if (!is_digit(*at))
            return -LH_EINVAL;
        for (; is_digit(*at); at++)
            add_digit(number, *at, true);
    }
    if (*at == 'e' || *at == 'E') {
        int rc = read_exponent(&at, &number->exponent);
        if (rc != 0)
            return rc;
    }
    *text = at;
    return 0;
}

/* In long double: up to 10^27 each step is exact, so that a ratio as people write it is rounded once. */
static double scientific_value(const struct scientific *number)
{
    long double value = (long double)number->digits;
    long double power = 1;
    long magnitude = number->exponent < 0 ? -number->exponent : number->exponent;
    for (long i = 0; i < magnitude && i < 400; i++)
        power *= 10;
    if (number->digits == 0)
        return 0;
    if (magnitude >= 400)
        return number->exponent < 0 ? 0 : HUGE_VAL;
    return (double)(number->exponent < 0 ? value / power : value * power);
}

static int read_double(const char **text, bool percent, double *value)
{
    struct scientific number = {0};
    const char *at = *text;
    int rc = read_scientific(&at, &number);
    if (rc != 0)
        return rc;
    if (percent && *at == '%') {
        number.exponent -= 2;
        at++;
    }
    double read = scientific_value(&number);
    if (isinf(read) || (read == 0 && number.digits != 0))
        return -LH_ERANGE;
    *value = read;
    *text = at;
    return 0;
}

int lh_decimal_read_double(const char **text, double *value)
{
    return read_double(text, false, value);
}

int lh_decimal_read_ratio(const char **text, double *value)
{
    return read_double(text, true, value);
}

/* printf's %e is right but for the locale's point: keeps its digits (without zeros at the end) and
 * exponent. */
static void digits_of(double value, int precision, char digits[LH_DECIMAL_DOUBLE_MAX], int *exponent)
{
    char text[64];
    snprintf(text, sizeof text, "%.*e", precision - 1, value);
    size_t count = 0;
    const char *at = text;
    for (; *at != 'e' && *at != '\0'; at++) {
        if (is_digit(*at) && count < LH_DECIMAL_DOUBLE_MAX - 1)
            digits[count++] = *at;
    }
    while (count > 1 && digits[count - 1] == '0')
        count--;
    digits[count] = '\0';
    bool negative = *at == 'e' && at[1] == '-';
    *exponent = 0;
    for (; *at != '\0'; at++) {
        if (is_digit(*at))
            *exponent = *exponent * 10 + (*at - '0');
    }
    *exponent = negative ? -*exponent : *exponent;
}

/* 0.0123, 12.3 or 1.23e-7, as people would write it. */
static void place_point(const char *digits, int exponent, char *out, size_t size)
{
    int count = (int)strlen(digits);
    if (exponent < 0 && exponent >= -3)
        snprintf(out, size, "0.%.*s%s", -exponent - 1, "00", digits);
    else if (exponent >= 0 && exponent < count - 1)
        snprintf(out, size, "%.*s.%s", exponent + 1, digits, digits + exponent + 1);
    else if (exponent >= 0 && exponent < 16)
        snprintf(out, size, "%s%.*s", digits, exponent + 1 - count, "0000000000000000");
    else
        snprintf(out, size, "%.1s%s%se%d", digits, count > 1 ? "." : "", digits + 1, exponent);
}

char *lh_decimal_format_double(double value, char *out, size_t size)
{
    assert(isfinite(value) && value >= 0);
    char text[2 * LH_DECIMAL_DOUBLE_MAX];
    for (int precision = 1; precision <= (int)DIGITS_MAX; precision++) {
        char digits[LH_DECIMAL_DOUBLE_MAX];
        int exponent;
        double back = -1;
        const char *at = text;
        digits_of(value, precision, digits, &exponent);
        place_point(digits, exponent, text, sizeof text);
        if (lh_decimal_read_double(&at, &back) == 0 && back == value)
            break;
    }
    snprintf(out, size, "%s", text);
    return out;
}
