/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/report/picture_slowdowns.h"

#include "cli/results/gnuplot.h"
#include "cli/sim/report/picture_text.h"
#include "cli/terminal/diagnostic.h"

#include <math.h>
#include <string.h>

/* Of that many flows each has its step; of more there are quantiles: 1/250, 2/250, … and the last 1/250 again
 * in finer steps. */
#define STEPS      250
#define TAIL_STEPS 50
/* Fewer are no distribution. */
#define FLOWS_MIN 2
/* More lines cannot be distinguished. */
#define LINES_MAX 12
/* Nor more kinds of dashes. */
#define DASHES_MAX 3

/* In points. */
#define WIDTH  760
#define HEIGHT 440
#define LEFT   75
#define RIGHT  (WIDTH - 30)

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
    unsigned most = sweep ? cli_sim_points(results) : figures->classes_count;
    for (unsigned i = 0; i < most && entries < LINES_MAX; i++) {
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
    return cli_gnuplot_legend(RIGHT - LEFT, entries + (!sweep && entries > 1), longest);
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

int cli_picture_slowdowns(const struct cli_sim_results *results, const struct cli_folder *folder)
{
    double largest = 1;
    FILE *script = largest_slowdown(results, &largest) ? cli_folder_open(folder, "fct.gp") : NULL;
    if (!script)
        return CLI_PROCEED;
    char title[CLI_PICTURE_TITLE_MAX];
    unsigned points = cli_sim_points(results);
    struct cli_gnuplot_legend legend = slowdown_legend(results);
    const struct cli_gnuplot_frame frame = {WIDTH, HEIGHT + legend.height, LEFT, RIGHT, 50, HEIGHT - 60};
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
