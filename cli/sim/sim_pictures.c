/*
 * picture_sweep.c - sweep.svg: figures over the values of the first key that is swept, a line for
 * each value of the second.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/sim/report/picture_sweep.h"

#include "cli/results/gnuplot.h"
#include "cli/sim/scenario/keys.h"
#include "cli/terminal/diagnostic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Between the largest and the smallest value: from here on the axis is logarithmic. */
#define LOG_FROM 40

#define KIB 1024.0
#define MIB 1048576.0

/* In points: two panels side by side are as wide as pages show a picture. */
#define PANEL_WIDTH     430
#define ALONE_WIDTH     640
#define PLOT_HEIGHT     230
#define TITLE_HEIGHT    45
#define AXIS_HEIGHT     75
#define NAMELESS_HEIGHT 45
#define LEFT            85
#define RIGHT           20

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

/* ---- the axis ---------------------------------------------------------------------------------------- */

/* Of values: numbers have places in proportion, or by their logarithm where they would be too close; words
 * have equal steps, and nothing joins them. */
struct axis {
    bool numbers, logarithmic;
    double least, most, step; /* of numbers; step: between two, in the mean; a factor, if logarithmic */
};

/* Nearer to each other than that part of an equal step, numbers are crowded. */
#define CROWDED 0.45

/* "25ms" in its own units; NaN: no number. */
static double number_of(const char *text)
{
    static const struct {
        const char *unit;
        double factor;
    } units[] = {{"", 1},       {"%", 0.01},   {"ns", 1e-9},  {"us", 1e-6},       {"ms", 1e-3},
                 {"s", 1},      {"km", 1},     {"B", 1},      {"kB", 1e3},        {"KiB", KIB},
                 {"MB", 1e6},   {"MiB", MIB},  {"GB", 1e9},   {"GiB", 1e3 * MIB}, {"bit", 1},
                 {"kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}, {"Tbit", 1e12}};
    char *end;
    double number = strtod(text, &end);
    for (size_t i = 0; end != text && i < sizeof units / sizeof *units; i++)
        if (!strcmp(end, units[i].unit))
            return number * units[i].factor;
    return NAN;
}

static int by_size(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static struct axis axis_of(const struct cli_sim_axis *values)
{
    double sorted[CLI_AXIS_VALUES_MAX], nearest = INFINITY;
    struct axis axis = {.numbers = values->count > 1};
    for (unsigned i = 0; i < values->count; i++) {
        sorted[i] = number_of(values->values[i]);
        axis.numbers &= isfinite(sorted[i]) != 0;
    }
    if (!axis.numbers)
        return axis;
    qsort(sorted, values->count, sizeof *sorted, by_size);
    for (unsigned i = 1; i < values->count; i++)
        nearest = fmin(nearest, sorted[i] - sorted[i - 1]);
    axis.least = sorted[0];
    axis.most = sorted[values->count - 1];
    axis.numbers = nearest > 0;
    axis.logarithmic = axis.least > 0 && nearest < CROWDED * (axis.most - axis.least) / (values->count - 1);
    axis.step = axis.logarithmic ? pow(axis.most / axis.least, 1.0 / (values->count - 1))
                                 : (axis.most - axis.least) / (values->count - 1);
    return axis;
}

static double place_of(const struct axis *axis, const struct cli_sim_axis *values, unsigned index)
{
    return axis->numbers ? number_of(values->values[index]) : index;
}

/* ---- data -------------------------------------------------------------------------------------------- */

/* A block for each line: place on the axis, then value and uncertainty of each panel. */
static int put_data(const struct cli_sim_results *results, const struct cli_folder *folder)
{
    const struct cli_sim_plan *plan = results->plan;
    unsigned lines = lines_of(plan);
    const struct axis axis = axis_of(&plan->axes[0]);
    FILE *out = cli_folder_open(folder, "sweep.dat");
    if (!out)
        return CLI_EXIT_FAILED;
    for (unsigned line = 0; line < lines; line++) {
        for (unsigned point = line; point < cli_sim_points(results); point += lines) {
            fprintf(out, "%.9g", place_of(&axis, &plan->axes[0], point / lines));
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

/* Variants' names say what they are. */
static bool has_name(const struct cli_sim_axis *axis)
{
    return strcmp(axis->key, CLI_SIM_VARIANT_KEY) != 0;
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

static void put_tics(FILE *script, const struct cli_sim_axis *values, const struct axis *axis)
{
    fputs("set xtics (", script);
    for (unsigned i = 0; i < values->count; i++) {
        fputs(i ? ", " : "", script);
        put_tic(script, values->values[i]);
        fprintf(script, " %.9g", place_of(axis, values, i));
    }
    fputs(")\n", script);
    if (is_slanted(values))
        fputs("set xtics rotate by 30 right\n", script);
    if (axis->logarithmic)
        fprintf(script, "set logscale x\nset xrange [%.9g:%.9g]\n", axis->least / sqrt(axis->step),
                axis->most * sqrt(axis->step));
    else if (axis->numbers)
        fprintf(script, "set xrange [%.9g:%.9g]\n", axis->least - axis->step / 2,
                axis->most + axis->step / 2);
    else
        fprintf(script, "set xrange [-0.5:%g]\n", values->count - 0.5);
}

enum style { STYLE_LINES, STYLE_BARS, STYLE_POINTS };

/* A bar begins at 0, which a logarithmic axis has not. */
static enum style style_of(const struct axis *axis, bool logarithmic)
{
    return axis->numbers ? STYLE_LINES : logarithmic ? STYLE_POINTS : STYLE_BARS;
}

static const char *style_name(enum style style, bool uncertain)
{
    static const char *const names[][2] = {
        [STYLE_LINES] = {"linespoints", "yerrorlines"},
        [STYLE_BARS] = {"boxes fill solid 0.85 noborder", "boxerrorbars fill solid 0.85"},
        [STYLE_POINTS] = {"points pointsize 1.2", "yerrorbars pointsize 1.2"}};
    return names[style][uncertain];
}

/* Where a line is drawn, of what the data says: bars and points beside each other, so that none hides
 * another, and lines so that their uncertainties do not. */
static void put_shifted(FILE *script, const struct axis *axis, enum style style, unsigned line,
                        unsigned lines, bool uncertain)
{
    double beside = style != STYLE_LINES ? 0.8 / lines : uncertain ? 0.06 : 0;
    double steps = (line - (lines - 1) / 2.0) * beside;
    if (axis->logarithmic)
        fprintf(script, "($1*%.9g)", pow(axis->step, steps));
    else
        fprintf(script, "($1+%.9g)", steps * (axis->numbers ? axis->step : 1));
}

/* Bars and points for words, lines for numbers. */
static void put_lines(FILE *script, const struct cli_sim_plan *plan, unsigned panel,
                      const struct scale *scale)
{
    unsigned lines = lines_of(plan), column = 2 + 2 * panel;
    const struct axis axis = axis_of(&plan->axes[0]);
    enum style style = style_of(&axis, scale->logarithmic);
    bool uncertain = plan->seeds > 1;
    char name[CLI_POINT_LABEL_MAX] = "";
    for (unsigned line = 0; line < lines; line++) {
        fprintf(script, "%s'sweep.dat' index %u using ", line ? ", \\\n     " : "plot ", line);
        put_shifted(script, &axis, style, line, lines, uncertain);
        fprintf(script, ":($%u*%g)", column, scale->factor);
        if (uncertain)
            fprintf(script, ":($%u*%g)", column + 1, scale->factor);
        fprintf(script, " with %s linetype %u title ", style_name(style, uncertain), line + 1);
        if (lines > 1)
            snprintf(name, sizeof name, "%s=%s", cli_sim_plan_short(plan->axes[1].key),
                     plan->axes[1].values[line]);
        cli_gnuplot_text(script, name);
    }
    fputc('\n', script);
}

/* ---- panels ------------------------------------------------------------------------------------------ */

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
    layout.axis_height = (has_name(&plan->axes[0]) ? AXIS_HEIGHT : NAMELESS_HEIGHT) +
                         (is_slanted(&plan->axes[0]) ? longest_value(&plan->axes[0]) * 4 : 0);
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
    char label[96];
    snprintf(label, sizeof label, "%s%s%s%s", info->title, *scale.unit ? " (" : "", scale.unit,
             *scale.unit ? ")" : "");
    fputs("set ylabel ", script);
    cli_gnuplot_text(script, label);
    fprintf(script, "\nset boxwidth %g\n", 0.8 / lines_of(plan) * 0.92);
    fputs(scale.logarithmic ? "set logscale y\nset yrange [*:*]\n" : "unset logscale y\nset yrange [0:*]\n",
          script);
    put_lines(script, plan, panel, &scale);
}

static int put_script(const struct cli_sim_results *results, const struct cli_folder *folder)
{
    const struct cli_sim_plan *plan = results->plan;
    struct layout layout = find_layout(plan);
    const struct axis axis = axis_of(&plan->axes[0]);
    FILE *script = cli_folder_open(folder, "sweep.gp");
    if (!script)
        return CLI_EXIT_FAILED;
    cli_gnuplot_start(script, "sweep.svg", layout.width, layout.height, results->title);
    fputs("set multiplot title ", script);
    cli_gnuplot_text(script, results->title);
    fputs(" font \",15\"\nunset title\n", script);
    if (has_name(&plan->axes[0]))
        fprintf(script, "set xlabel '%s'\n", plan->axes[0].key);
    fputs("set grid noxtics\nset xtics scale 0\n", script);
    put_tics(script, &plan->axes[0], &axis);
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
