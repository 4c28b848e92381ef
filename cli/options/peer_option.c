/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/options/peer_option.h"

#include <string.h>

/* tests/e2e/cli_options.sh compares it with each --help. */
static const struct cli_peer_option table[] = {
    {"send", "reliability", "recv", "the receiver chooses the scheme"},
    {"send", "output", "recv", "the receiver chooses the folder"},
    {"send", "o", "recv", "the receiver chooses the folder"},
    {"send", "force", "recv", "the receiver chooses whether to replace files"},
    {"send", "dotfiles", "recv", "the receiver chooses the names to accept"},
    {"send", "keep", "recv", "the receiver chooses the number of files"},
    {"send", "jobs", "recv", "the receiver sets the number of transfers"},
    {"send", "listen", "recv", "only a receiver listens"},
    {"recv", "link", "send", "the sender emulates the link, in both directions"},
    {"recv", "rate", "send", "the sender sets the rate"},
    {"recv", "wait", "send", "only a sender connects"},
    {"recv", "path-file", "send", "only a sender learns the rate of a path"},
};

const struct cli_peer_option *cli_peer_option_find(const char *command, const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (!strcmp(table[i].command, command) && strlen(table[i].option) == length &&
            !memcmp(table[i].option, name, length))
            return &table[i];
    return NULL;
}
