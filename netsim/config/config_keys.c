/*
 * key_value.c - reads the values of configuration keys.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/config/key_value.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <longhaul/link.h>
#include <longhaul/units.h>

#include "base/decimal.h"
#include "base/error.h"
#include "congestion/congestion_table.h"
#include "netsim/base/config.h"
#include "netsim/workload/pairs.h"
#include "netsim/base/time.h"

/* What one reading is about. */
struct reading {
    const struct netsim_value_rule *rule;
    const char *key;
    const char *choices;
    const char *value;
};

/* How much of a wrong value is shown. */
#define SHOWN "\"%.64s\""

/* ", or the words" for keys that take any. */
static const char *or_words(const struct reading *reading, char *out, size_t size)
{
    out[0] = '\0';
    if (reading->rule->words != NULL)
        snprintf(out, size, ", or %s", reading->rule->words);
    return out;
}

static void show(enum netsim_value_kind kind, uint64_t value, char *out, size_t size)
{
    if (kind == NETSIM_VALUE_SIZE || kind == NETSIM_VALUE_SIZE32)
        lh_format_size(value, out, size);
    else if (kind == NETSIM_VALUE_RATE)
        lh_format_rate((double)value, out, size);
    else if (kind == NETSIM_VALUE_TIME && value != 0)
        lh_format_time((double)value / (double)NETSIM_PS_PER_S, out, size);
    else
        snprintf(out, size, "%" PRIu64, value);
}

static int out_of_range(const struct reading *reading)
{
    char from[LH_FORMAT_MAX];
    char to[LH_FORMAT_MAX];
    char words[40];
    const struct netsim_value_rule *rule = reading->rule;
    show(rule->kind, rule->min, from, sizeof from);
    show(rule->kind, rule->max, to, sizeof to);
    return lh_fail(LH_ERANGE, "%s " SHOWN ": out of range (%s to %s%s%s)", reading->key, reading->value,
                   from, to, or_words(reading, words, sizeof words),
                   rule->kind == NETSIM_VALUE_RATIO ? "; a half is 0.5 or 50%" : "");
}

/* Not even the form is right. */
static int malformed(const struct reading *reading, const char *what)
{
    char words[40];
    return lh_fail(LH_EINVAL, "%s " SHOWN ": invalid (%s%s)", reading->key, reading->value, what,
                   or_words(reading, words, sizeof words));
}

/* The reason that lh_last_error() gives names the value. */
static int refused_by_parser(const struct reading *reading, int rc)
{
    char words[40];
    if (rc == -LH_ERANGE)
        return out_of_range(reading);
    return lh_fail(LH_EINVAL, "%s: %s%s", reading->key, lh_last_error(),
                   or_words(reading, words, sizeof words));
}

/* Picoseconds of the unit; 0: there is no such unit. */
static uint64_t time_unit(const char *name)
{
    static const struct {
        const char *name;
        uint64_t ps;
    } units[] = {
        {"ps", 1},
        {"ns", NETSIM_PS_PER_NS},
        {"us", NETSIM_PS_PER_US},
        {"ms", NETSIM_PS_PER_MS},
        {"s", NETSIM_PS_PER_S},
        {"min", 60 * NETSIM_PS_PER_S},
        /* Light in fibre: 200,000 km a second. */
        {"km", 5 * NETSIM_PS_PER_US},
    };
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(units[i].name, name) == 0)
            return units[i].ps;
    return 0;
}

static int read_time(const struct reading *reading, uint64_t *ps)
{
    struct lh_decimal number = {0};
    const char *at = reading->value;
    int rc = lh_decimal_read(&at, &number);
    bool zero = rc == 0 && number.whole == 0 && number.fraction == 0;
    uint64_t unit = *at == '\0' && zero ? 1 : time_unit(at);
    if (rc == -LH_EINVAL || (rc == 0 && unit == 0))
        return malformed(reading, "a time such as 500ns, 1us or 25ms, or a distance such as 600km");
    if (rc != 0 || lh_decimal_scale(&number, unit, ps) != 0)
        return out_of_range(reading);
    return 0;
}

static int read_count(const struct reading *reading, uint64_t *count)
{
    struct lh_decimal number = {0};
    const char *at = reading->value;
    int rc = lh_decimal_read(&at, &number);
    if (rc == -LH_EINVAL || (rc == 0 && (*at != '\0' || number.fraction_digits != 0)))
        return malformed(reading, "a whole number");
    if (rc != 0)
        return out_of_range(reading);
    *count = number.whole;
    return 0;
}

/* A number of rule->min to rule->max; above 0 where a word stands for no number at all, and is kept as 0. */
static int read_number(const struct reading *reading, double *number)
{
    bool ratio = reading->rule->kind == NETSIM_VALUE_RATIO;
    const char *at = reading->value;
    double read = 0;
    int rc = ratio ? lh_decimal_read_ratio(&at, &read) : lh_decimal_read_double(&at, &read);
    if (rc == -LH_EINVAL || (rc == 0 && *at != '\0'))
        return malformed(reading, ratio ? "a share such as 0.3 or 30%" : "a number such as 2 or 0.5");
    if (rc == 0 && read <= 0 && reading->rule->words != NULL)
        return malformed(reading, "a number above 0");
    if (rc != 0 || read < (double)reading->rule->min || read > (double)reading->rule->max)
        return out_of_range(reading);
    *number = read;
    return 0;
}

/* Sizes, rates, times and counts. */
static int read_integer(const struct reading *reading, uint64_t *number)
{
    int rc = 0;
    if (reading->rule->kind == NETSIM_VALUE_TIME) {
        rc = read_time(reading, number);
    } else if (reading->rule->kind == NETSIM_VALUE_RATE) {
        if (lh_parse_rate(reading->value, number) != 0)
            return malformed(reading, "a rate such as 400Gbit");
    } else if (reading->rule->kind == NETSIM_VALUE_SIZE || reading->rule->kind == NETSIM_VALUE_SIZE32) {
        rc = lh_parse_size(reading->value, number);
        if (rc != 0)
            return refused_by_parser(reading, rc);
    } else {
        rc = read_count(reading, number);
    }
    if (rc == 0 && (*number < reading->rule->min || *number > reading->rule->max))
        rc = out_of_range(reading);
    return rc;
}

/* The place of the value in "a|b|c"; negative: it is not there. */
static int find_word(const char *words, const char *value)
{
    size_t length = strlen(value);
    for (int place = 0;; place++) {
        size_t word_length = strcspn(words, "|");
        if (word_length == length && memcmp(words, value, length) == 0)
            return place;
        if (words[word_length] == '\0')
            return -1;
        words += word_length + 1;
    }
}

static int read_choice(const struct reading *reading, uint64_t *number)
{
    int place = find_word(reading->choices, reading->value);
    if (place < 0)
        return lh_fail(LH_EINVAL, "%s " SHOWN ": unknown (one of %s)", reading->key, reading->value,
                       reading->choices);
    *number = (uint64_t)place;
    return 0;
}

static int read_faults(const struct reading *reading, struct lh_link_spec *spec)
{
    struct lh_link_spec read;
    int rc = lh_link_parse(reading->value, &read);
    if (rc != 0)
        return lh_fail((enum lh_error)(-rc), "%s " SHOWN ": %s", reading->key, reading->value,
                       lh_last_error());
    if (read.rate_bps != 0 || read.delay_ns != 0)
        return lh_fail(LH_EINVAL,
                       "%s " SHOWN ": rate and delay of cables have keys of their own, such as "
                       "topology.rate and topology.delay (leave them out here)",
                       reading->key, reading->value);
    if (read.burst_packets > 1 && read.loss <= 0)
        return lh_fail(LH_EINVAL,
                       "%s " SHOWN ": a burst of losses needs loss=, such as loss=1e-4,burst=8 (in a list "
                       "such values have | between them)",
                       reading->key, reading->value);
    if (read.queue_bytes != 0 || read.drop_tail)
        return lh_fail(LH_EINVAL,
                       "%s " SHOWN ": queues are in the switches, see switch.buffer and switch.queue "
                       "(leave queue= and drop= out here)",
                       reading->key, reading->value);
    *spec = read;
    return 0;
}

static int read_text(const struct reading *reading, char *field)
{
    size_t bytes = strlen(reading->value);
    if (bytes >= reading->rule->max)
        return lh_fail(LH_ERANGE, "%s: %zu characters (at most %" PRIu64 ")", reading->key, bytes,
                       reading->rule->max - 1);
    memcpy(field, reading->value, bytes + 1);
    return 0;
}

static int read_congestion(const struct reading *reading, struct netsim_congestion_config *field)
{
    struct congestion_choice choice;
    struct netsim_congestion_config read = {.kind = NETSIM_CONGESTION_NONE};
    if (strlen(reading->value) >= sizeof read.controller)
        return lh_fail(LH_ERANGE, "%s: %zu characters (at most %u)", reading->key, strlen(reading->value),
                       NETSIM_CONTROLLER_BYTES - 1);
    if (strcmp(reading->value, "dcqcn") == 0) {
        read.kind = NETSIM_CONGESTION_DCQCN;
    } else if (strcmp(reading->value, "none") != 0) {
        read.kind = NETSIM_CONGESTION_CONTROLLER;
        if (congestion_choice_parse(reading->value, &choice) != 0)
            return lh_fail(LH_EINVAL, "%s: %s, or none", reading->key, lh_last_error());
        memcpy(read.controller, reading->value, strlen(reading->value) + 1);
    }
    *field = read;
    return 0;
}

/* Puts the number into a field of the type that its kind has. */
static void store(enum netsim_value_kind kind, uint64_t number, void *field)
{
    switch (kind) {
    case NETSIM_VALUE_SIZE:
    case NETSIM_VALUE_RATE:
    case NETSIM_VALUE_TIME:
        *(uint64_t *)field = number;
        break;
    case NETSIM_VALUE_SIZE32:
    case NETSIM_VALUE_COUNT:
    case NETSIM_VALUE_CHOICE:
        assert(number <= UINT32_MAX);
        *(uint32_t *)field = (uint32_t)number;
        break;
    case NETSIM_VALUE_PRIORITY:
        assert(number <= UINT8_MAX);
        *(uint8_t *)field = (uint8_t)number;
        break;
    case NETSIM_VALUE_SWITCH:
        *(bool *)field = number == 1;
        break;
    case NETSIM_VALUE_RATIO:
    case NETSIM_VALUE_NUMBER:
        *(double *)field = (double)number;
        break;
    case NETSIM_VALUE_FAULTS:
    case NETSIM_VALUE_PAIRS:
    case NETSIM_VALUE_CONGESTION:
    case NETSIM_VALUE_TEXT:
    case NETSIM_VALUE_FILE:
        assert(false);
    }
}

int netsim_value_read(const struct netsim_value_rule *rule, const char *key, const char *choices,
                      const char *value, void *field)
{
    const struct reading reading = {rule, key, choices, value};
    uint64_t number = 0;
    int word = rule->words == NULL ? -1 : find_word(rule->words, value);
    if (word >= 0) {
        store(rule->kind, word == 0 ? rule->word_value : 0, field);
        return 0;
    }
    if (rule->kind == NETSIM_VALUE_FILE)
        return lh_fail(LH_EINVAL, "%s takes the text of a file, which lh_netsim_config_text() gives", key);
    if (rule->kind == NETSIM_VALUE_TEXT)
        return read_text(&reading, field);
    if (rule->kind == NETSIM_VALUE_FAULTS)
        return read_faults(&reading, field);
    if (rule->kind == NETSIM_VALUE_CONGESTION)
        return read_congestion(&reading, field);
    if (rule->kind == NETSIM_VALUE_PAIRS)
        return netsim_pairs_read(key, value, field);
    if (rule->kind == NETSIM_VALUE_RATIO || rule->kind == NETSIM_VALUE_NUMBER)
        return read_number(&reading, field);
    bool choice = rule->kind == NETSIM_VALUE_CHOICE || rule->kind == NETSIM_VALUE_SWITCH;
    int rc = choice ? read_choice(&reading, &number) : read_integer(&reading, &number);
    if (rc == 0)
        store(rule->kind, number, field);
    return rc;
}
