/*
 * say.h - how the command speaks: one line on stderr for what went wrong, and the exit statuses.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_SAY_H
#define CLI_SAY_H

/* What the process exits with; a signal's number is added to 128, as shells do. */
enum cli_exit {
    CLI_EXIT_OK = 0,
    CLI_EXIT_FAILED = 1, /* it was asked rightly, and did not work */
    CLI_EXIT_USAGE = 2,  /* it was asked wrongly */
};

/* The subcommand that every line starts with, "" for none; the text must stay. */
void cli_say_command(const char *command);

/* "longhaul COMMAND: text" on stderr. Returns CLI_EXIT_FAILED, CLI_EXIT_USAGE. */
int cli_failed(const char *format, ...) __attribute__((format(printf, 1, 2)));
int cli_misused(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for something to know that is no failure: "longhaul COMMAND: note: text". */
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A library call that sets up a connection to or at that address returned code: says what was being done,
 * with lh_last_error(). A value that the library does not take is misuse, the rest failure; returns the
 * exit status. */
int cli_library_failed(const char *what, const char *where, int code);

#endif
