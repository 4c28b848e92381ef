/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/run/lines.h"

#include <string.h>

static void print(struct cli_lines *lines, bool whole)
{
    if (lines->rank >= 0 && !lines->inside)
        fprintf(lines->out, "[%d] ", lines->rank);
    fwrite(lines->line, 1, lines->held, lines->out);
    lines->inside = !whole;
    lines->held = 0;
}

void cli_lines_take(struct cli_lines *lines, const char *text, size_t bytes)
{
    while (bytes > 0) { /* once a line, or a part of one */
        size_t room = sizeof lines->line - lines->held;
        size_t take = bytes < room ? bytes : room;
        const char *end = memchr(text, '\n', take);
        if (end)
            take = (size_t)(end - text) + 1;
        memcpy(lines->line + lines->held, text, take);
        lines->held += take;
        text += take;
        bytes -= take;
        if (end || lines->held == sizeof lines->line)
            print(lines, end != NULL);
    }
}

void cli_lines_end(struct cli_lines *lines)
{
    if (lines->held > 0 || lines->inside)
        cli_lines_take(lines, "\n", 1);
}
