/*
 * sim_picture_series.c - queues.svg and rates.svg: what queues and rates of links did over time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sim_picture.h"

#include "gnuplot.h"
#include "options.h"
#include "say.h"

#include <string.h>

/* Lines of a panel, panels of a picture, and points of a line that anybody could tell apart. */
#define LINES_MAX  12
#define PANELS_MAX 8
#define POINTS_MAX 2000

#define PANEL_HEIGHT 230
#define KIB          1024.0
#define MIB          1048576.0
#define TITLE_HEIGHT 65

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
                       bool rates)
{
    char label[CLI_POINT_LABEL_MAX], path[PATH_MAX], data[PATH_MAX + 16];
    unsigned panels = 0, drawn = 0;
    double span_s = 0, max = 0;
    find_extent(results, rates, &panels, &span_s, &max);
    struct axis_unit time = time_unit(span_s), value = value_unit(rates, max);
    fprintf(script, "set ylabel '%s, %s'\nset xrange [0:%g]\nset yrange [0:%g]\n",
            rates ? "rate" : "waiting", value.name, span_s * time.factor,
            max > 0 ? 1.08 * max * value.factor : 1);
    for (unsigned point = 0; point < cli_sim_points(results) && drawn < panels; point++) {
        const struct cli_sim_run *run = cli_sim_result(results, point, 0);
        if (!shape_of(run, rates)->columns)
            continue;
        if (results->plan->points > 1) {
            fputs("set title ", script);
            cli_gnuplot_text(script, cli_sim_plan_label(results->plan, point, label, sizeof label));
            fputs(" font \",13\"\n", script);
        }
        if (++drawn == panels)
            fprintf(script, "set xlabel 'time, %s'\n", time.name);
        cli_picture_path(folder, run, path, sizeof path);
        snprintf(data, sizeof data, "%s%s.csv", path, rates ? "rates" : "queues");
        put_panel(script, data, shape_of(run, rates), time, value);
    }
}

/* What the title says: also when only the first points, or links, are shown. */
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
    cli_gnuplot_start(script, rates ? "rates.svg" : "queues.svg", 820,
                      panels > 1 ? panels * PANEL_HEIGHT + TITLE_HEIGHT : 420, title);
    fputs("set datafile separator ','\nset key outside right top\n", script);
    if (panels > 1) {
        double height = panels * PANEL_HEIGHT + TITLE_HEIGHT;
        fprintf(script,
                "set multiplot layout %u,1 margins screen 0.095,0.78,%g,%g spacing screen 0,%g title ",
                panels, 60 / height, 1 - 80 / height, 75 / height);
        cli_gnuplot_text(script, title);
        fputs(" font \",15\"\n", script);
    }
    put_panels(script, results, folder, rates);
    int status = cli_folder_close(folder, name, script);
    return status == CLI_PROCEED ? cli_gnuplot_run(folder, name, rates ? "rates.svg" : "queues.svg")
                                 : status;
}
