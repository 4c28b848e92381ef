/*
 * plan_picture.c - the map of longhaul plan as a picture.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plan_map.h"

#include "folder.h"
#include "gnuplot.h"
#include "say.h"

#include <longhaul/units.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#define CELL_WIDTH  92
#define CELL_HEIGHT 46
/* What stands around the cells. */
#define AROUND_WIDTH  220
#define AROUND_HEIGHT 150

/* The colours of a speed-up of 1/4 and less, and of 4 and more. */
#define COLOURS_TO 4

static bool ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length > end_length && !strcmp(text + length - end_length, end);
}

int cli_plan_picture_check(const char *path)
{
    if (!ends_in(path, ".svg") && !ends_in(path, ".png"))
        return cli_misused("--output: \"%s\" does not say what picture it is; end it in .svg or .png",
                           path);
    return CLI_PROCEED;
}

/* "a/b.svg" to the folder a, and the names b.svg and b.gp in it. */
static int split(const char *path, struct cli_folder *folder, const char **picture, char *script,
                 size_t size)
{
    const char *slash = strrchr(path, '/');
    *picture = slash ? slash + 1 : path;
    if (snprintf(folder->path, sizeof folder->path, "%.*s",
                 slash ? (int)(slash - path) + (slash == path) : 1,
                 slash ? path : ".") >= (int)sizeof folder->path)
        return cli_misused("--output: the path is too long");
    if (snprintf(script, size, "%.*s.gp", (int)strlen(*picture) - 4, *picture) >= (int)size)
        return cli_misused("--output: \"%s\" is too long a name", *picture);
    return cli_folder_check(folder);
}

/* Column, row, speed-up, and two lines of text. */
static void put_data(FILE *script, const struct cli_plan_cells *cells)
{
    fputs("$map << EOD\n", script);
    for (unsigned i = 0; i < cells->sizes * cells->losses; i++) {
        const struct cli_plan_cell *cell = &cells->cell[i];
        double colour = fmax(-1, fmin(1, log(cell->speedup) / log(COLOURS_TO)));
        fprintf(script, "%u %u %.6g %.6g \"%s\"\n", i % cells->losses, i / cells->losses, colour,
                cell->speedup, cell->use);
    }
    fputs("EOD\n", script);
}

static void put_axes(FILE *script, const struct cli_plan_order *order)
{
    char size[LH_FORMAT_MAX];
    fputs("set xtics (", script);
    for (unsigned i = 0; i < order->losses.count; i++)
        fprintf(script, "%s'%g' %u", i ? ", " : "", order->losses.ratio[i], i);
    fputs(")\nset ytics (", script);
    for (unsigned i = 0; i < order->sizes.count; i++)
        fprintf(script, "%s'%s' %u", i ? ", " : "",
                lh_format_size(order->sizes.bytes[i], size, sizeof size), i);
    fprintf(script,
            ")\nunset grid\nunset key\nset xrange [-0.5:%g]\nset yrange [-0.5:%g]\n"
            "set xlabel 'share of %s lost'\nset ylabel 'message'\n",
            order->losses.count - 0.5, order->sizes.count - 0.5,
            order->question.link.loss_of_chunk ? "chunks" : "packets");
}

static void put_script(FILE *script, const struct cli_plan_order *order, const struct cli_plan_cells *cells,
                       const char *picture)
{
    char title[192], rate[LH_FORMAT_MAX], rtt[LH_FORMAT_MAX];
    const struct lh_model_path *link = &order->question.link;
    snprintf(title, sizeof title,
             "ec:mds (32, 8) against sr-rto at %s and %s, by %s: speed-up, and what to use",
             lh_format_rate(link->bandwidth_bps, rate, sizeof rate),
             lh_format_time(link->rtt_s, rtt, sizeof rtt), order->by);
    cli_gnuplot_start(script, picture, AROUND_WIDTH + CELL_WIDTH * cells->losses,
                      AROUND_HEIGHT + CELL_HEIGHT * cells->sizes, title);
    put_data(script, cells);
    put_axes(script, order);
    fprintf(script,
            "set palette defined (-1 '#4a78b8', 0 '#f7f7f7', 1 '#d0603c')\n"
            "set cbrange [-1:1]\n"
            "set cbtics ('1/%d' -1, '1/2' -0.5, '1' 0, '2' 0.5, '%d' 1)\n"
            "set cblabel 'speed-up'\n"
            "plot $map using 1:2:3 with image pixels, \\\n"
            "     '' using 1:($2+0.16):(sprintf('%%.2f', $4)) with labels font ',13', \\\n"
            "     '' using 1:($2-0.2):5 with labels font ',10'\n",
            COLOURS_TO, COLOURS_TO);
}

int cli_plan_picture(const struct cli_plan_order *order, const struct cli_plan_cells *cells)
{
    struct cli_folder folder;
    const char *picture;
    char name[NAME_MAX + 1];
    if (split(order->output, &folder, &picture, name, sizeof name) != CLI_PROCEED)
        return CLI_EXIT_FAILED;
    FILE *script = cli_folder_open(&folder, name);
    if (!script)
        return CLI_EXIT_FAILED;
    put_script(script, order, cells, picture);
    int status = cli_folder_close(&folder, name, script);
    return status == CLI_PROCEED ? cli_gnuplot_run(&folder, name, picture) : status;
}
