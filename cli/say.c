/* SPDX-License-Identifier: BSD-3-Clause */
#include "say.h"

#include "output.h"
#include "terminal.h"

#include <longhaul/error.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* A path and some words fit. */
#define SAY_MAX 4608

static const char *command_name = "";

void cli_say_command(const char *command)
{
    command_name = command;
}

static void say(const char *prefix, const char *format, va_list arguments)
{
    char text[SAY_MAX];
    vsnprintf(text, sizeof text, format, arguments);
    /* One line, which steers no terminal: paths and what the other side says may hold anything. */
    cli_text_clean(text, strlen(text));
    /* What was printed before stands before, also when both go to one file. */
    cli_output_flush();
    /* In one piece: several processes may share a log. */
    fprintf(stderr, "longhaul%s%s: %s%s\n", *command_name ? " " : "", command_name, prefix, text);
}

int cli_failed(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say("", format, arguments);
    va_end(arguments);
    return CLI_EXIT_FAILED;
}

int cli_misused(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say("", format, arguments);
    va_end(arguments);
    return CLI_EXIT_USAGE;
}

void cli_note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say("note: ", format, arguments);
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
