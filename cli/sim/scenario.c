/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/scenario.h"

#include <ini.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <longhaul/netsim.h>
#include <longhaul/units.h>

#include "cli/terminal/terminal.h"

/* ---- scenario -------------------------------------------------------------------------------------- */

#define BLANKS " \t"

/* Position of the parser in the text. */
struct text_cursor {
    struct cli_scenario *scenario;
    const char *at, *end;
    unsigned line; /* the one that was read last; from 1 */
    bool wrong;
};

__attribute__((format(printf, 2, 3))) static int refuse(struct text_cursor *cursor, const char *format, ...)
{
    struct cli_scenario *scenario = cursor->scenario;
    char words[CLI_SETTING_VALUE_MAX];
    va_list arguments;
    if (cursor->wrong) /* the first one counts */
        return -1;
    cursor->wrong = true;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    if (cursor->line)
        snprintf(scenario->wrong, sizeof scenario->wrong, "%.200s:%u: %s", scenario->path, cursor->line,
                 words);
    else
        snprintf(scenario->wrong, sizeof scenario->wrong, "%s", words);
    return -1;
}

/* What is wrong with the first byte that is no text, which is number *place from 1; NULL: all is text. */
static const char *find_bad_byte(const char *text, size_t bytes, size_t *place)
{
    for (size_t at = 0, length; at < bytes; at += length) {
        length = cli_utf8_bytes(text + at, bytes - at);
        *place = at + 1;
        if (!length)
            return "not UTF-8";
        if (text[at] != '\t' && !cli_text_is_clean(text + at, length))
            return "a control character";
    }
    return NULL;
}

/* One line for the parser, without its blanks at the front: it would take them for a continuation. */
static char *next_line(char *line, int room, void *context)
{
    struct text_cursor *cursor = context;
    if (cursor->at == cursor->end || cursor->wrong)
        return NULL;
    size_t left = (size_t)(cursor->end - cursor->at);
    const char *newline = memchr(cursor->at, '\n', left), *start = cursor->at;
    size_t length = newline ? (size_t)(newline - start) : left, place = 0;
    cursor->line++;
    cursor->at += newline ? length + 1 : length;
    if (length && start[length - 1] == '\r')
        length--;
    while (length && strchr(BLANKS, *start) && *start)
        start++, length--;
    memcpy(line, start, length < (size_t)room ? length : (size_t)room - 1);
    if (length + 2 > (size_t)room)
        refuse(cursor, "line longer than %d bytes", room - 2);
    const char *bad = find_bad_byte(start, length, &place);
    if (bad)
        refuse(cursor, "byte %zu of the line is %s (scenario files are text)", place, bad);
    if (cursor->wrong)
        return NULL;
    line[length] = '\n';
    line[length + 1] = 0;
    return line;
}

static struct cli_setting *find(struct cli_scenario *scenario, const char *key)
{
    for (unsigned i = 0; i < scenario->count; i++)
        if (!strcmp(scenario->settings[i].key, key))
            return &scenario->settings[i];
    return NULL;
}

const struct cli_setting *cli_scenario_find(const struct cli_scenario *scenario, const char *key)
{
    for (unsigned i = 0; i < scenario->count; i++)
        if (!strcmp(scenario->settings[i].key, key))
            return &scenario->settings[i];
    return NULL;
}

/* Without a comment at its end, and the blanks before that. */
static size_t value_length(const char *value)
{
    size_t length = strlen(value);
    for (size_t i = 1; i < length; i++)
        if (value[i] == '#' && strchr(BLANKS, value[i - 1]))
            length = i;
    while (length && strchr(BLANKS, value[length - 1]))
        length--;
    return length;
}

static int on_setting(void *context, const char *section, const char *name, const char *value)
{
    struct text_cursor *cursor = context;
    struct cli_scenario *scenario = cursor->scenario;
    char key[2 * CLI_SETTING_KEY_MAX];
    snprintf(key, sizeof key, "%.90s%s%.100s", section, *section ? "." : "", name);
    size_t length = value_length(value);
    const struct cli_setting *before = find(scenario, key);
    if (before)
        refuse(cursor, "%s: set twice (first in line %u)", key, before->line);
    else if (!*name || strlen(key) >= CLI_SETTING_KEY_MAX)
        refuse(cursor, "%.60s: invalid key (name = value)", name);
    else if (!length)
        refuse(cursor, "%s: missing value (%s = value)", key, name);
    else if (length >= CLI_SETTING_VALUE_MAX)
        refuse(cursor, "%s: value longer than %d bytes", key, CLI_SETTING_VALUE_MAX - 1);
    else if (scenario->count == CLI_SETTINGS_MAX)
        refuse(cursor, "more than %d settings", CLI_SETTINGS_MAX);
    if (cursor->wrong)
        return 1;
    struct cli_setting *setting = &scenario->settings[scenario->count++];
    memcpy(setting->key, key, strlen(key) + 1); /* it fits: longer ones were refused above */
    snprintf(setting->value, sizeof setting->value, "%.*s", (int)length, value);
    setting->line = cursor->line;
    return 1;
}

int cli_scenario_parse(struct cli_scenario *scenario, const char *path, const char *text, size_t bytes)
{
    struct text_cursor cursor = {.scenario = scenario, .at = text, .end = text + bytes};
    scenario->path = path;
    scenario->count = 0;
    int bad_line = ini_parse_stream(next_line, &cursor, on_setting, &cursor);
    if (cursor.wrong)
        return -1;
    if (bad_line) {
        cursor.line = bad_line > 0 ? (unsigned)bad_line : 0;
        return refuse(&cursor, "invalid line ([section] or name = value)");
    }
    return 0;
}

int cli_scenario_set(struct cli_scenario *scenario, const char *option, const char *key_value)
{
    struct text_cursor cursor = {.scenario = scenario};
    const char *equals = strchr(key_value, '=');
    size_t length = equals ? (size_t)(equals - key_value) : 0, place = 0;
    char key[CLI_SETTING_KEY_MAX] = "";
    const char *bad = find_bad_byte(key_value, strlen(key_value), &place);
    if (bad)
        return refuse(&cursor, "--%s: byte %zu is %s (values are text)", option, place, bad);
    if (length >= sizeof key || !length || !equals[1])
        return refuse(&cursor, "--%s %.200s: invalid setting (example: topology.rate=400Gbit)", option,
                      key_value);
    if (strlen(equals + 1) >= CLI_SETTING_VALUE_MAX)
        return refuse(&cursor, "--%s %.*s: value longer than %d bytes", option, (int)length, key_value,
                      CLI_SETTING_VALUE_MAX - 1);
    memcpy(key, key_value, length);
    struct cli_setting *setting = find(scenario, key);
    if (!setting && scenario->count == CLI_SETTINGS_MAX)
        return refuse(&cursor, "--%s: more than %d settings", option, CLI_SETTINGS_MAX);
    if (!setting)
        setting = &scenario->settings[scenario->count++];
    snprintf(setting->key, sizeof setting->key, "%s", key);
    snprintf(setting->value, sizeof setting->value, "%s", equals + 1);
    setting->line = 0;
    return 0;
}

/* Whether a sentence ends there: not in "1.5". */
static bool ends_sentence(const char *text, size_t bytes, size_t at)
{
    return (text[at] == '.' || text[at] == '?') && (at + 1 == bytes || strchr(" \t\r\n", text[at + 1]));
}

/* A line goes on in the next one if that is a comment, too, and not an empty one. */
static size_t next_comment(const char *text, size_t bytes, size_t at)
{
    if (++at >= bytes || !text[at] || !strchr("#;", text[at]))
        return bytes;
    while (at < bytes && text[at] && strchr("#; \t", text[at]))
        at++;
    return at < bytes && text[at] == '\n' ? bytes : at;
}

void cli_scenario_about(const char *text, size_t bytes, char *out, size_t size)
{
    size_t used = 0, at = 0;
    bool over = !bytes || !strchr("#;", text[0]);
    while (at < bytes && text[at] && strchr("#; \t", text[at]))
        at++;
    while (!over && at < bytes && used + 1 < size) {
        bool line_ends = text[at] == '\n';
        if (text[at] != '\r')
            out[used++] = line_ends ? ' ' : text[at];
        over = ends_sentence(text, bytes, at);
        at = line_ends ? next_comment(text, bytes, at) : at + 1;
    }
    while (used && out[used - 1] == ' ')
        used--;
    out[used] = 0;
    cli_text_clean(out, used);
}

/* ---- figure ---------------------------------------------------------------------------------------- */

const struct cli_figure_info cli_figure_infos[CLI_FIGURES] = {
    [CLI_FIGURE_FLOWS] = {"flows", "flows", "flows", CLI_UNIT_NONE},
    [CLI_FIGURE_DONE] = {"done", "done", "flows done", CLI_UNIT_NONE},
    [CLI_FIGURE_FAILED] = {"failed", "failed", "flows failed", CLI_UNIT_NONE},
    [CLI_FIGURE_STUCK] = {"stuck", "stuck", "flows stuck", CLI_UNIT_NONE},
    [CLI_FIGURE_FCT_MEAN] = {"fct_mean", "fct_mean_s", "completion time, mean", CLI_UNIT_SECONDS},
    [CLI_FIGURE_FCT_P50] = {"fct_p50", "fct_p50_s", "completion time, median", CLI_UNIT_SECONDS},
    [CLI_FIGURE_FCT_P99] = {"fct_p99", "fct_p99_s", "completion time, 99th percentile", CLI_UNIT_SECONDS},
    [CLI_FIGURE_FCT_MAX] = {"fct_max", "fct_max_s", "completion time, longest", CLI_UNIT_SECONDS},
    [CLI_FIGURE_RECEIVED_MEAN] = {"received_mean", "received_mean_s", "time to the last byte, mean",
                                  CLI_UNIT_SECONDS},
    [CLI_FIGURE_RECEIVED_P99] = {"received_p99", "received_p99_s", "time to the last byte, 99th percentile",
                                 CLI_UNIT_SECONDS},
    [CLI_FIGURE_ACROSS_MEAN] = {"across_mean", "across_mean_s", "completion between sites, mean",
                                CLI_UNIT_SECONDS},
    [CLI_FIGURE_ACROSS_P99] = {"across_p99", "across_p99_s", "completion between sites, 99th p.",
                               CLI_UNIT_SECONDS},
    [CLI_FIGURE_ACROSS_RECEIVED_MEAN] = {"across_received_mean", "across_received_mean_s",
                                         "last byte between sites, mean", CLI_UNIT_SECONDS},
    [CLI_FIGURE_ACROSS_RECEIVED_P99] = {"across_received_p99", "across_received_p99_s",
                                        "last byte between sites, 99th p.", CLI_UNIT_SECONDS},
    [CLI_FIGURE_OPERATION_MEAN] = {"operation_mean", "operation_mean_s", "operation, mean",
                                   CLI_UNIT_SECONDS},
    [CLI_FIGURE_OPERATION_P50] = {"operation_p50", "operation_p50_s", "operation, median",
                                  CLI_UNIT_SECONDS},
    [CLI_FIGURE_OPERATION_P99] = {"operation_p99", "operation_p99_s", "operation, 99th percentile",
                                  CLI_UNIT_SECONDS},
    [CLI_FIGURE_OPERATION_MAX] = {"operation_max", "operation_max_s", "operation, longest",
                                  CLI_UNIT_SECONDS},
    [CLI_FIGURE_SLOWDOWN_MEAN] = {"slowdown_mean", "slowdown_mean", "slowdown, mean", CLI_UNIT_RATIO},
    [CLI_FIGURE_SLOWDOWN_P50] = {"slowdown_p50", "slowdown_p50", "slowdown, median", CLI_UNIT_RATIO},
    [CLI_FIGURE_SLOWDOWN_P99] = {"slowdown_p99", "slowdown_p99", "slowdown, 99th percentile",
                                 CLI_UNIT_RATIO},
    [CLI_FIGURE_SLOWDOWN_MAX] = {"slowdown_max", "slowdown_max", "slowdown, largest", CLI_UNIT_RATIO},
    [CLI_FIGURE_MAKESPAN] = {"makespan", "makespan_s", "makespan", CLI_UNIT_SECONDS},
    [CLI_FIGURE_GOODPUT] = {"goodput", "goodput_bps", "goodput", CLI_UNIT_BPS},
    [CLI_FIGURE_DELIVERED] = {"delivered", "delivered_share", "payload delivered, share", CLI_UNIT_SHARE},
    [CLI_FIGURE_DROPPED] = {"dropped", "dropped_packets", "packets dropped by switches", CLI_UNIT_NONE},
    [CLI_FIGURE_LOST] = {"lost", "lost_packets", "packets lost or corrupted on links", CLI_UNIT_NONE},
    [CLI_FIGURE_MARKED] = {"marked", "marked_packets", "packets marked", CLI_UNIT_NONE},
    [CLI_FIGURE_PAUSES] = {"pauses", "pauses", "pause frames", CLI_UNIT_NONE},
    [CLI_FIGURE_PAUSED] = {"paused", "paused_s", "time that links were paused", CLI_UNIT_SECONDS},
    [CLI_FIGURE_SIGNALS_LOST] = {"signals_lost", "signals_lost", "pauses, resumes and credits lost",
                                 CLI_UNIT_NONE},
    [CLI_FIGURE_REPEATED] = {"repeated", "repeated_packets", "packets retransmitted", CLI_UNIT_NONE},
    [CLI_FIGURE_TIMEOUTS] = {"timeouts", "timeouts", "timeouts", CLI_UNIT_NONE},
    [CLI_FIGURE_QUEUE_MAX] = {"queue_max", "queue_max_bytes", "longest queue of a switch", CLI_UNIT_BYTES},
    [CLI_FIGURE_JAIN] = {"jain", "jain", "Jain's index of fairness", CLI_UNIT_RATIO},
    [CLI_FIGURE_SHARE] = {"share", "share", "payload, share of the rate", CLI_UNIT_RATIO},
    [CLI_FIGURE_QUEUE_MEAN] = {"queue_mean", "queue_mean_bytes", "queue, mean", CLI_UNIT_BYTES},
    [CLI_FIGURE_QUEUE_P99] = {"queue_p99", "queue_p99_bytes", "queue, 99th percentile", CLI_UNIT_BYTES},
    [CLI_FIGURE_VIRTUAL] = {"virtual", "virtual_s", "virtual time", CLI_UNIT_SECONDS},
    [CLI_FIGURE_HOPS] = {"hops", "hops", "packets over links", CLI_UNIT_NONE},
    [CLI_FIGURE_HOPS_RATE] = {"hops_rate", "hops_per_s", "packets over links, per second", CLI_UNIT_PER_S},
    [CLI_FIGURE_WALL] = {"wall", "wall_s", "run time", CLI_UNIT_SECONDS},
    [CLI_FIGURE_MEMORY] = {"memory", "memory_bytes", "memory", CLI_UNIT_BYTES},
};

unsigned cli_figure_find(const char *name)
{
    unsigned figure = 0;
    while (figure < CLI_FIGURES && strcmp(cli_figure_infos[figure].name, name) != 0 &&
           strcmp(cli_figure_infos[figure].json, name) != 0)
        figure++;
    return figure;
}

void cli_figure_format(unsigned figure, double value, char *out, size_t size)
{
    static const char *const scales[] = {"", "k", "M", "G"};
    unsigned scale = 0;
    if (!isfinite(value)) {
        snprintf(out, size, "-");
        return;
    }
    switch (cli_figure_infos[figure].unit) {
    case CLI_UNIT_SECONDS:
        lh_format_time(value, out, size);
        break;
    case CLI_UNIT_BPS:
        lh_format_rate(value, out, size);
        break;
    case CLI_UNIT_BYTES:
        lh_format_size((uint64_t)value, out, size);
        break;
    case CLI_UNIT_RATIO:
        snprintf(out, size, value < 100 ? "%.2f" : "%.0f", value);
        break;
    case CLI_UNIT_SHARE:
        snprintf(out, size, "%.2f%%", 100 * value);
        break;
    case CLI_UNIT_PER_S:
        for (; value >= 1000 && scale < 3; scale++)
            value /= 1000;
        snprintf(out, size, "%.3g %s/s", value, scales[scale]);
        break;
    case CLI_UNIT_NONE:
        /* Counts are whole; means of counts may not be. */
        snprintf(out, size, value == floor(value) || value >= 100 ? "%.0f" : "%.1f", value);
        break;
    }
}

/* ---- link list ------------------------------------------------------------------------------------- */

/* * matches any characters; no other character is special. Goes back at most once a letter of the text for
 * each star. */
static bool matches(const char *pattern, size_t length, const char *text)
{
    const char *end = pattern + length, *star = NULL, *again = NULL;
    while (*text) {
        if (pattern < end && *pattern == '*') {
            star = ++pattern;
            again = text;
        } else if (pattern < end && *pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star;
            text = ++again;
        } else {
            return false;
        }
    }
    while (pattern < end && *pattern == '*')
        pattern++;
    return pattern == end;
}

bool cli_link_matches(const char *patterns, const char *from, const char *to)
{
    while (*patterns) {
        patterns += strspn(patterns, " ,");
        size_t length = strcspn(patterns, ",");
        size_t next = length;
        while (length && patterns[length - 1] == ' ')
            length--;
        const char *arrow = memchr(patterns, '>', length);
        if (arrow && matches(patterns, (size_t)(arrow - patterns), from) &&
            matches(arrow + 1, length - (size_t)(arrow + 1 - patterns), to))
            return true;
        patterns += next;
    }
    return false;
}

void cli_link_list_find(struct cli_link_list *list, const struct lh_netsim *simulation,
                        const char *patterns)
{
    struct lh_netsim_link link;
    uint32_t links = *patterns ? lh_netsim_links_count(simulation) : 0;
    list->count = 0;
    list->more = false;
    for (uint32_t i = 0; i < links && !list->more; i++) {
        if (lh_netsim_link(simulation, i, &link) || !cli_link_matches(patterns, link.from, link.to))
            continue;
        list->more = list->count == CLI_LINK_LIST_MAX;
        if (!list->more)
            list->numbers[list->count++] = i;
    }
}
