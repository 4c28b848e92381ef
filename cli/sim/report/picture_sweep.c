/*
 * picture_sweep.c - sweep.svg: figures over the values of the first key that is swept, a line for
 * each value of the second.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/sim/report/picture_sweep.h"

#include "cli/results/gnuplot.h"
#include "cli/terminal/diagnostic.h"

#include <math.h>
#include <string.h>

/* Between the largest and the smallest value: from here on the axis is logarithmic. */
#define LOG_FROM 40

#define KIB 1024.0
#define MIB 1048576.0

/* In points: two panels side by side are as wide as pages show a picture. */
#define PANEL_WIDTH  430
#define ALONE_WIDTH  640
#define PLOT_HEIGHT  230
#define TITLE_HEIGHT 45
#define AXIS_HEIGHT  75
#define LEFT         85
#define RIGHT        20

/* Characters of all values that fit under a panel. */
#define VALUES_MAX 40

/* How a figure is shown: its unit, and what to multiply by. */
struct scale {
    const char *unit; /* "" when there is none */
    double factor;
    bool logarithmic;
};

/* The second axis, or one line. */
static unsigned lines_of(const struct cli_sim_plan *plan)
{
    return plan->axes_count > 1 ? plan->axes[1].count : 1;
}

static struct scale scale_of(const struct cli_sim_results *results, unsigned figure)
{
    double least = INFINITY, most = 0, half = 0;
    struct scale scale = {"", 1, false};
    for (unsigned point = 0; point < cli_sim_points(results); point++) {
        double value = cli_sim_mean(results, point, figure, &half);
        if (isfinite(value)) {
            least = value < least ? value : least;
            most = value > most ? value : most;
        }
    }
    scale.logarithmic = least > 0 && most / least > LOG_FROM;
    switch (cli_figure_infos[figure].unit) {
    case CLI_UNIT_SECONDS:
        scale.unit = most < 2e-3 ? "µs" : most < 2 ? "ms" : "s";
        scale.factor = most < 2e-3 ? 1e6 : most < 2 ? 1e3 : 1;
        break;
    case CLI_UNIT_BPS:
        scale.unit = most < 2e12 ? "Gbit/s" : "Tbit/s";
        scale.factor = most < 2e12 ? 1e-9 : 1e-12;
        break;
    case CLI_UNIT_BYTES:
        scale.unit = most < 2 * MIB ? "KiB" : "MiB";
        scale.factor = most < 2 * MIB ? 1 / KIB : 1 / MIB;
        break;
    case CLI_UNIT_PER_S:
        scale.unit = "M/s";
        scale.factor = 1e-6;
        break;
    case CLI_UNIT_NONE:
        scale.unit = most < 1e6 ? "" : "millions";
        scale.factor = most < 1e6 ? 1 : 1e-6;
        break;
    case CLI_UNIT_SHARE:
        scale.unit = "%";
        scale.factor = 100;
        break;
    case CLI_UNIT_RATIO:
        break;
    }
    return scale;
}

/* A block for each line: place on the axis, then value and uncertainty of each panel. */
static int put_data(const struct cli_sim_results *results, const struct cli_folder *folder)
{
    const struct cli_sim_plan *plan = results->plan;
    unsigned lines = lines_of(plan);
    FILE *out = cli_folder_open(folder, "sweep.dat");
    if (!out)
        return CLI_EXIT_FAILED;
    for (unsigned line = 0; line < lines; line++) {
        for (unsigned point = line; point < cli_sim_points(results); point += lines) {
            fprintf(out, "%u", point / lines);
            for (unsigned panel = 0; panel < plan->output.panels_count; panel++) {
                double half = NAN, mean = cli_sim_mean(results, point, plan->output.panels[panel], &half);
                /* gnuplot passes over what is no number. */
                fprintf(out, isfinite(mean) ? " %.9g" : " ?", mean);
                fprintf(out, " %.9g", isfinite(half) ? half : 0);
            }
            fputc('\n', out);
        }
        fputs("\n\n", out);
    }
    return cli_folder_close(folder, "sweep.dat", out);
}

static bool is_choice(const char *key)
{
    size_t count = 0;
    const struct lh_netsim_key *keys = lh_netsim_keys(&count);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(keys[i].name, key))
            return strchr(keys[i].kind, '|') != NULL;
    return false;
}

/* The label of a tic is a format for its number. */
static void put_tic(FILE *script, const char *text)
{
    char label[2 * CLI_AXIS_VALUE_MAX];
    size_t used = 0;
    for (; *text; text++) {
        if (*text == '%')
            label[used++] = '%';
        label[used++] = *text;
    }
    label[used] = 0;
    cli_gnuplot_text(script, label);
}

static unsigned longest_value(const struct cli_sim_axis *axis)
{
    unsigned longest = 0;
    for (unsigned i = 0; i < axis->count; i++)
        longest = strlen(axis->values[i]) > longest ? (unsigned)strlen(axis->values[i]) : longest;
    return longest;
}

/* Whether the values do not fit beside each other. */
static bool is_slanted(const struct cli_sim_axis *axis)
{
    return longest_value(axis) * axis->count > VALUES_MAX;
}

static void put_tics(FILE *script, const struct cli_sim_axis *axis)
{
    fputs("set xtics (", script);
    for (unsigned i = 0; i < axis->count; i++) {
        fputs(i ? ", " : "", script);
        put_tic(script, axis->values[i]);
        fprintf(script, " %u", i);
    }
    fputs(")\n", script);
    if (is_slanted(axis))
        fputs("set xtics rotate by 30 right\n", script);
    fprintf(script, "set xrange [-0.5:%g]\n", axis->count - 0.5);
}

static const char *style(bool bars, bool uncertain)
{
    if (bars)
        return uncertain ? "boxerrorbars fill solid 0.85" : "boxes fill solid 0.85 noborder";
    return uncertain ? "yerrorlines" : "linespoints";
}

/* Bars for words, lines for numbers; bars beside each other, so that none hides another. */
static void put_lines(FILE *script, const struct cli_sim_plan *plan, unsigned panel, double factor,
                      bool bars)
{
    unsigned lines = lines_of(plan), column = 2 + 2 * panel;
    double width = 0.8 / lines;
    char name[CLI_POINT_LABEL_MAX] = "";
    for (unsigned line = 0; line < lines; line++) {
        double apart = bars              ? width
                       : plan->seeds > 1 ? 0.06
                                         : 0,
               shift = (line - (lines - 1) / 2.0) * apart;
        fputs(line ? ", \\\n     " : "plot ", script);
        fprintf(script, "'sweep.dat' index %u using ($1+%g):($%u*%g)", line, shift, column, factor);
        if (plan->seeds > 1)
            fprintf(script, ":($%u*%g)", column + 1, factor);
        fprintf(script, " with %s linetype %u title ", style(bars, plan->seeds > 1), line + 1);
        if (lines > 1)
            snprintf(name, sizeof name, "%s=%s", cli_sim_plan_short(plan->axes[1].key),
                     plan->axes[1].values[line]);
        cli_gnuplot_text(script, name);
    }
    fputc('\n', script);
}

/* Panels stand side by side in rows of two; one legend below all of them. */
struct layout {
    struct cli_gnuplot_legend legend;
    unsigned across, width, height, row_height, axis_height;
};

static struct layout find_layout(const struct cli_sim_plan *plan)
{
    unsigned panels = plan->output.panels_count, lines = lines_of(plan), longest = 0;
    if (lines > 1)
        longest =
            (unsigned)strlen(cli_sim_plan_short(plan->axes[1].key)) + 1 + longest_value(&plan->axes[1]);
    struct layout layout = {.across = panels > 1 ? 2 : 1};
    layout.width = panels > 1 ? 2 * PANEL_WIDTH : ALONE_WIDTH;
    /* Slanted values reach down by half of their length. */
    layout.axis_height = AXIS_HEIGHT + (is_slanted(&plan->axes[0]) ? longest_value(&plan->axes[0]) * 4 : 0);
    layout.row_height = PLOT_HEIGHT + layout.axis_height;
    layout.legend = cli_gnuplot_legend(layout.width / layout.across - LEFT - RIGHT, lines, longest);
    layout.height = TITLE_HEIGHT + (panels + layout.across - 1) / layout.across * layout.row_height +
                    layout.legend.height;
    return layout;
}

static void put_place(FILE *script, const struct layout *layout, unsigned panel)
{
    unsigned across = layout->width / layout->across;
    unsigned left = panel % layout->across * across, top = panel / layout->across * layout->row_height;
    const struct cli_gnuplot_frame frame = {
        .width = layout->width,
        .height = layout->height,
        .left = left + LEFT,
        .right = left + across - RIGHT,
        .top = top + TITLE_HEIGHT,
        .bottom = top + TITLE_HEIGHT + PLOT_HEIGHT,
    };
    cli_gnuplot_frame(script, &frame);
    if (panel)
        fputs("unset key\n", script);
    else
        cli_gnuplot_key(script, &frame, layout->legend, layout->height - layout->legend.height);
}

static void put_panel(FILE *script, const struct cli_sim_results *results, unsigned panel)
{
    const struct cli_sim_plan *plan = results->plan;
    const struct cli_figure_info *info = &cli_figure_infos[plan->output.panels[panel]];
    struct scale scale = scale_of(results, plan->output.panels[panel]);
    bool bars = is_choice(plan->axes[0].key) && !scale.logarithmic;
    char label[96];
    snprintf(label, sizeof label, "%s%s%s%s", info->title, *scale.unit ? " (" : "", scale.unit,
             *scale.unit ? ")" : "");
    fputs("set ylabel ", script);
    cli_gnuplot_text(script, label);
    fprintf(script, "\nset boxwidth %g\n", 0.8 / lines_of(plan) * 0.92);
    fputs(scale.logarithmic ? "set logscale y\nset yrange [*:*]\n" : "unset logscale y\nset yrange [0:*]\n",
          script);
    put_lines(script, plan, panel, scale.factor, bars);
}

static int put_script(const struct cli_sim_results *results, const struct cli_folder *folder)
{
    const struct cli_sim_plan *plan = results->plan;
    struct layout layout = find_layout(plan);
    FILE *script = cli_folder_open(folder, "sweep.gp");
    if (!script)
        return CLI_EXIT_FAILED;
    cli_gnuplot_start(script, "sweep.svg", layout.width, layout.height, results->title);
    fputs("set multiplot title ", script);
    cli_gnuplot_text(script, results->title);
    fprintf(script, " font \",15\"\nunset title\nset xlabel '%s'\n", plan->axes[0].key);
    fputs("set grid noxtics\nset xtics scale 0\n", script);
    put_tics(script, &plan->axes[0]);
    for (unsigned panel = 0; panel < plan->output.panels_count; panel++) {
        put_place(script, &layout, panel);
        put_panel(script, results, panel);
    }
    return cli_folder_close(folder, "sweep.gp", script);
}

int cli_picture_sweep(const struct cli_sim_results *results, const struct cli_folder *folder)
{
    int status = put_data(results, folder);
    if (status == CLI_PROCEED)
        status = put_script(results, folder);
    return status == CLI_PROCEED ? cli_gnuplot_run(folder, "sweep.gp", "sweep.svg") : status;
}
