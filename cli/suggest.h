/*
 * suggest.h - the word that was meant, for messages about one that was mistyped.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_SUGGEST_H
#define CLI_SUGGEST_H

#include <stddef.h>

/* Words are compared up to this length. */
#define CLI_SUGGEST_MAX 32

/* Insertions, deletions and replacements that make one out of the other; words longer than CLI_SUGGEST_MAX
 * are cut. */
unsigned cli_distance(const char *one, const char *other);

/* Whether a word is close enough to be what somebody meant who typed the other. */
int cli_is_close(const char *typed, const char *word);

#endif
