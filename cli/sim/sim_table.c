/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/report/table.h"

#include "cli/terminal/table.h"
#include "cli/terminal/terminal.h"

#include <longhaul/units.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VALUE_COLUMNS 22

static struct cli_table make_table(const struct cli_column *columns)
{
    return (struct cli_table){columns, stdout, "  ", cli_terminal_colours(STDOUT_FILENO)};
}

static void print_label(const char *label)
{
    bool colours = cli_terminal_colours(STDOUT_FILENO);
    printf("  %s%-14s%s", cli_colour(CLI_DIM, colours), label, cli_colour(CLI_PLAIN, colours));
}

/* A figure in words. Two at a time may be in use. */
static const char *words(const struct cli_figures *figures, unsigned figure)
{
    static char texts[4][CLI_CELL_MAX];
    static unsigned next;
    char *text = texts[next++ % 4];
    cli_figure_format(figure, figures->value[figure], text, CLI_CELL_MAX);
    return text;
}

/* ---- one run -------------------------------------------------------------------------------------- */

static void put(struct cli_cell *cell, unsigned figure, double value)
{
    cli_figure_format(figure, value, cell->text, sizeof cell->text);
}

static void class_row(const struct cli_table *table, const struct cli_class *group)
{
    struct cli_cell cells[10] = {0};
    cli_class_format(group, cells[0].text, CLI_CELL_MAX);
    put(&cells[1], CLI_FIGURE_DONE, (double)group->done);
    put(&cells[2], CLI_FIGURE_FCT_MEAN, group->fct_mean);
    put(&cells[3], CLI_FIGURE_FCT_P50, group->fct_p50);
    put(&cells[4], CLI_FIGURE_FCT_P99, group->fct_p99);
    put(&cells[5], CLI_FIGURE_FCT_MAX, group->fct_max);
    put(&cells[6], CLI_FIGURE_SLOWDOWN_MEAN, group->slowdown_mean);
    put(&cells[7], CLI_FIGURE_SLOWDOWN_P50, group->slowdown_p50);
    put(&cells[8], CLI_FIGURE_SLOWDOWN_P99, group->slowdown_p99);
    put(&cells[9], CLI_FIGURE_SLOWDOWN_MAX, group->slowdown_max);
    cli_table_row(table, cells);
}

static void print_classes(const struct cli_figures *figures)
{
    static const struct cli_column columns[] = {
        {"flows", 16, true}, {"done", 7, false},    {"completion", 10, false}, {"median", 8, false},
        {"p99", 8, false},   {"longest", 8, false}, {"slowdown", 8, false},    {"median", 7, false},
        {"p99", 7, false},   {"largest", 8, false}, {.title = NULL},
    };
    struct cli_table table = make_table(columns);
    unsigned filled = 0;
    cli_table_titles(&table);
    cli_table_rule(&table);
    class_row(&table, &figures->all);
    for (unsigned i = 0; i < figures->classes_count; i++)
        filled += figures->classes[i].done != 0;
    for (unsigned i = 0; i < figures->classes_count && filled > 1; i++)
        if (figures->classes[i].done)
            class_row(&table, &figures->classes[i]);
    cli_table_rule(&table);
}

static void print_not_done(const double *value)
{
    double flows = value[CLI_FIGURE_FLOWS], left = flows - value[CLI_FIGURE_DONE];
    if (left <= 0)
        return;
    print_label("not done");
    printf("%.0f of %.0f flow%s", left, flows, cli_plural(flows));
    left -= value[CLI_FIGURE_FAILED] + value[CLI_FIGURE_STUCK];
    if (value[CLI_FIGURE_FAILED] > 0)
        printf("; %.0f failed: retries used up, or the connection ended", value[CLI_FIGURE_FAILED]);
    if (value[CLI_FIGURE_STUCK] > 0)
        printf("; %.0f stuck: %s", value[CLI_FIGURE_STUCK],
               value[CLI_FIGURE_SIGNALS_LOST] > 0 ? "signals were lost"
               : value[CLI_FIGURE_PAUSES] > 0     ? "deadlock of pause frames"
                                                  : "no retransmission pending");
    if (left > 0)
        printf("; %.0f unfinished at run.until", left);
    putchar('\n');
}

static void print_run(const struct cli_figures *figures)
{
    const double *value = figures->value;
    print_classes(figures);
    print_label("goodput");
    printf("%s over %s%s\n", words(figures, CLI_FIGURE_GOODPUT), words(figures, CLI_FIGURE_MAKESPAN),
           value[CLI_FIGURE_DONE] < value[CLI_FIGURE_FLOWS]
               ? ": payload of all flows, to the end of the simulation (some flows are not done)"
               : "");
    if (figures->operations.count > 0) {
        print_label("operations");
        printf("mean %s, ", words(figures, CLI_FIGURE_OPERATION_MEAN));
        printf("median %s, 99th percentile %s, longest %s\n", words(figures, CLI_FIGURE_OPERATION_P50),
               words(figures, CLI_FIGURE_OPERATION_P99), words(figures, CLI_FIGURE_OPERATION_MAX));
    }
    if (value[CLI_FIGURE_DELIVERED] < 1) {
        print_label("delivered");
        printf("%s of the payload of flows that are done\n", words(figures, CLI_FIGURE_DELIVERED));
    }
    print_label("dropped");
    printf("%.0f by switches, %.0f on links; %.0f packet%s retransmitted, %.0f timeout%s\n",
           value[CLI_FIGURE_DROPPED], value[CLI_FIGURE_LOST], value[CLI_FIGURE_REPEATED],
           cli_plural(value[CLI_FIGURE_REPEATED]), value[CLI_FIGURE_TIMEOUTS],
           cli_plural(value[CLI_FIGURE_TIMEOUTS]));
    print_label("queues");
    printf("maximum %s; %.0f packet%s marked, %.0f pause frame%s", words(figures, CLI_FIGURE_QUEUE_MAX),
           value[CLI_FIGURE_MARKED], cli_plural(value[CLI_FIGURE_MARKED]), value[CLI_FIGURE_PAUSES],
           cli_plural(value[CLI_FIGURE_PAUSES]));
    if (value[CLI_FIGURE_SIGNALS_LOST] > 0)
        printf("; %.0f signal%s lost", value[CLI_FIGURE_SIGNALS_LOST],
               cli_plural(value[CLI_FIGURE_SIGNALS_LOST]));
    putchar('\n');
    if (isfinite(value[CLI_FIGURE_JAIN])) {
        print_label("verdict");
        printf("Jain's index %s, share of the links %s; queue %s, 99th percentile %s\n",
               words(figures, CLI_FIGURE_JAIN), words(figures, CLI_FIGURE_SHARE),
               words(figures, CLI_FIGURE_QUEUE_MEAN), words(figures, CLI_FIGURE_QUEUE_P99));
    }
    print_label("simulated");
    printf("%s in %s: %.0f packet hop%s, %s; %s of memory\n", words(figures, CLI_FIGURE_VIRTUAL),
           words(figures, CLI_FIGURE_WALL), value[CLI_FIGURE_HOPS], cli_plural(value[CLI_FIGURE_HOPS]),
           words(figures, CLI_FIGURE_HOPS_RATE), words(figures, CLI_FIGURE_MEMORY));
    print_not_done(value);
}

/* ---- several seeds -------------------------------------------------------------------------------- */

static void print_seeds(const struct cli_sim_results *results)
{
    char title[48];
    snprintf(title, sizeof title, "over %u seed%s", cli_sim_seeds(results, 0),
             cli_plural(cli_sim_seeds(results, 0)));
    const struct cli_column columns[] = {
        {title, 38, true},
        {"mean", 12, false},
        {"± 95 %", 12, false},
        {.title = NULL},
    };
    struct cli_table table = make_table(columns);
    cli_table_titles(&table);
    cli_table_rule(&table);
    for (unsigned figure = 0; figure < CLI_FIGURES; figure++) {
        struct cli_cell cells[3] = {0};
        double half = NAN, mean = cli_sim_mean(results, 0, figure, &half);
        snprintf(cells[0].text, CLI_CELL_MAX, "%s", cli_figure_infos[figure].title);
        put(&cells[1], figure, mean);
        put(&cells[2], figure, half);
        cli_table_row(&table, cells);
    }
    cli_table_rule(&table);
}

/* ---- a sweep -------------------------------------------------------------------------------------- */

static const struct {
    const char *title;
    unsigned figure;
} sweep_columns[VALUE_COLUMNS] = {
    {"failed", CLI_FIGURE_FAILED},
    {"stuck", CLI_FIGURE_STUCK},
    {"completion", CLI_FIGURE_FCT_MEAN},
    {"p99", CLI_FIGURE_FCT_P99},
    {"operation", CLI_FIGURE_OPERATION_MEAN},
    {"p99", CLI_FIGURE_OPERATION_P99},
    {"slowdown", CLI_FIGURE_SLOWDOWN_MEAN},
    {"p99", CLI_FIGURE_SLOWDOWN_P99},
    {"goodput", CLI_FIGURE_GOODPUT},
    {"delivered", CLI_FIGURE_DELIVERED},
    {"Jain's index", CLI_FIGURE_JAIN},
    {"share", CLI_FIGURE_SHARE},
    {"queue", CLI_FIGURE_QUEUE_MEAN},
    {"p99", CLI_FIGURE_QUEUE_P99},
    {"longest queue", CLI_FIGURE_QUEUE_MAX},
    {"dropped", CLI_FIGURE_DROPPED},
    {"lost", CLI_FIGURE_LOST},
    {"retransmitted", CLI_FIGURE_REPEATED},
    {"timeouts", CLI_FIGURE_TIMEOUTS},
    {"marked", CLI_FIGURE_MARKED},
    {"pauses", CLI_FIGURE_PAUSES},
    {"signals lost", CLI_FIGURE_SIGNALS_LOST},
};

static bool is_ever(const struct cli_sim_results *results, unsigned figure)
{
    double half = NAN;
    bool ever = false;
    for (unsigned point = 0; point < cli_sim_points(results) && !ever; point++)
        ever = cli_sim_mean(results, point, figure, &half) > 0;
    return ever;
}

static bool is_known(const struct cli_sim_results *results, unsigned figure)
{
    double half = NAN;
    bool known = false;
    for (unsigned point = 0; point < cli_sim_points(results) && !known; point++)
        known = isfinite(cli_sim_mean(results, point, figure, &half));
    return known;
}

static bool is_below(const struct cli_sim_results *results, unsigned figure, double limit)
{
    double half = NAN;
    bool below = false;
    for (unsigned point = 0; point < cli_sim_points(results) && !below; point++)
        below = cli_sim_mean(results, point, figure, &half) < limit;
    return below;
}

/* What is known of no point is no column, nor are counts that are zero at every point; but whether anything
 * was dropped belongs to what was sent again. */
static bool is_shown(const struct cli_sim_results *results, unsigned column)
{
    unsigned figure = sweep_columns[column].figure;
    if (figure == CLI_FIGURE_DELIVERED)
        return is_below(results, figure, 1);
    if (cli_figure_infos[figure].unit != CLI_UNIT_NONE)
        return is_known(results, figure);
    if (is_ever(results, figure))
        return true;
    return figure == CLI_FIGURE_DROPPED && is_ever(results, CLI_FIGURE_REPEATED);
}

/* With several seeds, the mean and its uncertainty. */
static void put_mean(const struct cli_sim_results *results, unsigned point, unsigned figure,
                     struct cli_cell *cell)
{
    double half = NAN, mean = cli_sim_mean(results, point, figure, &half);
    put(cell, figure, mean);
    size_t used = strlen(cell->text);
    if (isfinite(half) && fabs(mean) > 0 && cli_figure_infos[figure].unit != CLI_UNIT_NONE)
        snprintf(cell->text + used, sizeof cell->text - used, " ±%.0f%%", 100 * half / fabs(mean));
}

/* Flows that are done, of all where some are not. True: all are. */
static bool put_done(const struct cli_sim_results *results, unsigned point, struct cli_cell *cell)
{
    double half = NAN, flows = cli_sim_mean(results, point, CLI_FIGURE_FLOWS, &half);
    double done = cli_sim_mean(results, point, CLI_FIGURE_DONE, &half);
    if (done < flows)
        snprintf(cell->text, CLI_CELL_MAX, "%.0f of %.0f", done, flows);
    else
        snprintf(cell->text, CLI_CELL_MAX, "%.0f", done);
    return !(done < flows);
}

static unsigned done_width(const struct cli_sim_results *results)
{
    unsigned width = 6;
    for (unsigned point = 0; point < cli_sim_points(results); point++) {
        struct cli_cell cell = {0};
        put_done(results, point, &cell);
        if (strlen(cell.text) > width)
            width = (unsigned)strlen(cell.text);
    }
    return width;
}

static void sweep_row(const struct cli_sim_results *results, const struct cli_table *table, unsigned point)
{
    struct cli_cell cells[CLI_AXES_MAX + 1 + VALUE_COLUMNS] = {0};
    unsigned used = 0;
    for (; used < results->plan->axes_count; used++)
        snprintf(cells[used].text, CLI_CELL_MAX, "%.40s", cli_sim_plan_value(results->plan, point, used));
    if (!put_done(results, point, &cells[used]))
        cells[used].colour = CLI_RED;
    used++;
    for (unsigned i = 0; i < VALUE_COLUMNS; i++)
        if (is_shown(results, i))
            put_mean(results, point, sweep_columns[i].figure, &cells[used++]);
    cli_table_row(table, cells);
}

/* Only measures have their uncertainty beside them, counts do not. */
static unsigned column_width(const struct cli_sim_plan *plan, unsigned column)
{
    if (cli_figure_infos[sweep_columns[column].figure].unit == CLI_UNIT_NONE)
        return 8;
    return plan->seeds > 1 ? 13 : 9;
}

static void print_sweep(const struct cli_sim_results *results)
{
    const struct cli_sim_plan *plan = results->plan;
    struct cli_column columns[CLI_AXES_MAX + 2 + VALUE_COLUMNS] = {0};
    unsigned used = 0;
    for (; used < plan->axes_count; used++) {
        columns[used] = (struct cli_column){cli_sim_plan_short(plan->axes[used].key), 6, true};
        for (unsigned i = 0; i < plan->axes[used].count; i++)
            if (cli_text_columns(plan->axes[used].values[i]) > columns[used].width)
                columns[used].width = cli_text_columns(plan->axes[used].values[i]);
        if (columns[used].width > 40)
            columns[used].width = 40;
    }
    columns[used++] = (struct cli_column){"done", done_width(results), false};
    for (unsigned i = 0; i < VALUE_COLUMNS; i++)
        if (is_shown(results, i))
            columns[used++] = (struct cli_column){sweep_columns[i].title, column_width(plan, i), false};
    struct cli_table table = make_table(columns);
    cli_table_titles(&table);
    cli_table_rule(&table);
    for (unsigned point = 0; point < cli_sim_points(results); point++) {
        if (point && plan->axes_count > 1 && point % plan->axes[1].count == 0)
            putchar('\n');
        sweep_row(results, &table, point);
    }
    cli_table_rule(&table);
}

static void print_speed(const struct cli_sim_results *results)
{
    double hops = 0, wall = 0, ignored = 0;
    unsigned runs = results->plan->points * results->plan->seeds;
    char time[LH_FORMAT_MAX], rate[CLI_CELL_MAX], of[32] = "";
    for (unsigned point = 0; point < cli_sim_points(results); point++) {
        unsigned seeds = cli_sim_seeds(results, point);
        hops += cli_sim_mean(results, point, CLI_FIGURE_HOPS, &ignored) * seeds;
        wall += cli_sim_mean(results, point, CLI_FIGURE_WALL, &ignored) * seeds;
    }
    if (results->done < runs)
        snprintf(of, sizeof of, " of %u", runs);
    cli_figure_format(CLI_FIGURE_HOPS_RATE, hops / wall, rate, sizeof rate);
    print_label("simulated");
    printf("%u%s run%s in %s: %.0f packet hop%s, %s\n", results->done, of,
           cli_plural(results->done < runs ? runs : results->done), lh_format_time(wall, time, sizeof time),
           hops, cli_plural(hops), rate);
}

void cli_sim_report(const struct cli_sim_results *results)
{
    bool colours = cli_terminal_colours(STDOUT_FILENO);
    char shown[512];
    printf("\n  %s%s%s\n\n", cli_colour(CLI_BOLD, colours),
           cli_text_shown(results->title, shown, sizeof shown), cli_colour(CLI_PLAIN, colours));
    if (results->plan->axes_count)
        print_sweep(results);
    else if (results->plan->seeds > 1)
        print_seeds(results);
    else
        print_run(&results->runs[0].figures);
    if (results->plan->axes_count || results->plan->seeds > 1)
        print_speed(results);
    putchar('\n');
}
