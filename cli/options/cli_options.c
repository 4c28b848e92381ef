/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/options/cli_options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/connection.h>
#include <longhaul/error.h>
#include <longhaul/link.h>
#include <longhaul/units.h>

#include "cli/terminal/terminal.h"

/* ---- help ------------------------------------------------------------------------------------------ */

/* The --help of a command, from its table of options. */

/* Where the explanations start, and where lines end. */
#define HELP_COLUMN 28
#define HELP_WIDTH  96

/* Prints text from the current column on, broken between words, each further line indented to HELP_COLUMN.
 */
static void print_wrapped(const char *text)
{
    size_t column = HELP_COLUMN;
    while (*text) {
        size_t word = strcspn(text, " ");
        if (column > HELP_COLUMN && column + 1 + word > HELP_WIDTH) {
            printf("\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        }
        column += (size_t)printf("%s%.*s", column > HELP_COLUMN ? " " : "", (int)word, text);
        text += word + strspn(text + word, " ");
    }
    putchar('\n');
}

static void print_option(const char *name, char letter, const char *value, const char *help)
{
    char left[64];
    char short_form[8] = "    ";
    if (letter)
        snprintf(short_form, sizeof short_form, "-%c, ", letter);
    int length =
        snprintf(left, sizeof left, "  %s--%s%s%s", short_form, name, value ? " " : "", value ? value : "");
    printf("%-*s", HELP_COLUMN, left);
    if (length >= HELP_COLUMN)
        printf("\n%*s", HELP_COLUMN, "");
    print_wrapped(help);
}

/* Prints it on stdout; returns CLI_EXIT_OK. */
static int cli_option_help(const struct cli_usage *usage)
{
    printf("usage: longhaul %s %s\n\n%s\n\noptions:\n", usage->command, usage->operands, usage->about);
    for (unsigned group = 0; group < CLI_OPTION_GROUPS_MAX && usage->groups[group]; group++)
        for (const struct cli_option *option = usage->groups[group]; option->name; option++)
            print_option(option->name, option->letter, option->value, option->help);
    print_option("help", 'h', NULL, "show this help");
    if (usage->more)
        printf("\n%s\n", usage->more);
    return CLI_EXIT_OK;
}

/* ---- value ----------------------------------------------------------------------------------------- */

/*
 * From the text of an option's value to its target, with the checks its table line asks
 * for.
 */

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
    char which[40] = "";
    bool fits = !option->multiple || value % option->multiple == 0;
    if (option->multiple == CLI_POWER_OF_TWO)
        fits = value && !(value & (value - 1));
    if (value >= option->min && (!option->max || value <= option->max) && fits)
        return CLI_PROCEED;
    if (option->multiple == CLI_POWER_OF_TWO)
        snprintf(which, sizeof which, "power of two, ");
    else if (option->multiple)
        snprintf(which, sizeof which, "multiple of %" PRIu32 ", ", option->multiple);
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

/* Whether the text is a scheme of this build with parameters that it takes: CLI_PROCEED or CLI_EXIT_USAGE.
 */
static int cli_check_scheme(const char *option, const char *text)
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

/* Sets *option->target, only when the text is right. CLI_PROCEED, or CLI_EXIT_USAGE after reporting the
 * cause. */
static int cli_option_value(const struct cli_option *option, const char *text)
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

/* ---- suggest --------------------------------------------------------------------------------------- */

/* Words are compared up to this length. */
#define CLI_SUGGEST_MAX 32

static unsigned minimum(unsigned a, unsigned b, unsigned c)
{
    unsigned smaller = a < b ? a : b;
    return smaller < c ? smaller : c;
}

unsigned cli_distance(const char *one, const char *other)
{
    size_t rows = strnlen(one, CLI_SUGGEST_MAX), columns = strnlen(other, CLI_SUGGEST_MAX);
    unsigned line[CLI_SUGGEST_MAX + 1];
    for (size_t column = 0; column <= columns; column++)
        line[column] = (unsigned)column;
    for (size_t row = 1; row <= rows; row++) {
        unsigned diagonal = line[0];
        line[0] = (unsigned)row;
        for (size_t column = 1; column <= columns; column++) {
            unsigned replaced = diagonal + (one[row - 1] != other[column - 1]);
            diagonal = line[column];
            line[column] = minimum(replaced, diagonal + 1, line[column - 1] + 1);
        }
    }
    return line[columns];
}

int cli_is_close(const char *typed, const char *word)
{
    size_t shorter = strlen(typed) < strlen(word) ? strlen(typed) : strlen(word);
    return shorter > 1 &&
           (cli_distance(typed, word) <= 1 + shorter / 5 || !strncmp(typed, word, strlen(typed)));
}

/* ---- peer option ----------------------------------------------------------------------------------- */

/* Options that only the command of the peer has. */

struct cli_peer_option {
    const char *command; /* where it is typed, and unknown */
    const char *option;  /* without the dashes */
    const char *other;   /* the command that has it */
    const char *why;     /* "the receiver chooses the scheme" */
};

/* tests/e2e/cli_options.sh compares it with each --help. */
static const struct cli_peer_option table[] = {
    {"send", "reliability", "recv", "the receiver chooses the scheme"},
    {"send", "output", "recv", "the receiver chooses the folder"},
    {"send", "o", "recv", "the receiver chooses the folder"},
    {"send", "force", "recv", "the receiver chooses whether to replace files"},
    {"send", "allow-delete", "recv", "the receiver permits deletion"},
    {"send", "dotfiles", "recv", "the receiver chooses the names to accept"},
    {"send", "keep", "recv", "the receiver chooses the number of files"},
    {"send", "jobs", "recv", "the receiver sets the number of transfers"},
    {"send", "listen", "recv", "only a receiver listens"},
    {"recv", "link", "send", "the sender emulates the link, in both directions"},
    {"recv", "rate", "send", "the sender sets the rate"},
    {"recv", "wait", "send", "only a sender connects"},
    {"recv", "path-file", "send", "only a sender learns the rate of a path"},
    {"recv", "follow", "send", "the sender reads the links"},
    {"recv", "exclude", "send", "the sender reads the folders"},
    {"recv", "include", "send", "the sender reads the folders"},
    {"recv", "delete", "send", "the sender asks for it; --allow-delete permits it"},
    {"recv", "yes", "send", "only a sender asks"},
    {"recv", "dry-run", "send", "the sender asks for it"},
};

/* The entry for `length` bytes of an option's name; NULL: no command on the peer has it. */
static const struct cli_peer_option *cli_peer_option_find(const char *command, const char *name,
                                                          size_t length)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (!strcmp(table[i].command, command) && strlen(table[i].option) == length &&
            !memcmp(table[i].option, name, length))
            return &table[i];
    return NULL;
}

/* ---- options --------------------------------------------------------------------------------------- */

/* Position of the parser in argv. */
struct cursor {
    const struct cli_usage *usage;
    int argc;
    char **argv;
    int next;
    struct cli_operands *operands;
};

static bool has_name(const struct cli_option *option, const char *name, size_t length)
{
    return strlen(option->name) == length && !memcmp(option->name, name, length);
}

static const struct cli_option *find_long(const struct cli_usage *usage, const char *name, size_t length)
{
    for (unsigned group = 0; group < CLI_OPTION_GROUPS_MAX && usage->groups[group]; group++)
        for (const struct cli_option *option = usage->groups[group]; option->name; option++)
            if (has_name(option, name, length))
                return option;
    return NULL;
}

static const struct cli_option *find_letter(const struct cli_usage *usage, char letter)
{
    for (unsigned group = 0; group < CLI_OPTION_GROUPS_MAX && usage->groups[group]; group++)
        for (const struct cli_option *option = usage->groups[group]; option->name; option++)
            if (option->letter && option->letter == letter)
                return option;
    return NULL;
}

/* Behind one dash the value may follow at once: "-g1", "-np4". */
static bool is_foreign(const struct cli_foreign_option *option, const char *word)
{
    bool one_dash = word[1] != '-';
    const char *name = word + (one_dash ? 1 : 2);
    size_t length = strlen(option->name);
    if (strncmp(name, option->name, length) != 0)
        return false;
    return !name[length] || name[length] == '=' || (one_dash && isdigit((unsigned char)name[length]));
}

/* NULL: it is none. */
static const struct cli_foreign_option *find_foreign(const struct cli_usage *usage, const char *word)
{
    for (const struct cli_foreign_option *option = usage->foreign; option && option->name; option++)
        if (is_foreign(option, word))
            return option;
    return NULL;
}

static int unknown_option(const struct cli_usage *usage, const char *typed)
{
    bool is_long = !strncmp(typed, "--", 2);
    const char *name = typed + (is_long ? 2 : 1);
    const struct cli_peer_option *elsewhere =
        cli_peer_option_find(usage->command, name, is_long ? strcspn(name, "=") : 1);
    if (elsewhere)
        return cli_misused("%s: %s (use longhaul %s %s)", typed, elsewhere->why, elsewhere->other, typed);
    for (unsigned group = 0; group < CLI_OPTION_GROUPS_MAX && usage->groups[group]; group++)
        for (const struct cli_option *option = usage->groups[group]; option->name; option++)
            if (is_long && cli_is_close(typed + 2, option->name))
                return cli_misused("%s: unknown option (did you mean --%s?)", typed, option->name);
    return cli_misused("%s: unknown option (see longhaul %s --help)", typed, usage->command);
}

/* Takes the option's value, from the same word (inline_value) or the next one. */
static int take_option(struct cursor *cursor, const struct cli_option *option, const char *inline_value)
{
    if (option->kind == CLI_FLAG) {
        if (inline_value)
            return cli_misused("--%s=%s: option takes no value", option->name, inline_value);
        *(bool *)option->target = true;
        return CLI_PROCEED;
    }
    if (!inline_value) {
        if (cursor->next == cursor->argc)
            return cli_misused("--%s: missing value (--%s %s)", option->name, option->name, option->value);
        inline_value = cursor->argv[cursor->next++];
    }
    return cli_option_value(option, inline_value);
}

static int take_long(struct cursor *cursor, const char *word)
{
    const char *name = word + 2, *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const struct cli_option *option = find_long(cursor->usage, name, length);
    if (!option)
        return unknown_option(cursor->usage, word);
    return take_option(cursor, option, equals ? equals + 1 : NULL);
}

static int take_letter(struct cursor *cursor, const char *word)
{
    const struct cli_option *option = find_letter(cursor->usage, word[1]);
    if (!option)
        return unknown_option(cursor->usage, word);
    return take_option(cursor, option, word[2] ? word + 2 : NULL);
}

static const char *operands_taken(const struct cli_usage *usage)
{
    if (usage->operands_taken)
        return usage->operands_taken;
    return usage->operands_max ? "at most one" : "none";
}

static int take_operand(struct cursor *cursor, const char *word)
{
    const struct cli_usage *usage = cursor->usage;
    if (cursor->operands->count == usage->operands_max)
        return cli_misused("%s: unexpected argument %u: %s takes %s (usage: longhaul %s %s)", word,
                           usage->operands_max + 1, usage->command, operands_taken(usage), usage->command,
                           usage->operands);
    cursor->operands->text[cursor->operands->count++] = word;
    return CLI_PROCEED;
}

/* Names the first of "FILE HOST[:PORT]" that is missing. */
static int check_operands(const struct cursor *cursor)
{
    const struct cli_usage *usage = cursor->usage;
    if (cursor->operands->count >= usage->operands_min)
        return CLI_PROCEED;
    const char *missing = usage->operands;
    for (unsigned i = 0; i < cursor->operands->count; i++)
        missing += strcspn(missing, " ") + 1;
    return cli_misused("missing %.*s (usage: longhaul %s %s)", (int)strcspn(missing, " "), missing,
                       usage->command, usage->operands);
}

int cli_options_parse(const struct cli_usage *usage, int argc, char **argv, struct cli_operands *operands)
{
    struct cursor cursor = {usage, argc, argv, 1, operands};
    const struct cli_foreign_option *foreign;
    bool options_over = false;
    *operands = (struct cli_operands){0};
    while (cursor.next < argc) {
        const char *word = argv[cursor.next++];
        int status;
        if (options_over || word[0] != '-' || !word[1])
            status = take_operand(&cursor, word);
        else if (!strcmp(word, "--help") || !strcmp(word, "-h"))
            return cli_option_help(usage);
        else if (!strcmp(word, "--"))
            options_over = true, status = CLI_PROCEED;
        else if ((foreign = find_foreign(usage, word)) != NULL)
            return cli_misused("%s: unknown option (%s)", word, foreign->remedy);
        else
            status = word[1] == '-' ? take_long(&cursor, word) : take_letter(&cursor, word);
        if (status != CLI_PROCEED)
            return status;
    }
    return check_operands(&cursor);
}
