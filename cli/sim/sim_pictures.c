/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/sim_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/results/gnuplot.h"
#include "cli/results/result_file.h"
#include "cli/sim/scenario.h"
#include "cli/sim/sim_results.h"
#include "cli/terminal/terminal.h"

/* ---- picture text ---------------------------------------------------------------------------------- */

/* What all pictures of a simulation share: their title, and where their data is. */

#define CLI_PICTURE_TITLE_MAX 320

/* The title into out[CLI_PICTURE_TITLE_MAX]; also when only the first points, or the first seed, are
 * shown. */
static void cli_picture_title(const struct cli_sim_results *results, unsigned shown, char *out)
{
    unsigned points = cli_sim_points(results);
    if (shown < points)
        snprintf(out, CLI_PICTURE_TITLE_MAX, "%s (the first %u of %u)", results->title, shown, points);
    else
        snprintf(out, CLI_PICTURE_TITLE_MAX, "%s", results->title);
    size_t used = strlen(out);
    if (results->plan->seeds > 1)
        snprintf(out + used, CLI_PICTURE_TITLE_MAX - used, " (seed %u, the first of %u)",
                 results->plan->seed, results->plan->seeds);
}

/* A run's folder as seen from the folder of the pictures, with a slash; "" when they are the same. */
static void cli_picture_path(const struct cli_folder *folder, const struct cli_sim_run *run, char *out,
                             size_t size)
{
    size_t length = strlen(folder->path);
    bool same = !strcmp(folder->path, run->folder.path);
    snprintf(out, size, "%s%s", same ? "" : run->folder.path + length + 1, same ? "" : "/");
}

/* ---- picture series -------------------------------------------------------------------------------- */

/*
 * Queues.svg and rates.svg: queues and rates of links over time.
 *
 * Queues.svg and rates.svg: what queues and rates of links did over time.
 */

/* Lines of a panel, panels of a picture, and points of a line that can be distinguished. */
#define LINES_MAX  12
#define PANELS_MAX 8
#define POINTS_MAX 2000

/* In points. */
#define WIDTH          820
#define LEFT           85
#define RIGHT          (WIDTH - 30)
#define TITLE_HEIGHT   35
#define PANEL_HEIGHT   188
#define ALONE_HEIGHT   340
#define CAPTION_HEIGHT 48
#define AXIS_HEIGHT    65
#define EDGE           10

#define KIB 1024.0
#define MIB 1048576.0

static const struct cli_series_shape *shape_of(const struct cli_sim_run *run, bool rates)
{
    return rates ? &run->rates : &run->queues;
}

struct axis_unit {
    const char *name;
    double factor;
};

static struct axis_unit time_unit(double span_s)
{
    if (span_s < 2e-3)
        return (struct axis_unit){"µs", 1e6};
    return span_s < 2 ? (struct axis_unit){"ms", 1e3} : (struct axis_unit){"s", 1};
}

static struct axis_unit value_unit(bool rates, double max)
{
    if (rates)
        return (struct axis_unit){"Gbit/s", 1e-9};
    return max < 2 * MIB ? (struct axis_unit){"KiB", 1 / KIB} : (struct axis_unit){"MiB", 1 / MIB};
}

/* Over all panels, so that they can be compared. */
static void find_extent(const struct cli_sim_results *results, bool rates, unsigned *panels, double *span_s,
                        double *max)
{
    *panels = 0;
    *span_s = *max = 0;
    for (unsigned point = 0; point < cli_sim_points(results); point++) {
        const struct cli_sim_run *run = cli_sim_result(results, point, 0);
        const struct cli_series_shape *shape = shape_of(run, rates);
        double run_s = run->figures.value[CLI_FIGURE_VIRTUAL];
        if (!shape->columns || *panels == PANELS_MAX)
            continue;
        (*panels)++;
        *span_s = run_s > *span_s ? run_s : *span_s;
        *max = shape->max > *max ? shape->max : *max;
    }
}

/* Where panels stand, one below the other, and the legends. */
struct layout {
    struct cli_gnuplot_legend legend; /* the largest that a panel needs */
    bool shared;                      /* one for all panels, since all show the same links */
    unsigned panels, panel_height;    /* with the caption */
    unsigned height;                  /* of the picture */
};

static struct layout find_layout(const struct cli_sim_results *results, bool rates, unsigned panels)
{
    unsigned seen = 0, longest = 0, maximum = 0;
    uint64_t names = 0;
    struct layout layout = {.shared = true, .panels = panels};
    layout.panel_height = panels > 1 ? PANEL_HEIGHT : ALONE_HEIGHT;
    for (unsigned point = 0; point < cli_sim_points(results) && seen < panels; point++) {
        const struct cli_series_shape *shape = shape_of(cli_sim_result(results, point, 0), rates);
        if (!shape->columns)
            continue;
        layout.shared &= !seen++ || shape->names == names;
        names = shape->names;
        longest = shape->longest > longest ? shape->longest : longest;
        maximum = shape->columns > maximum ? shape->columns : maximum;
    }
    maximum = maximum < LINES_MAX ? maximum : LINES_MAX;
    /* One line needs its name, too. */
    layout.legend = cli_gnuplot_legend(RIGHT - LEFT, maximum > 1 ? maximum : 2, longest);
    unsigned panel = layout.panel_height + (layout.shared ? 0 : layout.legend.height);
    layout.height =
        TITLE_HEIGHT + panels * panel + AXIS_HEIGHT + (layout.shared ? layout.legend.height : 0);
    return layout;
}

/* Number n from the top: only the last has numbers and a name at its time axis, which all share. */
static void put_place(FILE *script, const struct layout *layout, unsigned n, const char *time_unit)
{
    bool last = n + 1 == layout->panels;
    unsigned legend = layout->legend.height;
    unsigned top =
        TITLE_HEIGHT + n * (layout->panel_height + (layout->shared ? 0 : legend)) + CAPTION_HEIGHT;
    unsigned bottom = top + layout->panel_height - CAPTION_HEIGHT;
    const struct cli_gnuplot_frame frame = {WIDTH, layout->height, LEFT, RIGHT, top, bottom};
    cli_gnuplot_frame(script, &frame);
    if (layout->shared && n)
        fputs("unset key\n", script);
    else
        cli_gnuplot_key(script, &frame, layout->legend,
                        layout->shared ? layout->height - legend : bottom + (last ? AXIS_HEIGHT : EDGE));
    if (last)
        fprintf(script, "set format x '%%g'\nset xlabel 'time (%s)'\n", time_unit);
    else
        fputs("set format x ''\n", script);
}

static void put_panel(FILE *script, const char *path, const struct cli_series_shape *shape,
                      struct axis_unit time, struct axis_unit value)
{
    for (unsigned i = 0; i < shape->columns && i < LINES_MAX; i++) {
        fputs(i ? ", \\\n     " : "plot ", script);
        cli_gnuplot_text(script, path);
        fprintf(script, " every %u using ($1*%g):($%u*%g) with lines linewidth 1.5 title columnheader(%u)",
                shape->rows / POINTS_MAX + 1, time.factor, i + 2, value.factor, i + 2);
    }
    fputc('\n', script);
}

static void put_panels(FILE *script, const struct cli_sim_results *results, const struct cli_folder *folder,
                       bool rates, const struct layout *layout)
{
    char label[CLI_POINT_LABEL_MAX], path[PATH_MAX], data[PATH_MAX + 16];
    unsigned panels = 0, drawn = 0;
    double span_s = 0, max = 0;
    find_extent(results, rates, &panels, &span_s, &max);
    struct axis_unit time = time_unit(span_s), value = value_unit(rates, max);
    fprintf(script, "set ylabel '%s (%s)'\nset xrange [0:%g]\nset yrange [0:%g]\n",
            rates ? "rate" : "queue", value.name, span_s * time.factor,
            max > 0 ? 1.08 * max * value.factor : 1);
    for (unsigned point = 0; point < cli_sim_points(results) && drawn < panels; point++) {
        const struct cli_sim_run *run = cli_sim_result(results, point, 0);
        if (!shape_of(run, rates)->columns)
            continue;
        if (results->plan->points > 1) {
            fputs("set title ", script);
            cli_gnuplot_text(script, cli_sim_plan_label(results->plan, point, label, sizeof label));
            fputs(" font \",13\" offset 0,-0.7\n", script);
        }
        put_place(script, layout, drawn++, time.name);
        cli_picture_path(folder, run, path, sizeof path);
        snprintf(data, sizeof data, "%s%s.csv", path, rates ? "rates" : "queues");
        put_panel(script, data, shape_of(run, rates), time, value);
    }
}

/* The title, also when only the first points, or links, are shown. */
static void make_title(const struct cli_sim_results *results, bool rates, unsigned panels, char *title)
{
    unsigned maximum = 0;
    cli_picture_title(results, panels, title);
    for (unsigned point = 0; point < cli_sim_points(results); point++) {
        const struct cli_series_shape *shape = shape_of(cli_sim_result(results, point, 0), rates);
        maximum = shape->columns > maximum ? shape->columns : maximum;
    }
    size_t used = strlen(title);
    if (maximum > LINES_MAX)
        snprintf(title + used, CLI_PICTURE_TITLE_MAX - used, " (the first %d of %u links)", LINES_MAX,
                 maximum);
}

/* queues.svg or rates.svg, one panel a point, with its script. CLI_PROCEED, or reports the cause. */
static int cli_picture_series(const struct cli_sim_results *results, const struct cli_folder *folder,
                              bool rates)
{
    const char *name = rates ? "rates.gp" : "queues.gp";
    unsigned panels = 0;
    double span_s = 0, max = 0;
    find_extent(results, rates, &panels, &span_s, &max);
    if (!panels)
        return CLI_PROCEED;
    FILE *script = cli_folder_open(folder, name);
    char title[CLI_PICTURE_TITLE_MAX];
    if (!script)
        return CLI_EXIT_FAILED;
    make_title(results, rates, panels, title);
    struct layout layout = find_layout(results, rates, panels);
    cli_gnuplot_start(script, rates ? "rates.svg" : "queues.svg", WIDTH, layout.height, title);
    fputs("set datafile separator ','\n", script);
    if (panels > 1) {
        fputs("set multiplot title ", script);
        cli_gnuplot_text(script, title);
        fputs(" font \",15\"\n", script);
    }
    put_panels(script, results, folder, rates, &layout);
    int status = cli_folder_close(folder, name, script);
    return status == CLI_PROCEED ? cli_gnuplot_run(folder, name, rates ? "rates.svg" : "queues.svg")
                                 : status;
}

/* ---- picture slowdowns ----------------------------------------------------------------------------- */

/* Of that many flows each has its step; of more there are quantiles: 1/250, 2/250, … and the last 1/250 again
 * in finer steps. */
#define STEPS      250
#define TAIL_STEPS 50
/* Fewer are no distribution. */
#define FLOWS_MIN 2
/* Nor more kinds of dashes. */
#define DASHES_MAX 3

/* In points. */
#define PICTURE_SLOWDOWNS_WIDTH 760
#define HEIGHT                  440
#define PICTURE_SLOWDOWNS_LEFT  75
#define PICTURE_SLOWDOWNS_RIGHT (PICTURE_SLOWDOWNS_WIDTH - 30)

/* The quantile of that share. */
static void put_quantile(FILE *out, const struct cli_class *group, double share)
{
    size_t count = (size_t)group->done, rank = (size_t)ceil(share * (double)count);
    rank = rank < count ? rank : count;
    rank -= rank > 0;
    fprintf(out, "%.9g %.6g %.6g\n", group->fct[rank], group->slowdown[rank], share);
}

static void put_class(FILE *out, const struct cli_class *group)
{
    char name[64];
    cli_class_format(group, name, sizeof name);
    fprintf(out, "# %s: completion time in s, slowdown, share of flows that are not above\n", name);
    unsigned steps = group->done < STEPS ? (unsigned)group->done : STEPS;
    for (unsigned i = 0; i < steps; i++)
        put_quantile(out, group, (double)i / steps);
    for (unsigned i = 0; i < TAIL_STEPS && group->done > STEPS; i++)
        put_quantile(out, group, 1 - 1.0 / STEPS + (double)i / TAIL_STEPS / STEPS);
    put_quantile(out, group, 1);
    fputs("\n\n", out);
}

int cli_picture_data(const struct cli_folder *folder, const struct cli_figures *figures)
{
    FILE *out = cli_folder_open(folder, "fct.dat");
    if (!out)
        return CLI_EXIT_FAILED;
    if (figures->all.done)
        put_class(out, &figures->all);
    for (unsigned i = 0; i < figures->classes_count; i++)
        if (figures->classes[i].done)
            put_class(out, &figures->classes[i]);
    return cli_folder_close(folder, "fct.dat", out);
}

/* One line of the plot; style: what follows, such as its colour. */
static void put_line(FILE *script, const char *path, unsigned index, const char *name, const char *style,
                     bool first)
{
    char data[PATH_MAX + 16];
    snprintf(data, sizeof data, "%sfct.dat", path);
    fputs(first ? "plot " : ", \\\n     ", script);
    cli_gnuplot_text(script, data);
    fprintf(script, " index %u using 2:3 with steps%s title ", index, style);
    cli_gnuplot_text(script, name);
}

/* One run: a line for each class of sizes. */
static void put_classes(FILE *script, const struct cli_sim_run *run, const struct cli_folder *folder)
{
    char name[64], path[PATH_MAX];
    const struct cli_figures *figures = &run->figures;
    unsigned filled = 0, index = 1;
    for (unsigned i = 0; i < figures->classes_count; i++)
        filled += figures->classes[i].done != 0;
    cli_picture_path(folder, run, path, sizeof path);
    put_line(script, path, 0, "all flows", "", true);
    for (unsigned i = 0; i < figures->classes_count && filled > 1; i++)
        if (figures->classes[i].done) {
            cli_class_format(&figures->classes[i], name, sizeof name);
            put_line(script, path, index++, name, "", false);
        }
    fputc('\n', script);
}

/* Of two keys, where the second has few values: a colour for each value of the first, and dashes for those of
 * the second, so that pairs are seen. */
static void find_style(const struct cli_sim_plan *plan, unsigned point, char *out, size_t size)
{
    unsigned faster = plan->axes_count == CLI_AXES_MAX ? plan->axes[1].count : 1;
    *out = 0;
    if (faster > 1 && faster <= DASHES_MAX)
        snprintf(out, size, " linetype %u dashtype %u", point / faster + 1, point % faster + 1);
}

/* A sweep: a line for each point. */
static void put_points(FILE *script, const struct cli_sim_results *results, const struct cli_folder *folder)
{
    char name[CLI_POINT_LABEL_MAX], path[PATH_MAX], style[48];
    bool first = true;
    for (unsigned point = 0; point < cli_sim_points(results) && point < LINES_MAX; point++) {
        const struct cli_sim_run *run = cli_sim_result(results, point, 0);
        if (!run->figures.all.done)
            continue;
        cli_picture_path(folder, run, path, sizeof path);
        find_style(results->plan, point, style, sizeof style);
        put_line(script, path, 0, cli_sim_plan_label(results->plan, point, name, sizeof name), style,
                 first);
        first = false;
    }
    fputc('\n', script);
}

/* Whether any run has flows enough for a distribution, and the largest slowdown. */
static bool largest_slowdown(const struct cli_sim_results *results, double *largest)
{
    bool any = false;
    *largest = 1;
    for (unsigned point = 0; point < cli_sim_points(results); point++) {
        const struct cli_class *all = &cli_sim_result(results, point, 0)->figures.all;
        any |= all->done >= FLOWS_MIN;
        if (all->done && all->slowdown_max > *largest)
            *largest = all->slowdown_max;
    }
    return any;
}

/* Of the lines: classes of a run, or points. */
static struct cli_gnuplot_legend slowdown_legend(const struct cli_sim_results *results)
{
    char name[CLI_POINT_LABEL_MAX > 64 ? CLI_POINT_LABEL_MAX : 64];
    const struct cli_figures *figures = &results->runs[0].figures;
    unsigned entries = 0, longest = 0;
    bool sweep = results->plan->points > 1;
    unsigned maximum = sweep ? cli_sim_points(results) : figures->classes_count;
    for (unsigned i = 0; i < maximum && entries < LINES_MAX; i++) {
        if (!(sweep ? cli_sim_result(results, i, 0)->figures.all.done : figures->classes[i].done))
            continue;
        if (sweep)
            cli_sim_plan_label(results->plan, i, name, sizeof name);
        else
            cli_class_format(&figures->classes[i], name, sizeof name);
        entries++;
        longest = strlen(name) > longest ? (unsigned)strlen(name) : longest;
    }
    /* With classes there are all flows, too. */
    return cli_gnuplot_legend(PICTURE_SLOWDOWNS_RIGHT - PICTURE_SLOWDOWNS_LEFT,
                              entries + (!sweep && entries > 1), longest);
}

static void put_slowdown_axes(FILE *script, double largest)
{
    fputs("set xlabel 'slowdown: completion time / completion time in an empty network'\n"
          "set ylabel 'share of flows (cumulative)'\n"
          "set yrange [0:1]\n"
          "set format y '%.1f'\n",
          script);
    if (largest > 10)
        fputs("set logscale x\n"
              "set xtics (1,2,5,10,20,50,100,200,500,1000,'10⁴' 1e4,'10⁵' 1e5,'10⁶' 1e6,'10⁷' 1e7)\n",
              script);
    if (largest < 1.01)
        fputs("set xrange [0.9:1.1]\n", script);
    else
        fprintf(script, "set xrange [%s:%.6g]\n", largest > 10 ? "0.9" : "*", largest * 1.05);
}

/* fct.svg, with its script fct.gp, which stays where gnuplot fails. CLI_PROCEED, or reports the cause. */
static int cli_picture_slowdowns(const struct cli_sim_results *results, const struct cli_folder *folder)
{
    double largest = 1;
    FILE *script = largest_slowdown(results, &largest) ? cli_folder_open(folder, "fct.gp") : NULL;
    if (!script)
        return CLI_PROCEED;
    char title[CLI_PICTURE_TITLE_MAX];
    unsigned points = cli_sim_points(results);
    struct cli_gnuplot_legend legend = slowdown_legend(results);
    const struct cli_gnuplot_frame frame = {PICTURE_SLOWDOWNS_WIDTH,
                                            HEIGHT + legend.height,
                                            PICTURE_SLOWDOWNS_LEFT,
                                            PICTURE_SLOWDOWNS_RIGHT,
                                            50,
                                            HEIGHT - 60};
    cli_picture_title(results, points < LINES_MAX ? points : LINES_MAX, title);
    cli_gnuplot_start(script, "fct.svg", frame.width, frame.height, title);
    put_slowdown_axes(script, largest);
    cli_gnuplot_frame(script, &frame);
    cli_gnuplot_key(script, &frame, legend, HEIGHT);
    if (results->plan->points > 1)
        put_points(script, results, folder);
    else
        put_classes(script, &results->runs[0], folder);
    int status = cli_folder_close(folder, "fct.gp", script);
    return status == CLI_PROCEED ? cli_gnuplot_run(folder, "fct.gp", "fct.svg") : status;
}

/* ---- picture sweep --------------------------------------------------------------------------------- */

/*
 * Sweep.svg: figures over the values of the swept keys.
 *
 * Sweep.svg: figures over the values of the first key that is swept, a line for each value of the second.
 */

/* Between the largest and the smallest value: from here on the axis is logarithmic. */
#define LOG_FROM 40

/* In points: two panels side by side are as wide as pages show a picture. */
#define PANEL_WIDTH                430
#define ALONE_WIDTH                640
#define PLOT_HEIGHT                230
#define PICTURE_SWEEP_TITLE_HEIGHT 45
#define PICTURE_SWEEP_AXIS_HEIGHT  75
#define NAMELESS_HEIGHT            45
#define PICTURE_SWEEP_RIGHT        20

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
    double minimum = INFINITY, maximum = 0, half = 0;
    struct scale scale = {"", 1, false};
    for (unsigned point = 0; point < cli_sim_points(results); point++) {
        double value = cli_sim_mean(results, point, figure, &half);
        if (isfinite(value)) {
            minimum = value < minimum ? value : minimum;
            maximum = value > maximum ? value : maximum;
        }
    }
    scale.logarithmic = minimum > 0 && maximum / minimum > LOG_FROM;
    switch (cli_figure_infos[figure].unit) {
    case CLI_UNIT_SECONDS:
        scale.unit = maximum < 2e-3 ? "µs" : maximum < 2 ? "ms" : "s";
        scale.factor = maximum < 2e-3 ? 1e6 : maximum < 2 ? 1e3 : 1;
        break;
    case CLI_UNIT_BPS:
        scale.unit = maximum < 2e12 ? "Gbit/s" : "Tbit/s";
        scale.factor = maximum < 2e12 ? 1e-9 : 1e-12;
        break;
    case CLI_UNIT_BYTES:
        scale.unit = maximum < 2 * MIB ? "KiB" : "MiB";
        scale.factor = maximum < 2 * MIB ? 1 / KIB : 1 / MIB;
        break;
    case CLI_UNIT_PER_S:
        scale.unit = "M/s";
        scale.factor = 1e-6;
        break;
    case CLI_UNIT_NONE:
        scale.unit = maximum < 1e6 ? "" : "millions";
        scale.factor = maximum < 1e6 ? 1 : 1e-6;
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
    double minimum, maximum,
        step; /* of numbers; step: between two, in the mean; a factor, if logarithmic */
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
    axis.minimum = sorted[0];
    axis.maximum = sorted[values->count - 1];
    axis.numbers = nearest > 0;
    axis.logarithmic =
        axis.minimum > 0 && nearest < CROWDED * (axis.maximum - axis.minimum) / (values->count - 1);
    axis.step = axis.logarithmic ? pow(axis.maximum / axis.minimum, 1.0 / (values->count - 1))
                                 : (axis.maximum - axis.minimum) / (values->count - 1);
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
        fprintf(script, "set logscale x\nset xrange [%.9g:%.9g]\n", axis->minimum / sqrt(axis->step),
                axis->maximum * sqrt(axis->step));
    else if (axis->numbers)
        fprintf(script, "set xrange [%.9g:%.9g]\n", axis->minimum - axis->step / 2,
                axis->maximum + axis->step / 2);
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
struct picture_sweep_layout {
    struct cli_gnuplot_legend legend;
    unsigned across, width, height, row_height, axis_height;
};

static struct picture_sweep_layout picture_sweep_find_layout(const struct cli_sim_plan *plan)
{
    unsigned panels = plan->output.panels_count, lines = lines_of(plan), longest = 0;
    if (lines > 1)
        longest =
            (unsigned)strlen(cli_sim_plan_short(plan->axes[1].key)) + 1 + longest_value(&plan->axes[1]);
    struct picture_sweep_layout picture_sweep_layout = {.across = panels > 1 ? 2 : 1};
    picture_sweep_layout.width = panels > 1 ? 2 * PANEL_WIDTH : ALONE_WIDTH;
    /* Slanted values reach down by half of their length. */
    picture_sweep_layout.axis_height =
        (has_name(&plan->axes[0]) ? PICTURE_SWEEP_AXIS_HEIGHT : NAMELESS_HEIGHT) +
        (is_slanted(&plan->axes[0]) ? longest_value(&plan->axes[0]) * 4 : 0);
    picture_sweep_layout.row_height = PLOT_HEIGHT + picture_sweep_layout.axis_height;
    picture_sweep_layout.legend = cli_gnuplot_legend(
        picture_sweep_layout.width / picture_sweep_layout.across - LEFT - PICTURE_SWEEP_RIGHT, lines,
        longest);
    picture_sweep_layout.height = PICTURE_SWEEP_TITLE_HEIGHT +
                                  (panels + picture_sweep_layout.across - 1) / picture_sweep_layout.across *
                                      picture_sweep_layout.row_height +
                                  picture_sweep_layout.legend.height;
    return picture_sweep_layout;
}

static void picture_sweep_put_place(FILE *script, const struct picture_sweep_layout *picture_sweep_layout,
                                    unsigned panel)
{
    unsigned across = picture_sweep_layout->width / picture_sweep_layout->across;
    unsigned left = panel % picture_sweep_layout->across * across,
             top = panel / picture_sweep_layout->across * picture_sweep_layout->row_height;
    const struct cli_gnuplot_frame frame = {
        .width = picture_sweep_layout->width,
        .height = picture_sweep_layout->height,
        .left = left + LEFT,
        .right = left + across - PICTURE_SWEEP_RIGHT,
        .top = top + PICTURE_SWEEP_TITLE_HEIGHT,
        .bottom = top + PICTURE_SWEEP_TITLE_HEIGHT + PLOT_HEIGHT,
    };
    cli_gnuplot_frame(script, &frame);
    if (panel)
        fputs("unset key\n", script);
    else
        cli_gnuplot_key(script, &frame, picture_sweep_layout->legend,
                        picture_sweep_layout->height - picture_sweep_layout->legend.height);
}

static void picture_sweep_put_panel(FILE *script, const struct cli_sim_results *results, unsigned panel)
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
    struct picture_sweep_layout picture_sweep_layout = picture_sweep_find_layout(plan);
    const struct axis axis = axis_of(&plan->axes[0]);
    FILE *script = cli_folder_open(folder, "sweep.gp");
    if (!script)
        return CLI_EXIT_FAILED;
    cli_gnuplot_start(script, "sweep.svg", picture_sweep_layout.width, picture_sweep_layout.height,
                      results->title);
    fputs("set multiplot title ", script);
    cli_gnuplot_text(script, results->title);
    fputs(" font \",15\"\nunset title\n", script);
    if (has_name(&plan->axes[0]))
        fprintf(script, "set xlabel '%s'\n", plan->axes[0].key);
    fputs("set grid noxtics\nset xtics scale 0\n", script);
    put_tics(script, &plan->axes[0], &axis);
    for (unsigned panel = 0; panel < plan->output.panels_count; panel++) {
        picture_sweep_put_place(script, &picture_sweep_layout, panel);
        picture_sweep_put_panel(script, results, panel);
    }
    return cli_folder_close(folder, "sweep.gp", script);
}

/* sweep.svg, one panel a figure, with its script. CLI_PROCEED, or reports the cause. */
static int cli_picture_sweep(const struct cli_sim_results *results, const struct cli_folder *folder)
{
    int status = put_data(results, folder);
    if (status == CLI_PROCEED)
        status = put_script(results, folder);
    return status == CLI_PROCEED ? cli_gnuplot_run(folder, "sweep.gp", "sweep.svg") : status;
}

/* ---- pictures -------------------------------------------------------------------------------------- */

int cli_pictures(const struct cli_sim_results *results, const struct cli_folder *folder)
{
    /* One that fails does not keep the others, or their scripts, from being there. */
    const int statuses[] = {
        cli_picture_slowdowns(results, folder),
        cli_picture_series(results, folder, false),
        cli_picture_series(results, folder, true),
        results->plan->points > 1 ? cli_picture_sweep(results, folder) : CLI_PROCEED,
    };
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        if (statuses[i] != CLI_PROCEED)
            return statuses[i];
    return CLI_PROCEED;
}
