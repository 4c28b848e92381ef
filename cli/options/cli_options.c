/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/options/options.h"

#include "cli/options/help.h"
#include "cli/options/peer_option.h"
#include "cli/options/suggest.h"
#include "cli/options/value.h"
#include "cli/terminal/diagnostic.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

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
