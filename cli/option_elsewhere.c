/* SPDX-License-Identifier: BSD-3-Clause */
#include "option_elsewhere.h"

#include <string.h>

/* tests/e2e/cli_options.sh holds it to what each --help has. */
static const struct cli_elsewhere table[] = {
    {"send", "reliability", "recv", "the receiver chooses the scheme"},
    {"send", "output", "recv", "the receiver chooses the folder"},
    {"send", "o", "recv", "the receiver chooses the folder"},
    {"send", "force", "recv", "the receiver decides what is replaced"},
    {"send", "dotfiles", "recv", "the receiver decides which names it takes"},
    {"send", "keep", "recv", "the receiver decides how many files it takes"},
    {"send", "listen", "recv", "only a receiver listens"},
    {"recv", "link", "send", "the sender emulates the link, in both directions"},
    {"recv", "rate", "send", "the sender sets the pace"},
    {"recv", "wait", "send", "only a sender connects"},
};

const struct cli_elsewhere *cli_option_elsewhere(const char *command, const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (!strcmp(table[i].command, command) && strlen(table[i].option) == length &&
            !memcmp(table[i].option, name, length))
            return &table[i];
    return NULL;
}
