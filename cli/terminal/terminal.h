/*
 * terminal.h - the terminal: capabilities, safe output of untrusted text, stop signals, diagnostics, progress
 * bars, tables.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_TERMINAL_TERMINAL_H
#define LH_CLI_TERMINAL_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <longhaul/connection.h>
#include <longhaul/types.h>

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

/* ---- output ---------------------------------------------------------------------------------------- */

/* Standard output: failed writes are detected and reported by the exit status. */

/* Before anything is opened: gives standard streams that are closed a file that fails each read or write, so
 * that no file or socket gets their numbers. */
void cli_output_start(void);

/* Nobody else prints lines or bars until cli_output_unlock(). May be nested. */
void cli_output_lock(void);
void cli_output_unlock(void);
/* Bars are lines below all others, on a terminal at stderr, that are drawn again and again: number 0, 1 and
 * so on, one after the other. With the lock. */
void cli_output_bar(unsigned number, const char *line);
/* Takes the bars away, so that other lines can be printed. With the lock. */
void cli_output_erase_bars(void);

/* Writes what is buffered. The first failure is kept for cli_output_end(). */
void cli_output_flush(void);

/* The last call of a command: writes what is buffered and closes standard output. 0, or the errno of the
 * first failure. */
int cli_output_end(void);

/* ---- stop ------------------------------------------------------------------------------------------ */

/*
 * SIGINT, SIGTERM and SIGHUP: at once while there is nothing to clean up, else by a flag that
 * loops look at.
 */

/* Installs the handlers, in the mode that ends the process at once, and ignores SIGPIPE and SIGXFSZ (so
 * that writing to a closed pipe or past a file size limit is an error like any other). */
void cli_stop_install(void);

/* Whether a signal ends the process at once, with 128 + its number. Only while no file is half written and no
 * peer needs a close: waiting for a first connection, for instance. */
void cli_stop_at_once(bool at_once);

/* Files are settled; what is left is that peers take what they were told, and they may be gone. From now on a
 * signal ends the process at once; one that has come before does in a second, in which most peers take it. */
void cli_stop_leaving(void);

/* A file that is unfinished, which a signal that ends the process removes. NULL: none. Not copied. */
void cli_stop_removes(const char *path);

/* 0, or the exit status that the signal which came asks for: 130 for SIGINT, 143 for SIGTERM. */
int cli_stopped(void);

/* ---- wait ------------------------------------------------------------------------------------------ */

/* Waiting for a request, with a timeout and a check for signals. */

/* Signals, progress bars and early answers are looked at this often. */
#define CLI_SLICE_NS (50 * LH_NS_PER_MS)

/* Monotonic. */
lh_time cli_now(void);
double cli_seconds(lh_time ns);

/* Waits until the request is done: 0, with *result. -LH_ETIMEDOUT after timeout_ns, -LH_ECANCELED
 * when a signal asked to stop; the request goes on then. */
int cli_wait(struct lh_request *request, lh_time timeout_ns, struct lh_result *result);

/* ---- diagnostic ------------------------------------------------------------------------------------ */

/* Messages on stderr, one line each, and exit statuses. */

struct lh_connection;

/* What the process exits with; a signal's number is added to 128, as shells do. */
enum cli_exit {
    CLI_EXIT_OK = 0,
    CLI_EXIT_FAILED = 1, /* failure */
    CLI_EXIT_USAGE = 2,  /* usage error */
    CLI_EXIT_LOST = 3,   /* the peer or the path was lost in a tree: the same command continues */
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

/* Bytes of the character that text begins with, 1 to 4 of the `bytes` there are; 0: it is none (RFC 3629:
 * nor are surrogates, what is above U+10FFFF, or a character in more bytes than it needs). */
size_t cli_utf8_bytes(const char *text, size_t bytes);

/* ---- progress -------------------------------------------------------------------------------------- */

/* Progress bars on stderr, and tables on stdout. Any thread may move a bar. */

struct cli_progress {
    const char *label;
    uint64_t total_bytes;
    bool shown;
    uint64_t done_bytes;
    struct cli_progress *next; /* of those that are shown */
    /* What the rate is taken from: the moment and place of the last estimate. */
    lh_time sampled_ns;
    uint64_t sampled_bytes;
    double bytes_per_ns; /* smoothed; 0: not known yet */
};

/* Both must stay until cli_progress_clear(). done_bytes: where a resumed transfer starts. */
void cli_progress_start(struct cli_progress *progress, const char *label, uint64_t total_bytes,
                        uint64_t done_bytes);
/* Draws at most ten times a second. */
void cli_progress_show(struct cli_progress *progress, uint64_t done_bytes);
/* Takes the bar away for good. */
void cli_progress_clear(struct cli_progress *progress);

/* Columns of the longest bar, and bytes that one needs. */
#define CLI_BAR_COLUMNS_MAX 30
#define CLI_BAR_MAX         (CLI_BAR_COLUMNS_MAX + 3)

/* "[=======>      ]", of that many columns inside. share: 0 to 1. */
void cli_progress_bar(double share, unsigned columns, char out[CLI_BAR_MAX]);
/* "1:05 left" */
void cli_progress_left(double seconds, char *out, size_t size);

/* ---- table ----------------------------------------------------------------------------------------- */

/* Rows of text under titles, each printed as soon as it is there. */

/* Bytes of one cell, with the final zero. */
#define CLI_CELL_MAX    48
#define CLI_COLUMNS_MAX 20

struct cli_column {
    const char *title; /* NULL ends the list */
    unsigned width;    /* a wider title widens it; columns stand two apart */
    bool left;         /* aligned left, else right */
};

struct cli_cell {
    char text[CLI_CELL_MAX];
    enum cli_colour colour;
};

struct cli_table {
    const struct cli_column *columns;
    FILE *out;
    const char *indent;
    bool colours;
};

void cli_table_titles(const struct cli_table *table);
/* A line under the titles, as wide as the table. */
void cli_table_rule(const struct cli_table *table);
void cli_table_row(const struct cli_table *table, const struct cli_cell *cells);

#endif
