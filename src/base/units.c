/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/units.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <longhaul/error.h>
#include <longhaul/units.h>

#include "base/error.h"

/* ---- decimal --------------------------------------------------------------------------------------- */

/* Decimal numbers in text, by integer arithmetic. */

#define LH_DECIMAL_FRACTION_MAX 18u

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

/* ---- units parse ----------------------------------------------------------------------------------- */

/* Sizes, rates, times and ratios from text. */

struct unit {
    const char *name;
    uint64_t scale;
};

/* What people write, in capitals or not, and two units that it may stand for. */
struct ambiguity {
    const char *unit;
    const char *one, *other;
};

/* What can be parsed: its units, and the texts of its errors. */
struct quantity {
    const char *invalid;
    const char *example;
    const struct unit *units;          /* ends with a NULL name */
    const struct ambiguity *ambiguous; /* ends with a NULL unit */
    bool bare;                         /* a number without a unit is valid */
};

/* Characters of a number that an error repeats. */
#define NUMBER_MAX 24

#define KILO ((uint64_t)1000)
#define MEGA (1000 * KILO)
#define GIGA (1000 * MEGA)
#define TERA (1000 * GIGA)

static const struct unit size_units[] = {
    {"B", 1},
    {"kB", KILO},
    {"MB", MEGA},
    {"GB", GIGA},
    {"TB", TERA},
    {"KiB", (uint64_t)1 << 10},
    {"MiB", (uint64_t)1 << 20},
    {"GiB", (uint64_t)1 << 30},
    {"TiB", (uint64_t)1 << 40},
    {NULL, 0},
};

/* KB and K are 1000 bytes to some and 1024 to others. */
static const struct ambiguity ambiguous_sizes[] = {
    {"k", "kB", "KiB"},  {"kb", "kB", "KiB"}, {"m", "MB", "MiB"},  {"mb", "MB", "MiB"}, {"g", "GB", "GiB"},
    {"gb", "GB", "GiB"}, {"t", "TB", "TiB"},  {"tb", "TB", "TiB"}, {NULL, NULL, NULL},
};

static const struct unit rate_units[] = {
    {"k", KILO},      {"M", MEGA},      {"G", GIGA},      {"T", TERA},      {"bit", 1},
    {"bit/s", 1},     {"bitps", 1},     {"bps", 1},       {"kbit", KILO},   {"kbit/s", KILO},
    {"kbitps", KILO}, {"kbps", KILO},   {"Mbit", MEGA},   {"Mbit/s", MEGA}, {"Mbitps", MEGA},
    {"Mbps", MEGA},   {"Gbit", GIGA},   {"Gbit/s", GIGA}, {"Gbitps", GIGA}, {"Gbps", GIGA},
    {"Tbit", TERA},   {"Tbit/s", TERA}, {"Tbitps", TERA}, {"Tbps", TERA},   {NULL, 0},
};

static const struct unit time_units[] = {
    {"ns", 1},          {"us", LH_NS_PER_US},      {"ms", LH_NS_PER_MS},
    {"s", LH_NS_PER_S}, {"min", 60 * LH_NS_PER_S}, {"h", 3600 * LH_NS_PER_S},
    {NULL, 0},
};

static const struct ambiguity ambiguous_times[] = {{"m", "ms", "min"}, {NULL, NULL, NULL}};
static const struct ambiguity none_ambiguous[] = {{NULL, NULL, NULL}};

static const struct quantity size_quantity = {"invalid size", "128MiB", size_units, ambiguous_sizes, true};
static const struct quantity rate_quantity = {"invalid rate", "10Gbit", rate_units, none_ambiguous, false};
static const struct quantity time_quantity = {"invalid time", "25ms", time_units, ambiguous_times, false};

static int refuse(enum lh_error code, const char *text, const char *why, const char *example)
{
    return lh_fail(code, "%.64s: %s (example: %s)", *text != '\0' ? text : "\"\"", why, example);
}

/* 0 when there is none of that name. */
static uint64_t find_unit(const struct unit *units, const char *name)
{
    for (; units->name != NULL; units++) {
        if (strcmp(units->name, name) == 0)
            return units->scale;
    }
    return 0;
}

/* The unit is none of the quantity's, or one of two. */
static int refuse_unit(const struct quantity *quantity, const char *text, const char *unit)
{
    const struct ambiguity *at = quantity->ambiguous;
    int digits = unit - text < NUMBER_MAX ? (int)(unit - text) : NUMBER_MAX;
    while (at->unit != NULL && strcasecmp(at->unit, unit) != 0)
        at++;
    if (at->unit == NULL)
        return refuse(LH_EINVAL, text, quantity->invalid, quantity->example);
    return lh_fail(LH_EINVAL, "%.64s: ambiguous unit (%.*s%s or %.*s%s)", text, digits, text, at->one,
                   digits, text, at->other);
}

static int parse(const struct quantity *quantity, const char *text, uint64_t *value)
{
    struct lh_decimal number;
    const char *at = text;
    int rc = lh_decimal_read(&at, &number);
    if (rc == -LH_ERANGE)
        return refuse(LH_ERANGE, text, "out of range", quantity->example);
    if (rc != 0)
        return refuse(LH_EINVAL, text, quantity->invalid, quantity->example);
    bool has_unit = *at != '\0';
    uint64_t scale = has_unit ? find_unit(quantity->units, at) : 1;
    if (scale == 0)
        return refuse_unit(quantity, text, at);
    if (!has_unit && !quantity->bare && (number.whole | number.fraction) != 0)
        return refuse(LH_EINVAL, text, "missing unit", quantity->example);
    if (lh_decimal_scale(&number, scale, value) != 0)
        return refuse(LH_ERANGE, text, "out of range", quantity->example);
    return 0;
}

int lh_parse_size(const char *text, uint64_t *bytes)
{
    return parse(&size_quantity, text, bytes);
}

int lh_parse_rate(const char *text, uint64_t *bps)
{
    return parse(&rate_quantity, text, bps);
}

int lh_parse_time(const char *text, lh_time *ns)
{
    return parse(&time_quantity, text, ns);
}

int lh_parse_ratio(const char *text, double *ratio)
{
    static const char example[] = "1e-4, 0.0001 or 0.01%";
    const char *at = text;
    double value = 0;
    int rc = lh_decimal_read_ratio(&at, &value);
    if (rc == -LH_ERANGE)
        return lh_fail(LH_ERANGE, "%.64s: out of range (0 to 1)", text);
    if (rc != 0 || *at != '\0')
        return refuse(LH_EINVAL, text, "invalid ratio", example);
    if (value > 1)
        return lh_fail(LH_ERANGE, "%.64s: out of range (0 to 1)", text);
    *ratio = value;
    return 0;
}

/* ---- units format ---------------------------------------------------------------------------------- */

/* Sizes, rates and times as short text. */

/* Ascending; a scale of the next unit over this one's is where the next takes over. */
struct format_unit {
    const char *name;
    double scale;
};

static const struct format_unit shown_size_units[] = {
    {"B", 1}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
};

static const struct format_unit shown_rate_units[] = {
    {"bit/s", 1}, {"kbit/s", 1e3}, {"Mbit/s", 1e6}, {"Gbit/s", 1e9}, {"Tbit/s", 1e12},
};

/* Minutes only from ten on: 90s reads better than 1.5min. */
static const struct format_unit shown_time_units[] = {
    {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60},
};

#define UNITS                5
#define MINUTES_FROM_SECONDS 600.0

/* Rounds to three significant digits, but never an integer part of more than three. */
static double round_to_three(double value)
{
    double step = value >= 100 ? 1 : value >= 10 ? 0.1 : 0.01;
    return round(value / step) * step;
}

/* 1.25, 12.5 or 125, without zeros at the end. Not by %f, which would take the locale's decimal point. */
static void put_number(double value, const char *unit, char *out, size_t size)
{
    unsigned decimals = value >= 100 ? 0 : value >= 10 ? 1 : 2;
    unsigned long long divisor = decimals == 2 ? 100 : decimals == 1 ? 10 : 1;
    unsigned long long scaled = (unsigned long long)llround(value * (double)divisor);
    while (decimals > 0 && scaled % 10 == 0) {
        scaled /= 10;
        divisor /= 10;
        decimals--;
    }
    if (decimals == 0)
        snprintf(out, size, "%llu%s", scaled, unit);
    else
        snprintf(out, size, "%llu.%0*llu%s", scaled / divisor, (int)decimals, scaled % divisor, unit);
}

/* Takes the largest unit of which the value, once rounded, makes a whole one. */
static char *format(double value, const struct format_unit units[UNITS], double last_from, char *out,
                    size_t size)
{
    size_t chosen = 0;
    for (size_t i = 1; i < UNITS; i++) {
        double from = i == UNITS - 1 ? last_from : units[i].scale;
        double below = round_to_three(value / units[i - 1].scale) * units[i - 1].scale;
        if (below >= from * (1 - 1e-9))
            chosen = i;
    }
    /* The range of llround; also takes infinity and what is not a number. */
    if (!(value / units[chosen].scale < 9e15))
        snprintf(out, size, "inf%s", units[UNITS - 1].name);
    else
        put_number(value > 0 ? value / units[chosen].scale : 0, units[chosen].name, out, size);
    return out;
}

char *lh_format_size(uint64_t bytes, char *out, size_t size)
{
    return format((double)bytes, shown_size_units, shown_size_units[UNITS - 1].scale, out, size);
}

char *lh_format_rate(double bps, char *out, size_t size)
{
    return format(bps, shown_rate_units, shown_rate_units[UNITS - 1].scale, out, size);
}

char *lh_format_time(double seconds, char *out, size_t size)
{
    return format(seconds, shown_time_units, MINUTES_FROM_SECONDS, out, size);
}
