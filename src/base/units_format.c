/*
 * units_format.c - sizes, rates and times as short text.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/units.h>

#include <assert.h>
#include <math.h>
#include <stdio.h>

/* Ascending; a scale of the next unit over this one's is where the next takes over. */
struct format_unit {
    const char *name;
    double scale;
};

static const struct format_unit size_units[] = {
    {"B", 1}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
};

static const struct format_unit rate_units[] = {
    {"bit/s", 1}, {"kbit/s", 1e3}, {"Mbit/s", 1e6}, {"Gbit/s", 1e9}, {"Tbit/s", 1e12},
};

/* Minutes only from ten on: 90s reads better than 1.5min. */
static const struct format_unit time_units[] = {
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
    return format((double)bytes, size_units, size_units[UNITS - 1].scale, out, size);
}

char *lh_format_rate(double bps, char *out, size_t size)
{
    return format(bps, rate_units, rate_units[UNITS - 1].scale, out, size);
}

char *lh_format_time(double seconds, char *out, size_t size)
{
    return format(seconds, time_units, MINUTES_FROM_SECONDS, out, size);
}
