/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/plan/paper_figures.h"

#include "cli/options/loss_list.h"
#include "cli/options/size_list.h"
#include "cli/plan/map.h"
#include "cli/plan/order.h"
#include "cli/plan/paper_figure_list.h"
#include "cli/plan/paper_figure_value.h"
#include "cli/results/folder.h"
#include "cli/results/gnuplot.h"
#include "cli/results/result_file.h"
#include "cli/terminal/diagnostic.h"

#include <longhaul/error.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#define WIDTH  720
#define HEIGHT 420
#define LEFT   80
#define RIGHT  (WIDTH - 30)

/* Of the map's picture and script. */
#define MAP "figure9"

/* No loss of a figure is below 10 to this. */
#define LOSS_DECADES_FROM (-8)

/* Names of a figure's files. */
struct names {
    char data[64], script[64], picture[64];
};

static struct names names_of(const struct cli_paper_figure *figure)
{
    struct names names;
    snprintf(names.data, sizeof names.data, "%s.dat", figure->name);
    snprintf(names.script, sizeof names.script, "%s.gp", figure->name);
    snprintf(names.picture, sizeof names.picture, "%s.svg", figure->name);
    return names;
}

/* x, then a column for each curve. */
static int put_values(const struct cli_paper_figure *figure, FILE *out)
{
    fputs("# x", out);
    for (const struct cli_paper_curve *curve = figure->curves; curve->name; curve++)
        fprintf(out, "; %s", curve->name);
    fputc('\n', out);
    unsigned steps = (unsigned)floor(log(figure->to / figure->from) / log(figure->step) + 1e-6);
    for (unsigned i = 0; i <= steps; i++) {
        double x = figure->from * pow(figure->step, i);
        fprintf(out, "%.9g", x);
        for (const struct cli_paper_curve *curve = figure->curves; curve->name; curve++) {
            double value = 0;
            if (cli_paper_figure_value(figure, curve, x, &value))
                return cli_failed("%s: %s", figure->name, lh_last_error());
            fprintf(out, " %.6g", value);
        }
        fputc('\n', out);
    }
    return CLI_PROCEED;
}

static void put_axes(const struct cli_paper_figure *figure, FILE *script)
{
    static const char *const x_axes[] = {
        [CLI_X_SIZE] = "set xlabel 'message size'\nset logscale x 2\n"
                       "set xtics ('128 KiB' 2**17, '1 MiB' 2**20, '16 MiB' 2**24, '128 MiB' 2**27, "
                       "'1 GiB' 2**30, '8 GiB' 2**33, '64 GiB' 2**36, '1 TiB' 2**40)\n",
        [CLI_X_LOSS] = "set xlabel 'share of packets lost'\nset logscale x\n",
        [CLI_X_KM] = "set xlabel 'distance (km)'\nset logscale x\n"
                     "set xtics (100, 200, 500, 1000, 2000, 5000, 10000)\n",
        [CLI_X_PACKETS] = "set xlabel 'chunk size (packets)'\nset logscale x 2\n",
    };
    static const char *const y_axes[] = {
        [CLI_Y_SECONDS] = "set ylabel 'completion time (s)'\nset logscale y\n"
                          "set ytics (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)\n",
        [CLI_Y_TIMES_IDEAL] = "set ylabel 'completion time / ideal'\nset yrange [0:*]\n",
        [CLI_Y_ALLREDUCE] = "set ylabel 'time of SR RTO / time of MDS(32, 8)'\nset yrange [0:*]\n",
        [CLI_Y_CHUNK_LOSS] = "set ylabel 'share of chunks lost'\nset logscale y\n",
    };
    fputs(x_axes[figure->x], script);
    fputs(y_axes[figure->y], script);
    if (figure->x == CLI_X_LOSS)
        cli_gnuplot_decades(script, "x", LOSS_DECADES_FROM, 0);
    if (figure->y == CLI_Y_CHUNK_LOSS)
        cli_gnuplot_decades(script, "y", LOSS_DECADES_FROM, 0);
    fputs("set autoscale xfix\n", script);
}

static struct cli_gnuplot_legend legend_of(const struct cli_paper_figure *figure)
{
    unsigned entries = 0, longest = 0;
    for (const struct cli_paper_curve *curve = figure->curves; curve->name; curve++, entries++)
        longest = strlen(curve->name) > longest ? (unsigned)strlen(curve->name) : longest;
    return cli_gnuplot_legend(RIGHT - LEFT, entries, longest);
}

static void put_script(const struct cli_paper_figure *figure, const struct names *names, FILE *script)
{
    unsigned column = 2;
    struct cli_gnuplot_legend legend = legend_of(figure);
    const struct cli_gnuplot_frame frame = {WIDTH, HEIGHT + legend.height, LEFT, RIGHT, 50, HEIGHT - 60};
    cli_gnuplot_start(script, names->picture, frame.width, frame.height, figure->title);
    put_axes(figure, script);
    cli_gnuplot_frame(script, &frame);
    cli_gnuplot_key(script, &frame, legend, HEIGHT);
    for (const struct cli_paper_curve *curve = figure->curves; curve->name; curve++, column++) {
        fprintf(script, "%s'%s' using 1:%u with linespoints title ", column > 2 ? ", \\\n     " : "plot ",
                names->data, column);
        cli_gnuplot_text(script, curve->name);
    }
    fputc('\n', script);
}

static int draw(const struct cli_paper_figure *figure, const struct cli_folder *folder)
{
    struct names names = names_of(figure);
    FILE *out = cli_folder_open(folder, names.data);
    if (!out)
        return CLI_EXIT_FAILED;
    int status = put_values(figure, out);
    if (status != CLI_PROCEED) {
        cli_result_drop(out);
        return status;
    }
    status = cli_folder_close(folder, names.data, out);
    out = status == CLI_PROCEED ? cli_folder_open(folder, names.script) : NULL;
    if (!out)
        return CLI_EXIT_FAILED;
    put_script(figure, &names, out);
    status = cli_folder_close(folder, names.script, out);
    if (status == CLI_PROCEED)
        status = cli_gnuplot_run(folder, names.script, names.picture);
    if (status == CLI_PROCEED)
        printf("%s/%s\n", folder->path, names.picture);
    return status;
}

/* Nobody's but ours may be in their way. */
static int check_names(const struct cli_folder *folder, const char *what)
{
    if (cli_folder_is_marked(folder))
        return CLI_PROCEED;
    int status = cli_folder_vacant(folder, what, MAP ".gp");
    if (status == CLI_PROCEED)
        status = cli_folder_vacant(folder, what, MAP ".svg");
    for (const struct cli_paper_figure *figure = cli_paper_figures; figure->name; figure++) {
        struct names names = names_of(figure);
        const char *const each[] = {names.data, names.script, names.picture};
        for (size_t i = 0; i < sizeof each / sizeof each[0] && status == CLI_PROCEED; i++)
            status = cli_folder_vacant(folder, what, each[i]);
    }
    return status;
}

/* The map, as "longhaul plan --map --output" draws it. */
static int draw_map(const struct cli_folder *folder)
{
    char path[PATH_MAX + 16];
    struct cli_plan_order order = {
        .loss_low = NAN, .allow_loss = NAN, .by = "mean", .map = true, .output = path};
    lh_plan_init(&order.question);
    order.question.timing = LH_MODEL_TIMING_PAPER;
    order.question.link.bandwidth_bps = 400e9;
    order.question.link.rtt_s = 0.025;
    snprintf(path, sizeof path, "%s/" MAP ".svg", folder->path);
    int status = cli_loss_list_parse("loss", CLI_PLAN_MAP_LOSSES, &order.losses);
    if (status == CLI_PROCEED)
        status = cli_size_list_parse("size", CLI_PLAN_MAP_SIZES, UINT64_MAX, &order.sizes);
    if (status == CLI_PROCEED)
        status = cli_plan_map(&order);
    if (status == CLI_PROCEED)
        printf("%s\n", path);
    return status;
}

int cli_paper_figures_draw(const char *path)
{
    struct cli_folder folder;
    int status = cli_folder_make(&folder, "--figures ", path);
    if (status == CLI_PROCEED)
        status = check_names(&folder, "--figures ");
    if (status == CLI_PROCEED)
        status = cli_folder_mark(&folder);
    if (status != CLI_PROCEED)
        return status;
    status = draw_map(&folder);
    /* All data and scripts are written, also where there is no gnuplot for the pictures. */
    for (const struct cli_paper_figure *figure = cli_paper_figures; figure->name; figure++) {
        int drawn = draw(figure, &folder);
        status = status == CLI_PROCEED ? drawn : status;
    }
    return status;
}
