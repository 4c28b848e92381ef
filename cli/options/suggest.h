/*
 * suggest.h - the word closest to a mistyped one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_OPTIONS_SUGGEST_H
#define LH_CLI_OPTIONS_SUGGEST_H

#include <stddef.h>

/* Words are compared up to this length. */
#define CLI_SUGGEST_MAX 32

/* Insertions, deletions and replacements that make one out of the other; words longer than CLI_SUGGEST_MAX
 * are cut. */
unsigned cli_distance(const char *one, const char *other);

/* Whether a word is close enough to the typed one to suggest it. */
int cli_is_close(const char *typed, const char *word);

#endif
