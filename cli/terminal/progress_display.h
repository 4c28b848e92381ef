/*
 * progress_display.h - progress bars on stderr, and tables on stdout. Any thread may move a bar.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_TERMINAL_PROGRESS_DISPLAY_H
#define LH_CLI_TERMINAL_PROGRESS_DISPLAY_H

#include <stdbool.h>
#include <stdio.h>

#include <longhaul/types.h>

#include "cli/terminal/terminal.h"

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
