/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/terminal/progress_display.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <longhaul/types.h>
#include <longhaul/units.h>

#include "cli/terminal/terminal.h"

/* ---- progress -------------------------------------------------------------------------------------- */

#define DRAW_EVERY_NS (100 * LH_NS_PER_MS)
/* The rate is that of about the last two seconds. */
#define SAMPLE_EVERY_NS (200 * LH_NS_PER_MS)
#define SAMPLE_WEIGHT   0.1
#define BAR_COLUMNS_MIN 8
/* Of the name, which gets half of what the numbers leave. */
#define LABEL_COLUMNS_MAX 48
#define LABEL_COLUMNS_MIN 12
#define LABEL_MAX         (4 * LABEL_COLUMNS_MAX + 1)
/* Columns right of the bar. */
#define RIGHT_COLUMNS 52

static void sample(struct cli_progress *progress, uint64_t done_bytes, lh_time now)
{
    lh_time elapsed = now - progress->sampled_ns;
    if (elapsed < SAMPLE_EVERY_NS || done_bytes < progress->sampled_bytes)
        return;
    double rate = (double)(done_bytes - progress->sampled_bytes) / (double)elapsed;
    progress->bytes_per_ns +=
        progress->bytes_per_ns > 0 ? SAMPLE_WEIGHT * (rate - progress->bytes_per_ns) : rate;
    progress->sampled_ns = now;
    progress->sampled_bytes = done_bytes;
}

void cli_progress_left(double seconds, char *out, size_t size)
{
    unsigned long left = seconds < 1e8 ? (unsigned long)(seconds + 0.5) : 99999999;
    if (left >= 3600)
        snprintf(out, size, "%lu:%02lu:%02lu left", left / 3600, left / 60 % 60, left % 60);
    else
        snprintf(out, size, "%lu:%02lu left", left / 60, left % 60);
}

void cli_progress_bar(double share, unsigned columns, char out[CLI_BAR_MAX])
{
    unsigned filled = (unsigned)(share * columns);
    memset(out, ' ', columns + 2);
    out[0] = '[';
    memset(out + 1, '=', filled);
    if (filled < columns)
        out[1 + filled] = '>';
    out[columns + 1] = ']';
    out[columns + 2] = 0;
}

/* After that many characters; a byte that is not UTF-8 is one. */
static const char *skip_characters(const char *text, size_t characters)
{
    for (; *text && characters; characters--) {
        size_t bytes = cli_utf8_bytes(text, strlen(text));
        text += bytes ? bytes : 1;
    }
    return text;
}

static size_t count_characters(const char *text)
{
    size_t count = 0;
    for (; *text; count++)
        text = skip_characters(text, 1);
    return count;
}

/* Just that many columns: blanks follow a short label, a long one keeps its head and its tail, which gives
 * files of a series apart. */
static void fit_label(const char *label, size_t columns, char out[LABEL_MAX])
{
    static const char gap[] = "...";
    size_t characters = count_characters(label), shown = columns - strlen(gap), head = (shown + 1) / 2;
    if (characters <= columns)
        snprintf(out, LABEL_MAX, "%s%*s", label, (int)(columns - characters), "");
    else
        snprintf(out, LABEL_MAX, "%.*s%s%s", (int)(skip_characters(label, head) - label), label, gap,
                 skip_characters(label, characters - (shown - head)));
}

/* The line without colours into out[size], less than columns wide; of a label that does not fit, its head and
 * its tail. */
static void cli_progress_line(const struct cli_progress *progress, uint64_t done_bytes, unsigned columns,
                              char *out, size_t size)
{
    char done[LH_FORMAT_MAX], total[LH_FORMAT_MAX], rate[LH_FORMAT_MAX] = "", left[LH_FORMAT_MAX] = "";
    char right[5 * LH_FORMAT_MAX], bar[CLI_BAR_MAX] = "", name[LABEL_MAX];
    double share = progress->total_bytes ? (double)done_bytes / (double)progress->total_bytes : 1;
    if (progress->bytes_per_ns > 0) {
        lh_format_rate(progress->bytes_per_ns * 8e9, rate, sizeof rate);
        double bytes_left = (double)(progress->total_bytes - done_bytes);
        cli_progress_left(bytes_left / progress->bytes_per_ns / 1e9, left, sizeof left);
    }
    lh_format_size(done_bytes, done, sizeof done);
    lh_format_size(progress->total_bytes, total, sizeof total);
    /* Fixed widths: a line that jumps cannot be read. */
    snprintf(right, sizeof right, "%3d %%  %7s of %-7s  %10s  %s", (int)(share * 100), done, total, rate,
             left);
    unsigned room = columns > RIGHT_COLUMNS ? columns - RIGHT_COLUMNS : 0;
    unsigned label = room / 2 < LABEL_COLUMNS_MAX ? room / 2 : LABEL_COLUMNS_MAX;
    label = label > LABEL_COLUMNS_MIN ? label : LABEL_COLUMNS_MIN;
    room -= room > label ? label : room;
    /* Two blanks, two brackets, two blanks. */
    if (room >= BAR_COLUMNS_MIN + 6)
        cli_progress_bar(share, room - 6 < CLI_BAR_COLUMNS_MAX ? room - 6 : CLI_BAR_COLUMNS_MAX, bar);
    fit_label(progress->label, label, name);
    snprintf(out, size, "%s  %s  %s", name, bar, right);
    out[skip_characters(out, columns ? columns - 1 : 0) - out] = 0;
}

/* ---- on the terminal --------------------------------------------------------------------------------- */

/* Those that are shown, under the lock of the output. */
static struct cli_progress *first_shown;
static lh_time drawn_ns;

static void draw(void)
{
    char line[512];
    unsigned columns = cli_terminal_columns(STDERR_FILENO), rows = cli_terminal_rows(STDERR_FILENO),
             number = 0;
    for (const struct cli_progress *each = first_shown; each && number < rows; each = each->next) {
        cli_progress_line(each, each->done_bytes, columns, line, sizeof line);
        cli_output_bar(number++, line);
    }
}

void cli_progress_start(struct cli_progress *progress, const char *label, uint64_t total_bytes,
                        uint64_t done_bytes)
{
    *progress = (struct cli_progress){
        .label = label,
        .total_bytes = total_bytes,
        .shown = isatty(STDERR_FILENO) != 0,
        .sampled_ns = cli_now(),
        .sampled_bytes = done_bytes,
        .done_bytes = done_bytes,
    };
    if (!progress->shown)
        return;
    cli_output_lock();
    struct cli_progress **end = &first_shown;
    while (*end) /* at most as many as there are transfers */
        end = &(*end)->next;
    *end = progress;
    cli_output_unlock();
}

void cli_progress_show(struct cli_progress *progress, uint64_t done_bytes)
{
    lh_time now = cli_now();
    if (!progress->shown)
        return;
    cli_output_lock();
    progress->done_bytes = done_bytes;
    sample(progress, done_bytes, now);
    if (now - drawn_ns >= DRAW_EVERY_NS) {
        drawn_ns = now;
        draw();
    }
    cli_output_unlock();
}

void cli_progress_clear(struct cli_progress *progress)
{
    if (!progress->shown)
        return;
    cli_output_lock();
    cli_output_erase_bars();
    struct cli_progress **at = &first_shown;
    while (*at != progress)
        at = &(*at)->next;
    *at = progress->next;
    progress->shown = false;
    cli_output_unlock();
}

/* ---- table ----------------------------------------------------------------------------------------- */

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

static unsigned cli_table_width(const struct cli_table *table)
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
