/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/plan/plan_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <longhaul/error.h>
#include <longhaul/model.h>
#include <longhaul/units.h>

#include "cli/results/gnuplot.h"
#include "cli/results/result_file.h"
#include "cli/terminal/terminal.h"

/* ---- map cells ------------------------------------------------------------------------------------- */

/* Sizes over losses: the speed-up of erasure codes over selective repeat, and what to use. */

struct cli_plan_cell {
    double speedup;                     /* of ec:mds (32, 8) over sr-rto, by what was asked for */
    struct lh_model_scheme scheme;      /* what to use; an ideal one where nothing keeps to the limits */
    char use[LH_MODEL_SCHEME_TEXT_MAX]; /* the same as text, short: "mds 32+8", "sr-nack", "-" */
};

/* Rows are sizes, columns losses; largest size last. */
struct cli_plan_cells {
    unsigned sizes, losses;
    struct cli_plan_cell *cell; /* [size * losses + loss] */
};

/* ---- map picture ----------------------------------------------------------------------------------- */

/*
 * The map as a picture, by gnuplot.
 *
 * The map of longhaul plan as a picture.
 */

#define CELL_WIDTH  85
#define CELL_HEIGHT 46
/* Around the cells: a title needs more width than few cells have. */
#define AROUND_WIDTH  220
#define AROUND_HEIGHT 150
#define WIDTH_MIN     760

/* As on the terminal: faster is green, slower red; light enough for the text on it. */
struct colour {
    double red, green, blue;
};
static const struct colour faster = {0x4c, 0xaf, 0x78}, same = {0xf7, 0xf7, 0xf7},
                           slower = {0xd8, 0x60, 0x4c};

/* Of the scale, as powers of two: it reaches the smallest and the largest speed-up. */
struct extent {
    int from, to;
};

static bool ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length > end_length && !strcmp(text + length - end_length, end);
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
        return cli_misused("--output: path too long");
    if (snprintf(script, size, "%.*s.gp", (int)strlen(*picture) - 4, *picture) >= (int)size)
        return cli_misused("--output %s: name too long", *picture);
    return cli_folder_check(folder);
}

/* Nobody gave its name: it takes the place of scripts of ours only. */
static int check_script(const char *path, const struct cli_folder *folder, const char *script)
{
    char whole[PATH_MAX + NAME_MAX + 2];
    snprintf(whole, sizeof whole, "%s/%s", folder->path, script);
    if (cli_gnuplot_is_script(whole))
        return CLI_PROCEED;
    return cli_misused(
        "--output %s: its script %s would replace a file that is not longhaul's (use another name)", path,
        script);
}

/* Whether the name of the picture has a known format, and its script is in nobody's way: CLI_PROCEED, or
 * reports the cause. */
static int cli_plan_picture_check(const char *path)
{
    struct cli_folder folder;
    const char *picture;
    char script[NAME_MAX + 1];
    if (!ends_in(path, ".svg") && !ends_in(path, ".png"))
        return cli_misused("--output %s: unknown picture format (use .svg or .png)", path);
    int status = split(path, &folder, &picture, script, sizeof script);
    return status == CLI_PROCEED ? check_script(path, &folder, script) : status;
}

static struct extent find_extent(const struct cli_plan_cells *cells)
{
    struct extent extent = {-1, 1};
    for (unsigned i = 0; i < cells->sizes * cells->losses; i++) {
        double speedup = log2(cells->cell[i].speedup);
        if (speedup < extent.from)
            extent.from = (int)floor(speedup);
        if (speedup > extent.to)
            extent.to = (int)ceil(speedup);
    }
    return extent;
}

/* Column, row, the logarithm of the speed-up, the speed-up, and what to use. */
static void put_data(FILE *script, const struct cli_plan_cells *cells)
{
    fputs("$map << EOD\n", script);
    for (unsigned i = 0; i < cells->sizes * cells->losses; i++) {
        const struct cli_plan_cell *cell = &cells->cell[i];
        fprintf(script, "%u %u %.6g %.6g \"%s\"\n", i % cells->losses, i / cells->losses,
                log2(cell->speedup), cell->speedup, cell->use);
    }
    fputs("EOD\n", script);
}

static void put_axes(FILE *script, const struct cli_plan_order *order)
{
    char size[LH_FORMAT_MAX], loss[CLI_GNUPLOT_NUMBER_MAX];
    fputs("set xtics (", script);
    for (unsigned i = 0; i < order->losses.count; i++)
        fprintf(script, "%s'%s' %u", i ? ", " : "", cli_gnuplot_number(order->losses.ratio[i], loss), i);
    fputs(")\nset ytics (", script);
    for (unsigned i = 0; i < order->sizes.count; i++)
        fprintf(script, "%s'%s' %u", i ? ", " : "",
                lh_format_size(order->sizes.bytes[i], size, sizeof size), i);
    fprintf(script,
            ")\nunset grid\nunset key\nset xrange [-0.5:%g]\nset yrange [-0.5:%g]\n"
            "set xlabel 'share of %s lost'\nset ylabel 'message size'\n",
            order->losses.count - 0.5, order->sizes.count - 0.5,
            order->question.link.loss_of_chunk ? "chunks" : "packets");
}

/* The colour at that share of the way from no difference to the strongest of the scale. */
static void put_colour(FILE *script, const struct colour *end, double share)
{
    fprintf(script, "'#%02x%02x%02x'", (unsigned)lround(same.red + share * (end->red - same.red)),
            (unsigned)lround(same.green + share * (end->green - same.green)),
            (unsigned)lround(same.blue + share * (end->blue - same.blue)));
}

/* One difference is as strong up as down. */
static void put_scale(FILE *script, struct extent extent)
{
    double maximum = -extent.from > extent.to ? -extent.from : extent.to;
    fprintf(script, "set palette defined (%d ", extent.from);
    put_colour(script, &slower, -extent.from / maximum);
    fputs(", 0 ", script);
    put_colour(script, &same, 1);
    fprintf(script, ", %d ", extent.to);
    put_colour(script, &faster, extent.to / maximum);
    fprintf(script, ")\nset cbrange [%d:%d]\nset cbtics (", extent.from, extent.to);
    for (int i = extent.from; i <= extent.to; i++)
        fprintf(script, "%s'%s%g' %d", i > extent.from ? ", " : "", i < 0 ? "1/" : "", ldexp(1, abs(i)), i);
    fputs(")\nset cblabel 'speed-up (green: faster, red: slower)'\n", script);
}

static void put_script(FILE *script, const struct cli_plan_order *order, const struct cli_plan_cells *cells,
                       const char *picture)
{
    char title[192], rate[LH_FORMAT_MAX], rtt[LH_FORMAT_MAX];
    const struct lh_model_path *link = &order->question.link;
    unsigned width = AROUND_WIDTH + CELL_WIDTH * cells->losses;
    snprintf(title, sizeof title,
             "Speed-up of ec:mds (32, 8) over sr-rto at %s and %s, by %s; below: the best scheme",
             lh_format_rate(link->bandwidth_bps, rate, sizeof rate),
             lh_format_time(link->rtt_s, rtt, sizeof rtt), order->by);
    cli_gnuplot_start(script, picture, width > WIDTH_MIN ? width : WIDTH_MIN,
                      AROUND_HEIGHT + CELL_HEIGHT * cells->sizes, title);
    put_data(script, cells);
    put_axes(script, order);
    put_scale(script, find_extent(cells));
    fputs("plot $map using 1:2:3 with image pixels, \\\n"
          "     '' using 1:($2+0.16):(sprintf('%.2f', $4)) with labels font ',13', \\\n"
          "     '' using 1:($2-0.2):5 with labels font ',11'\n",
          script);
}

/* A heat map by gnuplot; its script, with the data in it, is left beside it. CLI_PROCEED, or reports the
 * cause. */
static int cli_plan_picture(const struct cli_plan_order *order, const struct cli_plan_cells *cells)
{
    struct cli_folder folder;
    const char *picture;
    char name[NAME_MAX + 1];
    if (split(order->output, &folder, &picture, name, sizeof name) != CLI_PROCEED ||
        check_script(order->output, &folder, name) != CLI_PROCEED)
        return CLI_EXIT_FAILED;
    FILE *script = cli_folder_open(&folder, name);
    if (!script)
        return CLI_EXIT_FAILED;
    put_script(script, order, cells, picture);
    int status = cli_folder_close(&folder, name, script);
    return status == CLI_PROCEED ? cli_gnuplot_run(&folder, name, picture) : status;
}

/* ---- map ------------------------------------------------------------------------------------------- */

#define INDENT "  "
/* Columns of a number, of a scheme, and of the head of a row. */
#define NUMBER_WIDTH 7
#define USE_WIDTH    11
#define ROW_WIDTH    8

/* What the paper's figure 9 compares. */
static const char *const compared[] = {"sr-rto", "ec:mds,k=32,m=8"};

/* Seconds by what was asked for. Chunks of one packet unless given, as in the paper's figure. */
static int weigh(const struct lh_plan_question *question, const char *text, double *seconds)
{
    struct lh_model_scheme scheme;
    struct lh_plan_choice choice;
    uint64_t chunk = question->link.chunk_bytes ? question->link.chunk_bytes : question->link.mtu_bytes;
    if (lh_model_scheme_parse(text, &scheme) || lh_plan_weigh(question, &scheme, chunk, &choice))
        return cli_misused("%s", lh_last_error());
    *seconds = choice.seconds;
    return CLI_PROCEED;
}

/* "ec:mds,k=32,m=8" as "mds 32+8". */
static void shorten(const struct lh_model_scheme *scheme, char *out, size_t size)
{
    if (scheme->k > 0)
        snprintf(out, size, "%s %u+%u", scheme->kind == LH_MODEL_EC_MDS ? "mds" : "xor", scheme->k,
                 scheme->m);
    else
        lh_model_scheme_format(scheme, out, size);
}

static int fill_cell(const struct lh_plan_question *question, struct lh_plan *plan,
                     struct cli_plan_cell *cell)
{
    double repeat = 0, code = 0;
    int status = weigh(question, compared[0], &repeat);
    if (status == CLI_PROCEED)
        status = weigh(question, compared[1], &code);
    if (status != CLI_PROCEED)
        return status;
    cell->speedup = repeat / code;
    if (lh_plan_make(question, plan))
        return cli_misused("%s", lh_last_error());
    snprintf(cell->use, sizeof cell->use, "-");
    cell->scheme = (struct lh_model_scheme){.kind = LH_MODEL_IDEAL};
    if (plan->best != LH_PLAN_NONE) {
        cell->scheme = plan->choices[plan->best].scheme;
        shorten(&cell->scheme, cell->use, sizeof cell->use);
    }
    return CLI_PROCEED;
}

static int fill(const struct cli_plan_order *order, struct cli_plan_cells *cells)
{
    struct lh_plan *plan = malloc(sizeof *plan);
    if (!plan)
        return cli_failed("out of memory");
    int status = CLI_PROCEED;
    for (unsigned i = 0; i < cells->sizes * cells->losses && status == CLI_PROCEED; i++) {
        struct lh_plan_question question;
        cli_plan_question(order, i / cells->losses, i % cells->losses, &question);
        status = fill_cell(&question, plan, &cells->cell[i]);
    }
    free(plan);
    return status;
}

static void print_losses(const struct cli_plan_order *order, int width)
{
    printf(INDENT "%-*s", ROW_WIDTH, "");
    for (unsigned loss = 0; loss < order->losses.count; loss++) {
        char text[32];
        cli_loss_format(order->losses.ratio[loss], text, sizeof text);
        printf(" %*s", width, text);
    }
    putchar('\n');
}

static void print_size(const struct cli_plan_order *order, unsigned size)
{
    char text[LH_FORMAT_MAX];
    printf(INDENT "%*s", ROW_WIDTH, lh_format_size(order->sizes.bytes[size], text, sizeof text));
}

static void print_cell(const char *text, int width, enum cli_colour colour)
{
    bool colours = cli_terminal_colours(STDOUT_FILENO);
    printf(" %s%*s%s", cli_colour(colour, colours), width, text, cli_colour(CLI_PLAIN, colours));
}

static void print_speedups(const struct cli_plan_order *order, const struct cli_plan_cells *cells)
{
    printf("\n" INDENT "Speed-up of %s over %s, by %s; green: faster, red: slower.\n\n", compared[1],
           compared[0], order->by);
    for (unsigned size = cells->sizes; size-- > 0;) {
        print_size(order, size);
        for (unsigned loss = 0; loss < cells->losses; loss++) {
            char text[32];
            double speedup = cells->cell[size * cells->losses + loss].speedup;
            snprintf(text, sizeof text, "%.2f", speedup);
            print_cell(text, NUMBER_WIDTH,
                       speedup > 1.05   ? CLI_GREEN
                       : speedup < 0.95 ? CLI_RED
                                        : CLI_PLAIN);
        }
        putchar('\n');
    }
    print_losses(order, NUMBER_WIDTH);
}

static void print_uses(const struct cli_plan_order *order, const struct cli_plan_cells *cells)
{
    printf("\n" INDENT "Best scheme (k+m of erasure codes):\n\n");
    for (unsigned size = cells->sizes; size-- > 0;) {
        print_size(order, size);
        for (unsigned loss = 0; loss < cells->losses; loss++) {
            const struct cli_plan_cell *cell = &cells->cell[size * cells->losses + loss];
            print_cell(cell->use, USE_WIDTH, lh_model_scheme_codes(&cell->scheme) ? CLI_GREEN : CLI_PLAIN);
        }
        putchar('\n');
    }
    print_losses(order, USE_WIDTH);
    putchar('\n');
}

int cli_plan_map(const struct cli_plan_order *order)
{
    struct cli_plan_cells cells = {order->sizes.count, order->losses.count, NULL};
    if (order->output && cli_plan_picture_check(order->output) != CLI_PROCEED)
        return CLI_EXIT_USAGE;
    cells.cell = calloc((size_t)cells.sizes * cells.losses, sizeof *cells.cell);
    if (!cells.cell)
        return cli_failed("out of memory");
    int status = fill(order, &cells);
    if (status == CLI_PROCEED) {
        print_speedups(order, &cells);
        print_uses(order, &cells);
    }
    if (status == CLI_PROCEED && order->output)
        status = cli_plan_picture(order, &cells);
    free(cells.cell);
    return status;
}
