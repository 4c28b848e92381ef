/*
 * table.h - rows of text under titles, each printed as soon as it is there.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_TERMINAL_TABLE_H
#define LH_CLI_TERMINAL_TABLE_H

#include "cli/terminal/terminal.h"

#include <stdbool.h>
#include <stdio.h>

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
unsigned cli_table_width(const struct cli_table *table);

#endif
