/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/terminal/diagnostic.h"

#include "cli/terminal/output.h"
#include "cli/terminal/terminal.h"

#include <longhaul/connection.h>
#include <longhaul/error.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* A path and some words fit. */
#define LINE_MAX_BYTES 4608

static const char *command_name = "";

/* " (rank N)", or "". */
static char rank_words[24];

void cli_diagnostic_rank(unsigned rank)
{
    snprintf(rank_words, sizeof rank_words, " (rank %u)", rank);
}

void cli_diagnostic_command(const char *command)
{
    command_name = command;
}

static void print_line(const char *prefix, const char *format, va_list arguments)
{
    char text[LINE_MAX_BYTES];
    vsnprintf(text, sizeof text, format, arguments);
    /* One line without control characters: paths and texts of the peer may contain any. */
    cli_text_clean(text, strlen(text));
    cli_output_lock();
    cli_output_erase_bars();
    /* Keeps the order of the two streams, also in one file. */
    cli_output_flush();
    /* In one piece: several processes may share a log. */
    fprintf(stderr, "longhaul%s%s%s: %s%s\n", *command_name ? " " : "", command_name, rank_words, prefix,
            text);
    cli_output_unlock();
}

int cli_failed(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line("", format, arguments);
    va_end(arguments);
    return CLI_EXIT_FAILED;
}

int cli_misused(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line("", format, arguments);
    va_end(arguments);
    return CLI_EXIT_USAGE;
}

void cli_note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line("note: ", format, arguments);
    va_end(arguments);
}

int cli_library_failed(const char *what, const char *where, int code)
{
    const char *reason = lh_last_error();
    if (!*reason)
        reason = lh_strerror(code);
    /* Most reasons name the address. */
    bool named = strstr(reason, where) != NULL;
    bool misused = code == -LH_EINVAL || code == -LH_ERANGE || code == -LH_EDEVICE;
    int (*fail)(const char *, ...) = misused ? cli_misused : cli_failed;
    return fail("%s: %s%s%s", what, named ? "" : where, named ? "" : ": ", reason);
}

const char *cli_connection_strerror(struct lh_connection *connection, int code)
{
    bool ended = code == -LH_EPATH || code == -LH_EPEER;
    if (!ended || lh_connection_error(connection) != code)
        return lh_strerror(code);
    return lh_last_error();
}
