/*
 * diagnostic.h - messages on stderr, one line each, and exit statuses.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_TERMINAL_DIAGNOSTIC_H
#define LH_CLI_TERMINAL_DIAGNOSTIC_H

struct lh_connection;

/* What the process exits with; a signal's number is added to 128, as shells do. */
enum cli_exit {
    CLI_EXIT_OK = 0,
    CLI_EXIT_FAILED = 1, /* failure */
    CLI_EXIT_USAGE = 2,  /* usage error */
};

/* Go on: not an exit status. */
#define CLI_PROCEED (-1)

/* The subcommand that every line starts with, "" for none; the text must stay. */
void cli_diagnostic_command(const char *command);

/* One of several processes that were started with the same command line: each line names its rank, from then
 * on. */
void cli_diagnostic_rank(unsigned rank);

/* "longhaul COMMAND: text", or "longhaul COMMAND (rank N): text" on stderr. Returns CLI_EXIT_FAILED,
 * CLI_EXIT_USAGE. */
int cli_failed(const char *format, ...) __attribute__((format(printf, 1, 2)));
int cli_misused(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for a notice: "longhaul COMMAND: note: text". */
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A library call that sets up a connection to or at that address returned code: reports
 * it with lh_last_error(). An invalid value is a usage error, the rest failure; returns the exit status. */
int cli_library_failed(const char *what, const char *where, int code);

/* Why a call on a connection returned code: what ended the connection, if that is it, else lh_strerror().
 * Valid until the next failed call of the library. */
const char *cli_connection_strerror(struct lh_connection *connection, int code);

#endif
