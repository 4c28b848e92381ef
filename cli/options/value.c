/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/options/value.h"

#include "cli/terminal/diagnostic.h"

#include <longhaul/connection.h>
#include <longhaul/error.h>
#include <longhaul/link.h>
#include <longhaul/units.h>

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longer than any size that makes sense. */
#define SIZE_TEXT_MAX 64

/* The library's message starts with the value. */
static int not_parsed(const struct cli_option *option, int code)
{
    const char *reason = lh_last_error();
    return cli_misused("--%s %s", option->name, *reason ? reason : lh_strerror(code));
}

static void show(const struct cli_option *option, uint64_t value, char *out, size_t size)
{
    if (option->kind == CLI_COUNT)
        snprintf(out, size, "%" PRIu64, value);
    else if (option->kind == CLI_TIME)
        lh_format_time((double)value / (double)LH_NS_PER_S, out, size);
    else if (option->kind == CLI_RATE)
        lh_format_rate((double)value, out, size);
    else
        lh_format_size(value, out, size);
}

static int check_range(const struct cli_option *option, uint64_t value, const char *text)
{
    char from[LH_FORMAT_MAX], to[LH_FORMAT_MAX];
    const char *which = option->power_of_two ? "power of two, " : "";
    bool power_of_two = value && !(value & (value - 1));
    if (value >= option->min && (!option->max || value <= option->max) &&
        (!option->power_of_two || power_of_two))
        return CLI_PROCEED;
    show(option, option->min, from, sizeof from);
    show(option, option->max, to, sizeof to);
    if (!option->max)
        return cli_misused("--%s %s: out of range (%sat least %s)", option->name, text, which, from);
    return cli_misused("--%s %s: out of range (%s%s to %s)", option->name, text, which, from, to);
}

static int take_count(const struct cli_option *option, const char *text)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end)
        return cli_misused("--%s %s: invalid number (example: %" PRIu64 ")", option->name, text,
                           option->min);
    if (errno || value > UINT32_MAX)
        value = UINT64_MAX;
    int status = check_range(option, value, text);
    if (status == CLI_PROCEED)
        *(uint32_t *)option->target = (uint32_t)value;
    return status;
}

/* "128M" to "128MiB"; the rest as it is. */
static const char *add_unit(const char *text, char out[SIZE_TEXT_MAX])
{
    size_t length = strlen(text);
    if (length < 2 || length + sizeof "iB" > SIZE_TEXT_MAX || !isdigit((unsigned char)text[length - 2]) ||
        !strchr("kKmMgGtT", text[length - 1]))
        return text;
    snprintf(out, SIZE_TEXT_MAX, "%.*s%ciB", (int)length - 1, text,
             toupper((unsigned char)text[length - 1]));
    return out;
}

static int take_size(const struct cli_option *option, const char *text)
{
    uint64_t bytes;
    char with_unit[SIZE_TEXT_MAX];
    int code = lh_parse_size(option->kind == CLI_BINARY ? add_unit(text, with_unit) : text, &bytes);
    if (code)
        return not_parsed(option, code);
    int status = check_range(option, bytes, text);
    if (status != CLI_PROCEED)
        return status;
    if (option->kind == CLI_SIZE32)
        *(uint32_t *)option->target = (uint32_t)bytes;
    else
        *(uint64_t *)option->target = bytes;
    return CLI_PROCEED;
}

static int take_rate_or_time(const struct cli_option *option, const char *text)
{
    uint64_t value;
    int code = option->kind == CLI_RATE ? lh_parse_rate(text, &value) : lh_parse_time(text, &value);
    if (code)
        return not_parsed(option, code);
    int status = check_range(option, value, text);
    if (status == CLI_PROCEED)
        *(uint64_t *)option->target = value;
    return status;
}

static int take_link(const struct cli_option *option, const char *text)
{
    struct lh_link_spec spec;
    int code = lh_link_parse(text, &spec);
    if (code)
        return not_parsed(option, code);
    *(struct lh_link_spec *)option->target = spec;
    return CLI_PROCEED;
}

int cli_check_scheme(const char *option, const char *text)
{
    if (lh_reliability_check(text))
        return cli_misused("--%s: %s", option, lh_last_error());
    return CLI_PROCEED;
}

static int check_congestion(const char *option, const char *text)
{
    if (lh_congestion_check(text))
        return cli_misused("--%s: %s", option, lh_last_error());
    return CLI_PROCEED;
}

static int take_one_more(const struct cli_option *option, const char *text)
{
    struct cli_texts *texts = option->target;
    if (texts->count == CLI_TEXTS_MAX)
        return cli_misused("--%s: given more than %d times", option->name, CLI_TEXTS_MAX);
    texts->text[texts->count++] = text;
    return CLI_PROCEED;
}

int cli_option_value(const struct cli_option *option, const char *text)
{
    switch (option->kind) {
    case CLI_COUNT:
        return take_count(option, text);
    case CLI_SIZE:
    case CLI_SIZE32:
    case CLI_BINARY:
        return take_size(option, text);
    case CLI_RATE:
    case CLI_TIME:
        return take_rate_or_time(option, text);
    case CLI_LINK:
        return take_link(option, text);
    case CLI_SCHEME:
        if (cli_check_scheme(option->name, text) != CLI_PROCEED)
            return CLI_EXIT_USAGE;
        *(const char **)option->target = text;
        return CLI_PROCEED;
    case CLI_CONGESTION:
        if (check_congestion(option->name, text) != CLI_PROCEED)
            return CLI_EXIT_USAGE;
        *(const char **)option->target = text;
        return CLI_PROCEED;
    case CLI_TEXT:
        *(const char **)option->target = text;
        return CLI_PROCEED;
    case CLI_TEXTS:
        return take_one_more(option, text);
    case CLI_FLAG:
        break;
    }
    return CLI_EXIT_USAGE;
}
