/*
 * lines.h - what a rank writes, cut into whole lines, so that lines of several ranks do not mix.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_RUN_LINES_H
#define LH_CLI_RUN_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A longer line comes in parts. */
#define CLI_LINE_MAX 65536u

struct cli_lines {
    int rank; /* lines begin with "[rank] "; -1: as they are */
    FILE *out;
    size_t held;
    bool inside; /* the part before belongs to the same line */
    char line[CLI_LINE_MAX];
};

/* Takes what a rank wrote; prints lines that are whole now. */
void cli_lines_take(struct cli_lines *lines, const char *text, size_t bytes);
/* Nothing follows: prints a last line without its end. */
void cli_lines_end(struct cli_lines *lines);

#endif
