/*
 * tree_rules.h - which entries of a tree are sent: --include and --exclude, in a part of rsync's grammar.
 *
 * Rules are looked at in their order; the first one whose pattern matches decides, and without one the entry
 * is sent. A folder that is excluded is not read. Patterns:
 *
 *   * any bytes of a name; ** any bytes, slashes, too; ? a byte of a name; [a-z] a byte of the set, [!a-z]
 *   and [^a-z] one that is not in it, never a slash; a backslash before a byte takes it as it is, where there
 *   is one of these
 *
 * A slash at the end: folders only; a slash and three stars: the folder, and all that is in it. A slash at
 * the start: the whole path, that of the transfer, with the name of PATH. Another slash, or **: the end of
 * the path, from its start or from behind a slash. Else the name alone.
 *
 * Not taken: rules of files, merged files, modifiers, the list-clearing "!".
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_TREE_RULES_H
#define LH_CLI_FILE_TREE_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/options/cli_options.h"

struct cli_tree_rule {
    const char *pattern;
    bool includes;
};

struct cli_tree_rules {
    unsigned count;
    struct cli_tree_rule rules[2 * CLI_TEXTS_MAX];
};

/* In the order of the command line, which both lists point into. CLI_PROCEED; or CLI_EXIT_USAGE after
 * reporting a pattern that is wrong. */
int cli_tree_rules_read(const struct cli_texts *includes, const struct cli_texts *excludes, int argc,
                        char *const argv[], struct cli_tree_rules *rules);

/* Whether an entry is left out. path: of the transfer, relative, ends with a zero. */
bool cli_tree_rules_exclude(const struct cli_tree_rules *rules, const char *path, bool folder);

/* ---- patterns -------------------------------------------------------------------------------------- */

#define CLI_TREE_PATTERN_MAX 1023u

/* NULL, or what is wrong with it, in words that go after the pattern. */
const char *cli_tree_pattern_wrong(const char *pattern);
/* Takes time in proportion to the product of both lengths. */
bool cli_tree_pattern_matches(const char *pattern, const char *path, bool folder);

#endif
