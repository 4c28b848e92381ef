/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/plan/plan_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/error.h>
#include <longhaul/model.h>
#include <longhaul/plan.h>

#include "cli/options/option_values.h"
#include "cli/results/gnuplot.h"
#include "cli/results/result_file.h"
#include "cli/terminal/terminal.h"

/* ---- paper figure list ----------------------------------------------------------------------------- */

/*
 * The figures of the SDR-RDMA paper: axes, links and curves.
 *
 * What the figures of the SDR-RDMA paper show.
 *
 * 400 Gbit/s, 3750 km = 25 ms (the paper's; in glass it is 37.5 ms), chunks of one packet of 4 KiB, loss of
 * packets, unless a figure says otherwise (section 5.2). Erasure codes fall back as in the paper. It leaves
 * open which of 10b and 10c is a percentile, and the loss of figure 12: 10b is the mean, 10c the 99.9th
 * percentile, and the loss 1e-5.
 */

#define CLI_CURVES_MAX 6

/* What runs along. */
enum cli_figure_x { CLI_X_SIZE, CLI_X_LOSS, CLI_X_KM, CLI_X_PACKETS };

/* What is shown: completion time, that over the ideal, how many times faster MDS(32, 8) is than SR RTO in a
 * ring allreduce (99.9th percentile), or the share of chunks that is lost. */
enum cli_figure_y { CLI_Y_SECONDS, CLI_Y_TIMES_IDEAL, CLI_Y_ALLREDUCE, CLI_Y_CHUNK_LOSS };

struct cli_paper_curve {
    const char *name;   /* NULL ends the list */
    const char *scheme; /* as lh_model_scheme_parse takes it */
    enum lh_plan_by by; /* mean or p99.9 */
    double bandwidth_bps, loss;
    uint64_t message_bytes;
    uint32_t datacenters; /* where they are not 0, these stand for the figure's */
};

struct cli_paper_figure {
    const char *name; /* "figure3a" */
    const char *title;
    enum cli_figure_x x;
    double from, to, step; /* of x; step: the factor between two points */
    enum cli_figure_y y;
    struct lh_model_path path;
    struct cli_paper_curve curves[CLI_CURVES_MAX + 1];
};

#define KIB 1024.0
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

#define PATH(bytes, share)                                                                                 \
    {                                                                                                      \
        .message_bytes = (uint64_t)(bytes), .chunk_bytes = 4096, .mtu_bytes = 4096,                        \
        .bandwidth_bps = 400e9, .rtt_s = 0.025, .loss = (share)                                            \
    }

#define MDS(m) "ec:mds,k=32,m=" m ",fallback=sr"
#define XOR    "ec:xor,k=32,m=8,fallback=sr"

#define BY_MEAN LH_PLAN_BY_MEAN
#define BY_P999 LH_PLAN_BY_P999

/* Four points a decade, two an octave of distance. */
#define QUARTER_DECADE 1.7782794100389228
#define HALF_OCTAVE    1.4142135623730951

#define SR_AND_EC                                                                                          \
    {                                                                                                      \
        {.name = "SR", .scheme = "sr-rto"}, {.name = "EC MDS(32, 8)", .scheme = MDS("8")},                 \
            {.name = "ideal", .scheme = "ideal"},                                                          \
    }

#define FOUR(measure)                                                                                      \
    {                                                                                                      \
        {.name = "SR RTO", .scheme = "sr-rto", .by = measure},                                             \
            {.name = "SR NACK", .scheme = "sr-nack", .by = measure},                                       \
            {.name = "EC MDS(32, 8)", .scheme = MDS("8"), .by = measure},                                  \
            {.name = "EC XOR(32, 8)", .scheme = XOR, .by = measure},                                       \
    }

/* A list that ends with a figure without name. */
static const struct cli_paper_figure cli_paper_figures[] = {
    {"figure3a", "Completion time over message size: 400 Gbit/s, RTT 25 ms, loss 10⁻⁵", CLI_X_SIZE,
     128 * KIB, 1024 * GIB, 2, CLI_Y_SECONDS, PATH(0, 1e-5), SR_AND_EC},
    {"figure3b", "Completion time of 8 GiB over distance: 400 Gbit/s, loss 10⁻⁵", CLI_X_KM, 100, 13000,
     HALF_OCTAVE, CLI_Y_SECONDS, PATH(8 * GIB, 1e-5), SR_AND_EC},
    {"figure3c", "Completion time of 128 MiB over loss: 400 Gbit/s, RTT 25 ms", CLI_X_LOSS, 1e-8, 0.11,
     QUARTER_DECADE, CLI_Y_SECONDS, PATH(128 * MIB, 0), SR_AND_EC},
    {"figure10a",
     "Writes of many sizes: 400 Gbit/s, RTT 25 ms, loss 10⁻⁵, mean and p99.9",
     CLI_X_SIZE,
     128 * KIB,
     64 * GIB,
     2,
     CLI_Y_TIMES_IDEAL,
     PATH(0, 1e-5),
     {{.name = "SR RTO", .scheme = "sr-rto"},
      {.name = "SR NACK", .scheme = "sr-nack"},
      {.name = "EC MDS(32, 8)", .scheme = MDS("8")},
      {.name = "SR RTO, p99.9", .scheme = "sr-rto", .by = BY_P999},
      {.name = "SR NACK, p99.9", .scheme = "sr-nack", .by = BY_P999},
      {.name = "EC MDS(32, 8), p99.9", .scheme = MDS("8"), .by = BY_P999}}},
    {"figure10b", "A write of 128 MiB: 400 Gbit/s, RTT 25 ms, mean", CLI_X_LOSS, 1e-8, 0.11, QUARTER_DECADE,
     CLI_Y_TIMES_IDEAL, PATH(128 * MIB, 0), FOUR(BY_MEAN)},
    {"figure10c", "A write of 128 MiB: 400 Gbit/s, RTT 25 ms, 99.9th percentile", CLI_X_LOSS, 1e-8, 0.11,
     QUARTER_DECADE, CLI_Y_TIMES_IDEAL, PATH(128 * MIB, 0), FOUR(BY_P999)},
    {"figure10d",
     "A write of 128 MiB, splits of MDS: 400 Gbit/s, RTT 25 ms, mean",
     CLI_X_LOSS,
     1e-8,
     0.11,
     QUARTER_DECADE,
     CLI_Y_TIMES_IDEAL,
     PATH(128 * MIB, 0),
     {{.name = "MDS(32, 2)", .scheme = MDS("2")},
      {.name = "MDS(32, 4)", .scheme = MDS("4")},
      {.name = "MDS(32, 8)", .scheme = MDS("8")},
      {.name = "MDS(32, 16)", .scheme = MDS("16")},
      {.name = "MDS(32, 32)", .scheme = MDS("32")}}},
    {"figure12",
     "A write of 128 MiB over distance and bandwidth: loss 10⁻⁵, mean",
     CLI_X_KM,
     100,
     13000,
     HALF_OCTAVE,
     CLI_Y_TIMES_IDEAL,
     PATH(128 * MIB, 1e-5),
     {{.name = "SR RTO, 100 Gbit/s", .scheme = "sr-rto", .bandwidth_bps = 100e9},
      {.name = "SR RTO, 400 Gbit/s", .scheme = "sr-rto"},
      {.name = "SR RTO, 1.6 Tbit/s", .scheme = "sr-rto", .bandwidth_bps = 1600e9},
      {.name = "EC MDS(32, 8), 100 Gbit/s", .scheme = MDS("8"), .bandwidth_bps = 100e9},
      {.name = "EC MDS(32, 8), 400 Gbit/s", .scheme = MDS("8")},
      {.name = "EC MDS(32, 8), 1.6 Tbit/s", .scheme = MDS("8"), .bandwidth_bps = 1600e9}}},
    {"figure13-left",
     "Ring allreduce of 128 MiB, p99.9: 400 Gbit/s, RTT 25 ms",
     CLI_X_LOSS,
     1e-6,
     0.011,
     10,
     CLI_Y_ALLREDUCE,
     PATH(128 * MIB, 0),
     {{.name = "2 datacenters", .datacenters = 2},
      {.name = "4 datacenters", .datacenters = 4},
      {.name = "8 datacenters", .datacenters = 8},
      {.name = "16 datacenters", .datacenters = 16}}},
    {"figure13-right",
     "Ring allreduce between 4 datacenters, p99.9: 400 Gbit/s, RTT 25 ms",
     CLI_X_LOSS,
     1e-6,
     0.011,
     10,
     CLI_Y_ALLREDUCE,
     PATH(0, 0),
     {{.name = "buffer of 8 MiB", .datacenters = 4, .message_bytes = (uint64_t)(8 * MIB)},
      {.name = "buffer of 128 MiB", .datacenters = 4, .message_bytes = (uint64_t)(128 * MIB)},
      {.name = "buffer of 1 GiB", .datacenters = 4, .message_bytes = (uint64_t)(1 * GIB)},
      {.name = "buffer of 8 GiB", .datacenters = 4, .message_bytes = (uint64_t)(8 * GIB)}}},
    {"figure15",
     "Loss of a chunk whose packets are lost with 10⁻⁵",
     CLI_X_PACKETS,
     1,
     64,
     2,
     CLI_Y_CHUNK_LOSS,
     PATH(0, 1e-5),
     {{.name = "share of chunks"}}},
    {.name = NULL},
};

/* ---- paper figure value ---------------------------------------------------------------------------- */

/*
 * One value of a figure.
 *
 * One value of a figure.
 */

/* 3750 km are 25 ms of round trip in the paper (figure 3), light in vacuum; in glass they are 37.5 ms. */
#define RTT_S_PER_KM (0.025 / 3750)

/* Ten are beyond the 99.9th percentile. */
#define SAMPLES 10000
#define SEED    1
#define THREADS 2

static double measure(const struct lh_model_times *times, enum lh_plan_by by)
{
    return by == LH_PLAN_BY_P999 ? times->p999_s : times->mean_s;
}

/* The 99.9th percentile of a ring allreduce with that scheme. */
static int allreduce(const struct lh_model_path *path, uint32_t datacenters, const char *text,
                     double *seconds)
{
    struct lh_model_scheme scheme;
    struct lh_model_summary summary;
    double *samples = malloc(SAMPLES * sizeof *samples);
    int code = samples ? lh_model_scheme_parse(text, &scheme) : -LH_ENOMEM;
    if (!code)
        code = lh_model_collective_sample(path, &scheme, LH_MODEL_RING_ALLREDUCE, datacenters, SEED,
                                          THREADS, samples, SAMPLES);
    if (!code)
        code = lh_model_summarize(samples, SAMPLES, &summary);
    if (!code)
        *seconds = summary.p999_s;
    free(samples);
    return code;
}

static int speedup(const struct lh_model_path *path, uint32_t datacenters, double *value)
{
    double repeat = 0, code = 0;
    int failed = allreduce(path, datacenters, "sr-rto", &repeat);
    if (!failed)
        failed = allreduce(path, datacenters, "ec:mds,k=32,m=8,fallback=sr", &code);
    if (!failed)
        *value = repeat / code;
    return failed;
}

static struct lh_model_path path_of(const struct cli_paper_figure *figure,
                                    const struct cli_paper_curve *curve, double x)
{
    struct lh_model_path path = figure->path;
    if (curve->bandwidth_bps > 0)
        path.bandwidth_bps = curve->bandwidth_bps;
    if (curve->loss > 0)
        path.loss = curve->loss;
    if (curve->message_bytes)
        path.message_bytes = curve->message_bytes;
    if (figure->x == CLI_X_SIZE)
        path.message_bytes = (uint64_t)x;
    if (figure->x == CLI_X_LOSS)
        path.loss = x;
    if (figure->x == CLI_X_KM)
        path.rtt_s = x * RTT_S_PER_KM;
    return path;
}

/* A curve's value at x into *value. 0, or an error of the library. */
static int cli_paper_figure_value(const struct cli_paper_figure *figure,
                                  const struct cli_paper_curve *curve, double x, double *value)
{
    struct lh_model_path path = path_of(figure, curve, x);
    struct lh_model_scheme scheme;
    struct lh_model_times times;
    if (figure->y == CLI_Y_CHUNK_LOSS)
        return lh_model_chunk_loss(path.loss, 0, (uint32_t)x, value);
    if (figure->y == CLI_Y_ALLREDUCE)
        return speedup(&path, curve->datacenters, value);
    int code = lh_model_scheme_parse(curve->scheme, &scheme);
    if (!code)
        code = lh_model_predict(&path, &scheme, &times);
    if (!code)
        *value = measure(&times, curve->by) / (figure->y == CLI_Y_SECONDS ? 1 : times.ideal_s);
    return code;
}

/* ---- paper figures --------------------------------------------------------------------------------- */

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
