/*
 * terminal.h - capabilities of the terminal, and untrusted text made safe for it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_TERMINAL_TERMINAL_H
#define LH_CLI_TERMINAL_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

enum cli_colour { CLI_PLAIN, CLI_BOLD, CLI_DIM, CLI_GREEN, CLI_YELLOW, CLI_RED };

/* Whether the file descriptor is a terminal that takes colours: not a dumb one, and NO_COLOR is not set. */
bool cli_terminal_colours(int descriptor);
/* Its columns; 80 when unknown. */
unsigned cli_terminal_columns(int descriptor);
/* Its rows; 24 when unknown. */
unsigned cli_terminal_rows(int descriptor);

/* What switches a colour on and, with CLI_PLAIN, off; "" when colours is false. */
const char *cli_colour(enum cli_colour colour, bool colours);

/* Whether the locale's characters are UTF-8: by LC_ALL, LC_CTYPE and LANG, also where that locale is not
 * installed. */
bool cli_terminal_utf8(void);
/* Text with the signs of this command, as the locale shows it: where that is not UTF-8, with "-", ">", "x",
 * "+-", ">=", "..." and "u" for them, in out[size]. Returns out, or the text itself. */
const char *cli_text_shown(const char *text, char *out, size_t size);

/* "" for one, "s" for other numbers: the ending of a noun. */
const char *cli_plural(double count);

/* Columns that UTF-8 text takes (every character counted as one). */
unsigned cli_text_columns(const char *text);

/* Whether the bytes hold nothing that a terminal could take for a command: no C0 or C1 control character,
 * no DEL. */
bool cli_text_is_clean(const char *text, size_t bytes);
/* Replaces those that are not clean by '?'. */
void cli_text_clean(char *text, size_t bytes);

#endif
