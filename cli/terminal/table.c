/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/terminal/table.h"

#include "cli/terminal/output.h"

#define GAP 2

/* Of a title, and more than a cell. */
#define TITLE_MAX 128

static unsigned width_of(const struct cli_column *column)
{
    char shown[TITLE_MAX];
    unsigned title = cli_text_columns(cli_text_shown(column->title, shown, sizeof shown));
    return title > column->width ? title : column->width;
}

/* No blanks at the end of a line: that spoils copies of it. */
static void print_cell(const struct cli_table *table, const struct cli_column *column, const char *text,
                       enum cli_colour colour)
{
    char shown[TITLE_MAX];
    text = cli_text_shown(text, shown, sizeof shown);
    unsigned columns = cli_text_columns(text), width = width_of(column);
    int pad = width > columns ? (int)(width - columns) : 0;
    bool coloured = table->colours && colour != CLI_PLAIN;
    int before = (column == table->columns ? 0 : GAP) + (column->left ? 0 : pad);
    fprintf(table->out, "%*s%s%s%s", before, "", cli_colour(colour, coloured), text,
            cli_colour(CLI_PLAIN, coloured));
    if (column->left && column[1].title)
        fprintf(table->out, "%*s", pad, "");
}

void cli_table_titles(const struct cli_table *table)
{
    fputs(table->indent, table->out);
    for (const struct cli_column *column = table->columns; column->title; column++)
        print_cell(table, column, column->title, CLI_BOLD);
    fputc('\n', table->out);
    cli_output_flush();
}

unsigned cli_table_width(const struct cli_table *table)
{
    unsigned width = 0;
    for (const struct cli_column *column = table->columns; column->title; column++)
        width += width_of(column) + (column == table->columns ? 0 : GAP);
    return width;
}

void cli_table_rule(const struct cli_table *table)
{
    const char *rule = cli_terminal_utf8() ? "─" : "-";
    fprintf(table->out, "%s%s", table->indent, cli_colour(CLI_DIM, table->colours));
    for (unsigned i = cli_table_width(table); i; i--)
        fputs(rule, table->out);
    fprintf(table->out, "%s\n", cli_colour(CLI_PLAIN, table->colours));
    cli_output_flush();
}

void cli_table_row(const struct cli_table *table, const struct cli_cell *cells)
{
    fputs(table->indent, table->out);
    for (unsigned i = 0; table->columns[i].title; i++)
        print_cell(table, &table->columns[i], cells[i].text, cells[i].colour);
    fputc('\n', table->out);
    cli_output_flush();
}
