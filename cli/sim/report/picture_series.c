/*
 * picture_series.c - queues.svg and rates.svg: what queues and rates of links did over time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/sim/report/picture_series.h"

#include "cli/results/gnuplot.h"
#include "cli/sim/report/picture_text.h"
#include "cli/terminal/diagnostic.h"

#include <string.h>

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
    unsigned seen = 0, longest = 0, most = 0;
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
        most = shape->columns > most ? shape->columns : most;
    }
    most = most < LINES_MAX ? most : LINES_MAX;
    /* One line needs its name, too. */
    layout.legend = cli_gnuplot_legend(RIGHT - LEFT, most > 1 ? most : 2, longest);
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
    unsigned most = 0;
    cli_picture_title(results, panels, title);
    for (unsigned point = 0; point < cli_sim_points(results); point++) {
        const struct cli_series_shape *shape = shape_of(cli_sim_result(results, point, 0), rates);
        most = shape->columns > most ? shape->columns : most;
    }
    size_t used = strlen(title);
    if (most > LINES_MAX)
        snprintf(title + used, CLI_PICTURE_TITLE_MAX - used, " (the first %d of %u links)", LINES_MAX,
                 most);
}

int cli_picture_series(const struct cli_sim_results *results, const struct cli_folder *folder, bool rates)
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
