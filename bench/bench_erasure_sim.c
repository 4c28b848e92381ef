/*
 * Erasure codes beside selective repeat, round trip 25 ms, most at 400 Gbit/s, in simulation: the running
 * protocol moves real bytes through the simulated link, one packet of 4 KiB a chunk.
 *
 *   figure9   completion time over size and loss, beside the SDR-RDMA paper's formula, and how many times
 *             faster EC is than selective repeat with timeouts (the paper's figure 9)
 *   fallback  what follows when a submessage does not decode: more parity, or its chunks again
 *   spread    burst loss on the way of the data: submessages of neighbouring chunks (spread=1), of every
 *             16th, and of chunks from all over the segment (spread=0)
 *   slow      128 MiB at 4 Gbit/s in segments of 4 MiB: what "bench/run erasure-udp" measures between two
 *             processes, without the noise of a machine
 *
 * A 99.9th percentile needs 1,000 messages; where there are fewer it is "-", and the worst stands beside it.
 *
 * usage: bench_erasure_sim [--json FILE] [--part NAME] [--schemes "A;B;…"] [--size MIB] [--quick]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <time.h>

#include "completion_formula.h"
#include "message_memory.h"
#include "report.h"
#include "sim_pair.h"
#include "wire/roce_packet.h"

#define RTT_S       25e-3
#define CHUNK       4096.0
#define WIRE_CHUNK  (CHUNK + ROCE_WRITE_IMM_OVERHEAD_V6)
#define KIB         ((size_t)1 << 10)
#define MIB         ((size_t)1 << 20)
#define GIB         ((size_t)1 << 30)
#define TAIL_RUNS   1000u
#define QUICK_SHARE 20u /* of the messages */
#define QUICK_BYTES GIB
#define SEED        42
#define SIZE_TEXT   24
#define SCHEMES_MAX 8u
#define SIZES_MAX   6u
#define LOSSES_MAX  9u

/* ---- one point ---------------------------------------------------------------------------------------- */

struct scene {
    const char *name; /* in results */
    double rate_bps;
    size_t segment_bytes; /* parity takes a quarter more memory, at each end */
    size_t window_bytes;  /* or twice the message: nothing but the link holds back */
    lh_time grain_ns;     /* several packets of the link */
};

static const struct scene fast_link = {"400g", 400e9, 128 * MIB, 4 * GIB, 2 * LH_NS_PER_US};
static const struct scene slow_link = {"4g", 4e9, 4 * MIB, 64 * MIB, 40 * LH_NS_PER_US};

struct point {
    const struct scene *scene;
    const char *scheme; /* as lh_attr takes it */
    double burst;       /* packets that are lost in a row, in the mean; 1: independent loss */
    size_t bytes;
    double loss;
    unsigned runs;
};

struct times {
    unsigned runs;
    double mean;
    double tail; /* 99.9 %; NAN where the runs are too few */
    double worst;
    double fell_back; /* share of messages */
    struct formula_times formula;
};

struct bench {
    FILE *json;
    bool quick;
    size_t only_bytes; /* 0: all sizes */
    unsigned schemes_count;
    const char *schemes[SCHEMES_MAX];
};

static uint32_t slots_for(size_t segments)
{
    uint32_t slots = 8;
    while (slots < 2 * segments) /* data and parity */
        slots *= 2;
    return slots;
}

static uint64_t fallbacks_of(struct sim_pair *pair)
{
    struct lh_stats stats;
    lh_connection_stats(pair->receiver, &stats);
    return stats.fallbacks;
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static void move_messages(const struct point *point, struct message_memory *memory, struct sim_pair *pair,
                          double *seconds, unsigned *fell_back)
{
    for (unsigned i = 0; i < point->runs; i++) {
        uint64_t before = fallbacks_of(pair);
        message_memory_clear(memory, point->bytes);
        seconds[i] = sim_pair_message(pair, memory->from, memory->to, point->bytes);
        if (!message_memory_same(memory, point->bytes)) {
            fprintf(stderr, "bench_erasure_sim: %s: message %u is wrong\n", point->scheme, i);
            exit(1);
        }
        *fell_back += fallbacks_of(pair) != before;
    }
}

static struct times measure(const struct point *point, struct message_memory *memory)
{
    char link[64];
    char back[128];
    const struct scene *scene = point->scene;
    size_t slot_bytes = point->bytes < scene->segment_bytes ? point->bytes : scene->segment_bytes;
    double packet_s = WIRE_CHUNK * 8 / scene->rate_bps;
    struct sim_pair_plan plan = {
        .scheme = point->scheme,
        .link = link,
        .link_back = back,
        .seed = SEED,
        .slot_bytes = slot_bytes,
        .slots = slots_for(point->bytes / slot_bytes),
        .window_bytes = 2 * point->bytes > scene->window_bytes ? 2 * point->bytes : scene->window_bytes,
        .grain_ns = scene->grain_ns,
    };
    snprintf(link, sizeof link, "rtt=25ms,rate=%.0fGbit", scene->rate_bps / 1e9);
    snprintf(back, sizeof back, "%s,loss=%g,seed=%u", link, point->loss, SEED);
    struct burst_loss burst = {.packet_s = packet_s};
    burst_loss_init(&burst, SEED, point->loss, point->burst);
    if (point->burst > 1)
        plan.burst = &burst;
    else
        plan.link = back;
    const struct formula_path path = {packet_s, RTT_S, point->loss};
    struct times times = {.runs = point->runs};
    double *seconds = malloc(point->runs * sizeof *seconds);
    if (!seconds)
        abort();
    unsigned fell_back = 0;
    struct sim_pair pair;
    sim_pair_open(&pair, &plan);
    move_messages(point, memory, &pair, seconds, &fell_back);
    sim_pair_close(&pair);
    times.mean = report_mean(seconds, point->runs);
    times.tail = point->runs >= TAIL_RUNS ? report_quantile(seconds, point->runs, 0.999) : NAN;
    times.worst = report_quantile(seconds, point->runs, 1);
    times.fell_back = (double)fell_back / point->runs;
    times.formula = formula_of(point->scheme, &path, ceil((double)point->bytes / CHUNK));
    free(seconds);
    return times;
}

/* ---- tables ------------------------------------------------------------------------------------------- */

/* "ec:mds" of "ec:mds,k=32,m=8"; what else was asked for stays: "ec:mds,fallback=sr". */
static const char *label_of(const char *scheme, char label[64])
{
    static const char common[] = ",k=32,m=8";
    const char *found = strstr(scheme, common);
    size_t kept = found ? (size_t)(found - scheme) : strlen(scheme);
    snprintf(label, 64, "%.*s%s", (int)kept, scheme, found ? found + strlen(common) : "");
    return label;
}

static const char *size_text(size_t bytes, char text[SIZE_TEXT])
{
    bool large = bytes >= GIB;
    bool small = bytes < MIB;
    snprintf(text, SIZE_TEXT, "%zu%s",
             bytes / (large   ? GIB
                      : small ? KIB
                              : MIB),
             large   ? "GiB"
             : small ? "KiB"
                     : "MiB");
    return text;
}

/* 1e-6, where printf would make it 1e-06. */
static const char *loss_text(double loss, char text[SIZE_TEXT])
{
    snprintf(text, SIZE_TEXT, "%.0e", loss);
    char *zero = strstr(text, "e-0");
    if (zero)
        memmove(zero + 2, zero + 3, strlen(zero + 3) + 1);
    return text;
}

static const char *milliseconds(double seconds, char text[SIZE_TEXT])
{
    if (isnan(seconds))
        snprintf(text, SIZE_TEXT, "-");
    else
        snprintf(text, SIZE_TEXT, "%.2f", seconds * 1e3);
    return text;
}

static void print_titles(const char *what)
{
    printf("\n%s (ms)\n\n", what);
    printf("%-20s %8s %8s %5s %6s %8s %8s %8s %6s %8s %8s %6s %8s\n", "scheme", "message", "loss", "burst",
           "runs", "ideal", "mean", "formula", "ratio", "p99.9", "formula", "fell", "worst");
}

static void print_row(const struct point *point, const struct times *times)
{
    char label[64];
    char size[SIZE_TEXT];
    char loss[SIZE_TEXT];
    char tail[SIZE_TEXT];
    printf("%-20s %8s %8s %5g %6u %8.2f %8.2f %8.2f %6.3f %8s %8.2f %5.1f%% %8.2f\n",
           label_of(point->scheme, label), size_text(point->bytes, size), loss_text(point->loss, loss),
           point->burst, point->runs, times->formula.ideal_s * 1e3, times->mean * 1e3,
           times->formula.mean_s * 1e3, times->mean / times->formula.mean_s,
           milliseconds(times->tail, tail), times->formula.tail_s * 1e3, times->fell_back * 100,
           times->worst * 1e3);
    fflush(stdout);
}

static void report_point(const struct bench *bench, const struct point *point, const struct times *times)
{
    char name[160];
    char label[64];
    char size[SIZE_TEXT];
    char loss[SIZE_TEXT];
    int length = snprintf(name, sizeof name, "erasure_sim_%s_%s_%s_loss_%s", point->scene->name,
                          label_of(point->scheme, label), size_text(point->bytes, size),
                          loss_text(point->loss, loss));
    if (point->burst > 1)
        length += snprintf(name + length, sizeof name - (size_t)length, "_burst_%g", point->burst);
    for (char *c = name; *c; c++)
        if (strchr(":,=", *c))
            *c = '_';
    snprintf(name + length, sizeof name - (size_t)length, "_mean");
    report_line(bench->json, name, times->mean * 1e3, "ms", "SDR-RDMA formula", times->formula.mean_s * 1e3,
                times->runs);
    snprintf(name + length, sizeof name - (size_t)length, "_p999");
    if (!isnan(times->tail))
        report_line(bench->json, name, times->tail * 1e3, "ms", "SDR-RDMA formula",
                    times->formula.tail_s * 1e3, times->runs);
}

struct size_runs {
    size_t bytes;
    unsigned runs;      /* few where injection decides */
    unsigned code_runs; /* of erasure codes: fewer where nothing but injection does */
};

static struct times run_point(const struct bench *bench, struct point point, const struct size_runs *size,
                              struct message_memory *memory)
{
    point.bytes = size->bytes;
    point.runs = starts_with(point.scheme, "ec:") ? size->code_runs : size->runs;
    if (bench->quick)
        point.runs = point.runs > QUICK_SHARE ? point.runs / QUICK_SHARE : 1;
    struct times times = measure(&point, memory);
    print_row(&point, &times);
    report_point(bench, &point, &times);
    return times;
}

/* ---- figure 9 ----------------------------------------------------------------------------------------- */

struct figure {
    const struct size_runs *sizes;
    const double *losses;
    struct times times[SCHEMES_MAX][SIZES_MAX][LOSSES_MAX];
    bool measured[SIZES_MAX];
};

static double ratio_of(const struct times *slow, const struct times *fast, bool tail)
{
    return tail ? slow->tail / fast->tail : slow->mean / fast->mean;
}

/* Sizes down, losses across: what bench/results/erasure-figure9.gp reads. */
static void print_map(const struct bench *bench, const struct figure *figure, unsigned base, unsigned code,
                      bool tail)
{
    char label[64];
    char base_label[64];
    char size[SIZE_TEXT];
    char loss[SIZE_TEXT];
    printf("\n%s: how many times faster than %s, %s\n\n%8s", label_of(bench->schemes[code], label),
           label_of(bench->schemes[base], base_label), tail ? "p99.9" : "mean", "message");
    for (unsigned l = 0; l < LOSSES_MAX; l++)
        printf(" %7s", loss_text(figure->losses[l], loss));
    for (unsigned s = SIZES_MAX; s-- > 0;) {
        if (!figure->measured[s])
            continue;
        printf("\n%8s", size_text(figure->sizes[s].bytes, size));
        for (unsigned l = 0; l < LOSSES_MAX; l++) {
            double ratio = ratio_of(&figure->times[base][s][l], &figure->times[code][s][l], tail);
            if (isnan(ratio))
                printf(" %7s", "-");
            else
                printf(" %7.2f", ratio);
        }
    }
    printf("\n");
}

static void print_maps(const struct bench *bench, const struct figure *figure)
{
    unsigned base = 0;
    while (base < bench->schemes_count && !starts_with(bench->schemes[base], "sr-rto"))
        base++;
    for (unsigned i = 0; base < bench->schemes_count && i < bench->schemes_count; i++) {
        if (i == base)
            continue;
        print_map(bench, figure, base, i, false);
        print_map(bench, figure, base, i, true);
    }
}

static bool wanted(const struct bench *bench, size_t bytes)
{
    if (bench->only_bytes != 0)
        return bytes == bench->only_bytes;
    return !bench->quick || bytes <= QUICK_BYTES;
}

static void figure9(const struct bench *bench)
{
    static const struct size_runs sizes[SIZES_MAX] = {
        {128 * KIB, 2000, 2000}, {MIB, 2000, 2000}, {16 * MIB, 1000, 1000},
        {128 * MIB, 100, 100},   {GIB, 10, 4},      {8 * GIB, 2, 1},
    };
    static const double losses[LOSSES_MAX] = {1e-6, 1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 2e-2, 3e-2, 1e-1};
    static struct figure figure;
    figure.sizes = sizes;
    figure.losses = losses;
    print_titles("Completion time at 400 Gbit/s, RTT 25 ms, in simulation, beside the paper's formula");
    for (unsigned s = 0; s < SIZES_MAX; s++) {
        if (!wanted(bench, sizes[s].bytes))
            continue;
        struct message_memory memory = message_memory_open(sizes[s].bytes);
        for (unsigned l = 0; l < LOSSES_MAX; l++)
            for (unsigned i = 0; i < bench->schemes_count; i++) {
                struct point point = {&fast_link, .scheme = bench->schemes[i], .burst = 1,
                                      .loss = losses[l]};
                figure.times[i][s][l] = run_point(bench, point, &sizes[s], &memory);
            }
        figure.measured[s] = true;
        message_memory_close(&memory);
    }
    print_maps(bench, &figure);
}

/* ---- fallback and spread ------------------------------------------------------------------------------ */

struct table {
    const char *title;
    const struct scene *scene;
    const char *schemes[3];
    double bursts[6];
    double losses[5];
    struct size_runs sizes[3];
};

/* Every scheme at every point; unused places of the lists are 0. */
static void run_table(const struct bench *bench, const struct table *table)
{
    print_titles(table->title);
    for (unsigned s = 0; s < 3 && table->sizes[s].bytes; s++) {
        if (!wanted(bench, table->sizes[s].bytes))
            continue;
        struct message_memory memory = message_memory_open(table->sizes[s].bytes);
        for (unsigned l = 0; l < 5 && table->losses[l] > 0; l++)
            for (unsigned b = 0; b < 6 && table->bursts[b] > 0; b++)
                for (unsigned i = 0; i < 3 && table->schemes[i]; i++) {
                    struct point point = {table->scene, .scheme = table->schemes[i],
                                          .burst = table->bursts[b], .loss = table->losses[l]};
                    run_point(bench, point, &table->sizes[s], &memory);
                }
        message_memory_close(&memory);
    }
}

static void fallback(const struct bench *bench)
{
    static const struct table table = {
        .title = "When a submessage does not decode: more parity (ir), or its chunks again (sr)",
        .scene = &fast_link,
        .schemes = {"ec:mds,k=32,m=8,fallback=ir", "ec:mds,k=32,m=8,fallback=sr"},
        .bursts = {1},
        .losses = {2e-2, 3e-2, 5e-2, 7e-2, 1e-1},
        .sizes = {{MIB, 2000, 2000}, {16 * MIB, 1000, 1000}, {128 * MIB, 100, 100}},
    };
    run_table(bench, &table);
}

static void spread(const struct bench *bench)
{
    static const struct table table = {
        .title =
            "Burst loss of the same average: submessages of neighbours (spread=1), of every 16th chunk, "
            "of all the segment (spread=0); the formula knows no bursts",
        .scene = &fast_link,
        .schemes = {"ec:mds,k=32,m=8,spread=1", "ec:mds,k=32,m=8,spread=16", "ec:mds,k=32,m=8,spread=0"},
        .bursts = {1, 2, 4, 8, 16, 32},
        .losses = {1e-3, 1e-2},
        .sizes = {{16 * MIB, 1000, 1000}, {128 * MIB, 60, 60}},
    };
    run_table(bench, &table);
}

static void slow(const struct bench *bench)
{
    static const struct table table = {
        .title = "128 MiB at 4 Gbit/s, in segments of 4 MiB",
        .scene = &slow_link,
        .schemes = {"sr-rto", "sr-nack", "ec:mds,k=32,m=8"},
        .bursts = {1},
        .losses = {1e-5, 1e-4, 1e-3, 1e-2},
        .sizes = {{128 * MIB, 200, 200}},
    };
    run_table(bench, &table);
}

/* ---- main --------------------------------------------------------------------------------------------- */

static const char *argument(int argc, char **argv, const char *name)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return argv[i + 1];
    return NULL;
}

static void split_schemes(struct bench *bench, char *list)
{
    for (char *next; list && bench->schemes_count < SCHEMES_MAX; list = next) {
        next = strchr(list, ';');
        if (next)
            *next++ = '\0';
        bench->schemes[bench->schemes_count++] = list;
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(const struct bench *bench);
    } parts[] = {{"figure9", figure9}, {"fallback", fallback}, {"spread", spread}, {"slow", slow}};
    char all[] = "sr-rto;sr-nack;ec:mds,k=32,m=8;ec:xor,k=32,m=8";
    char given[512];
    const char *schemes = argument(argc, argv, "--schemes");
    const char *size = argument(argc, argv, "--size");
    const char *only = argument(argc, argv, "--part");
    struct bench bench = {.json = report_open(argc, argv)};
    bench.quick = argc > 1 && strcmp(argv[argc - 1], "--quick") == 0;
    bench.only_bytes = size ? (size_t)(atof(size) * (double)MIB) : 0;
    snprintf(given, sizeof given, "%s", schemes ? schemes : all);
    split_schemes(&bench, given);
    for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!only || strcmp(only, parts[i].name) == 0)
            parts[i].run(&bench);
    if (bench.json)
        fclose(bench.json);
    return 0;
}
