/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/options/help.h"

#include "cli/terminal/diagnostic.h"

#include <stdio.h>
#include <string.h>

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

int cli_option_help(const struct cli_usage *usage)
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
