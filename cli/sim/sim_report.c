/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/sim_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <longhaul/units.h>

#include "cli/perf/perf_messages.h"
#include "cli/results/json.h"
#include "cli/sim/scenario.h"
#include "cli/sim/sim_results.h"
#include "cli/terminal/terminal.h"

/* ---- mean ------------------------------------------------------------------------------------------ */

double cli_mean_ci95(const double *values, unsigned count, double *half)
{
    /* Student's t, two-sided 95 %, for 1 degree of freedom and on. */
    static const double t95[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                 2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                 2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
    double mean = cli_samples_mean(values, count), squares = 0;
    *half = NAN;
    if (count < 2)
        return count ? mean : NAN;
    for (unsigned i = 0; i < count; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    unsigned degrees = count - 1;
    double t = degrees <= sizeof t95 / sizeof t95[0] ? t95[degrees - 1] : 1.96;
    *half = t * sqrt(squares / degrees / count);
    return mean;
}

/* ---- results --------------------------------------------------------------------------------------- */

const struct cli_sim_run *cli_sim_result(const struct cli_sim_results *results, unsigned point,
                                         unsigned seed)
{
    return &results->runs[(size_t)point * results->plan->seeds + seed];
}

unsigned cli_sim_points(const struct cli_sim_results *results)
{
    return (results->done + results->plan->seeds - 1) / results->plan->seeds;
}

unsigned cli_sim_seeds(const struct cli_sim_results *results, unsigned point)
{
    unsigned seeds = results->plan->seeds, left = results->done - point * seeds;
    return left < seeds ? left : seeds;
}

/* Durations of all seeds together. */
static double pooled(const struct cli_sim_results *results, unsigned point, unsigned figure)
{
    double values[CLI_FIGURES] = {0};
    struct cli_operations all = {0};
    unsigned seeds = cli_sim_seeds(results, point);
    for (unsigned seed = 0; seed < seeds; seed++)
        all.count += cli_sim_result(results, point, seed)->figures.operations.count;
    all.seconds = calloc(all.count + 1, sizeof *all.seconds);
    if (!all.seconds)
        return NAN;
    all.count = 0;
    for (unsigned seed = 0; seed < seeds; seed++) {
        const struct cli_operations *some = &cli_sim_result(results, point, seed)->figures.operations;
        for (size_t i = 0; i < some->count; i++)
            all.seconds[all.count++] = some->seconds[i];
    }
    cli_operations_sum_up(&all, values);
    cli_operations_free(&all);
    return values[figure];
}

static bool is_pooled(unsigned figure)
{
    return figure == CLI_FIGURE_OPERATION_P50 || figure == CLI_FIGURE_OPERATION_P99 ||
           figure == CLI_FIGURE_OPERATION_MAX;
}

double cli_sim_mean(const struct cli_sim_results *results, unsigned point, unsigned figure, double *half)
{
    *half = NAN;
    if (is_pooled(figure))
        return pooled(results, point, figure);
    unsigned seeds = cli_sim_seeds(results, point), known = 0;
    double *values = calloc(seeds, sizeof *values), mean = NAN;
    if (!values)
        return NAN;
    for (unsigned seed = 0; seed < seeds; seed++) {
        double value = cli_sim_result(results, point, seed)->figures.value[figure];
        if (isfinite(value))
            values[known++] = value;
    }
    mean = cli_mean_ci95(values, known, half);
    free(values);
    return mean;
}

/* ---- table ----------------------------------------------------------------------------------------- */

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

/* ---- notes ----------------------------------------------------------------------------------------- */

static bool is_written_down(const char *key)
{
    return !strcmp(key, "output.queues") || !strcmp(key, "output.rates") || !strcmp(key, "output.pcap");
}

/* A share that the library takes and that is above 1. */
static bool is_overload(const struct cli_sim_plan *plan, unsigned point)
{
    double ratio = 0;
    return !strcmp(cli_sim_plan_text(plan, point, "workload.kind"), "poisson") &&
           !strcmp(cli_sim_plan_text(plan, point, "workload.load_base"), "line") &&
           lh_parse_ratio(cli_sim_plan_text(plan, point, "workload.load"), &ratio) == -LH_ERANGE;
}

void cli_sim_notes_before(const struct cli_sim_plan *plan, bool has_folder)
{
    /* Ready scenarios name links for those who give a folder; who names them on the command line wants them
     * now. */
    for (unsigned i = 0; i < plan->scenario.count; i++) {
        const struct cli_setting *setting = &plan->scenario.settings[i];
        if (!has_folder && !setting->line && is_written_down(setting->key) &&
            strcmp(setting->value, "none") != 0)
            cli_note("%s: ignored without --output FOLDER", setting->key);
    }
    for (unsigned point = 0; point < plan->points; point++)
        if (is_overload(plan, point)) {
            cli_note("workload.load = %s: above the rate of the hosts' links, queues grow without bound",
                     cli_sim_plan_text(plan, point, "workload.load"));
            return;
        }
}

/* Retransmissions without loss. Of unfinished flows the table gives the cause. */
static bool is_needless(const double *value)
{
    return value[CLI_FIGURE_REPEATED] > 0 && value[CLI_FIGURE_DROPPED] + value[CLI_FIGURE_LOST] <= 0 &&
           value[CLI_FIGURE_FAILED] + value[CLI_FIGURE_STUCK] <= 0;
}

static void note_captures(const struct cli_sim_results *results)
{
    unsigned runs = 0;
    uint64_t captured = 0, packets = 0;
    for (unsigned i = 0; i < results->done; i++) {
        const struct cli_sim_run *run = &results->runs[i];
        if (!run->uncaptured)
            continue;
        runs++;
        captured = run->captured;
        packets = run->captured + run->uncaptured;
    }
    if (runs == 1)
        cli_note("capture.pcap: first %llu of %llu packet%s (raise output.packets for more)",
                 (unsigned long long)captured, (unsigned long long)packets, cli_plural((double)packets));
    else if (runs)
        cli_note("capture.pcap: first %llu packet%s only, in %u of %u runs (raise output.packets for more)",
                 (unsigned long long)captured, cli_plural((double)captured), runs, results->done);
}

static void note_repeats(const struct cli_sim_results *results)
{
    double repeated = 0, timeouts = 0;
    unsigned runs = 0;
    char where[48] = "";
    for (unsigned i = 0; i < results->done; i++) {
        const double *value = results->runs[i].figures.value;
        if (!is_needless(value))
            continue;
        runs++;
        repeated += value[CLI_FIGURE_REPEATED];
        timeouts += value[CLI_FIGURE_TIMEOUTS];
    }
    if (!runs)
        return;
    if (results->done > 1)
        snprintf(where, sizeof where, " in %u of %u runs", runs, results->done);
    cli_note("%.0f packet%s retransmitted%s without loss: raise %s", repeated, cli_plural(repeated), where,
             timeouts > 0
                 ? "transport.rto_min or transport.rto (irn: rto_low and rto_high), or transport.reorder "
                   "where packets are reordered"
                 : "transport.reorder, since packets are reordered");
}

void cli_sim_notes_after(const struct cli_sim_results *results)
{
    note_captures(results);
    note_repeats(results);
}

/* ---- summary --------------------------------------------------------------------------------------- */

static void put_figures(struct cli_json *json, const double *values)
{
    for (unsigned figure = 0; figure < CLI_FIGURES; figure++)
        cli_json_number(json, cli_figure_infos[figure].json, values[figure]);
}

static void put_class(struct cli_json *json, const struct cli_class *group)
{
    if (group->by_sites && !group->done)
        return;
    cli_json_open(json, NULL, '{');
    if (group->by_sites) {
        cli_json_count(json, "from_site", group->from_site);
        cli_json_count(json, "to_site", group->to_site);
    }
    cli_json_count(json, "from_bytes", group->from_bytes);
    if (group->to_bytes == UINT64_MAX)
        cli_json_number(json, "to_bytes", NAN);
    else
        cli_json_count(json, "to_bytes", group->to_bytes);
    cli_json_count(json, "done", group->done);
    cli_json_number(json, "fct_mean_s", group->fct_mean);
    cli_json_number(json, "fct_p50_s", group->fct_p50);
    cli_json_number(json, "fct_p99_s", group->fct_p99);
    cli_json_number(json, "fct_max_s", group->fct_max);
    cli_json_number(json, "slowdown_mean", group->slowdown_mean);
    cli_json_number(json, "slowdown_p50", group->slowdown_p50);
    cli_json_number(json, "slowdown_p99", group->slowdown_p99);
    cli_json_number(json, "slowdown_max", group->slowdown_max);
    cli_json_close(json, '}');
}

static void put_run(struct cli_json *json, const struct cli_sim_run *run)
{
    cli_json_open(json, NULL, '{');
    cli_json_count(json, "seed", run->seed);
    put_figures(json, run->figures.value);
    cli_json_open(json, "classes", '[');
    for (unsigned i = 0; i < run->figures.classes_count; i++)
        put_class(json, &run->figures.classes[i]);
    cli_json_close(json, ']');
    cli_json_close(json, '}');
}

static void put_settings(struct cli_json *json, const struct cli_sim_plan *plan, unsigned point)
{
    size_t count = 0;
    const struct lh_netsim_key *keys = lh_netsim_keys(&count);
    cli_json_open(json, "settings", '{');
    for (size_t i = 0; i < count; i++)
        if (*cli_sim_plan_text(plan, point, keys[i].name))
            cli_json_text(json, keys[i].name, cli_sim_plan_text(plan, point, keys[i].name));
    cli_json_close(json, '}');
}

static void put_means(struct cli_json *json, const struct cli_sim_results *results, unsigned point)
{
    double means[CLI_FIGURES], halves[CLI_FIGURES];
    for (unsigned figure = 0; figure < CLI_FIGURES; figure++)
        means[figure] = cli_sim_mean(results, point, figure, &halves[figure]);
    cli_json_open(json, "mean", '{');
    put_figures(json, means);
    cli_json_close(json, '}');
    cli_json_open(json, "ci95", '{');
    put_figures(json, halves);
    cli_json_close(json, '}');
}

static void put_point(struct cli_json *json, const struct cli_sim_results *results, unsigned point)
{
    const struct cli_sim_plan *plan = results->plan;
    cli_json_open(json, NULL, '{');
    cli_json_open(json, "sweep", '{');
    for (unsigned axis = 0; axis < plan->axes_count; axis++)
        cli_json_text(json, plan->axes[axis].key, cli_sim_plan_value(plan, point, axis));
    cli_json_close(json, '}');
    put_settings(json, plan, point);
    cli_json_open(json, "runs", '[');
    for (unsigned seed = 0; seed < cli_sim_seeds(results, point); seed++)
        put_run(json, cli_sim_result(results, point, seed));
    cli_json_close(json, ']');
    if (plan->seeds > 1)
        put_means(json, results, point);
    cli_json_close(json, '}');
}

void cli_sim_json(const struct cli_sim_results *results, FILE *out)
{
    const struct cli_sim_plan *plan = results->plan;
    struct cli_json json = {.out = out};
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "scenario", plan->scenario.path);
    cli_json_text(&json, "title", results->title);
    cli_json_count(&json, "missing_runs", (uint64_t)plan->points * plan->seeds - results->done);
    cli_json_open(&json, "points", '[');
    for (unsigned point = 0; point < cli_sim_points(results); point++)
        put_point(&json, results, point);
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    cli_json_end(&json);
}

/* Text in quotes when it has a comma in it. */
static void put_csv_text(FILE *out, const char *text)
{
    bool quoted = strpbrk(text, ",\"") != NULL;
    if (quoted)
        fputc('"', out);
    for (; *text; text++)
        fprintf(out, *text == '"' ? "\"\"" : "%c", *text);
    if (quoted)
        fputc('"', out);
}

static void put_csv_number(FILE *out, double value)
{
    if (isfinite(value))
        fprintf(out, ",%.9g", value);
    else
        fputc(',', out);
}

int cli_sim_sweep_csv(const struct cli_sim_results *results, const struct cli_folder *folder)
{
    const struct cli_sim_plan *plan = results->plan;
    FILE *out = cli_folder_open(folder, "sweep.csv");
    if (!out)
        return CLI_EXIT_FAILED;
    for (unsigned axis = 0; axis < plan->axes_count; axis++)
        fprintf(out, "%s%s", axis ? "," : "", plan->axes[axis].key);
    for (unsigned figure = 0; figure < CLI_FIGURES; figure++)
        fprintf(out, ",%s,%s_ci95", cli_figure_infos[figure].json, cli_figure_infos[figure].json);
    fputc('\n', out);
    for (unsigned point = 0; point < cli_sim_points(results); point++) {
        for (unsigned axis = 0; axis < plan->axes_count; axis++) {
            fputs(axis ? "," : "", out);
            put_csv_text(out, cli_sim_plan_value(plan, point, axis));
        }
        for (unsigned figure = 0; figure < CLI_FIGURES; figure++) {
            double half = NAN;
            put_csv_number(out, cli_sim_mean(results, point, figure, &half));
            put_csv_number(out, half);
        }
        fputc('\n', out);
    }
    return cli_folder_close(folder, "sweep.csv", out);
}
