/*
 * units_parse.c - sizes, rates, times and ratios from text.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/units.h>

#include <string.h>
#include <strings.h>

#include "base/decimal.h"
#include "base/error.h"

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
