/*
 * `auto` beside fixed schemes, in virtual time: the same link, the same losses, no noise of a machine. Round
 * trips of 1 to 100 ms, losses up to 3e-2, messages of 64 KiB to 256 MiB, short and long against what the
 * path holds.
 *
 * Each scheme has a connection of its own. The first quarter of its messages does not count, so `auto` is
 * measured when it has found out what the path is like; what these cost it stands beside it.
 *
 * usage: bench_auto_sim [--json FILE] [--rate GBIT] [--quick]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "message_memory.h"
#include "report.h"
#include "sim_pair.h"

#define KIB      ((size_t)1 << 10)
#define MIB      ((size_t)1 << 20)
#define SEED     7u
#define SEGMENT  (4 * MIB)
#define SLOTS    64u
#define WINDOW   (64 * MIB)
#define RUNS_MAX 400u

struct setting {
    double rtt_ms;
    const char *loss; /* and its bursts, as in a link's text */
    size_t bytes;
    unsigned runs;
};

static const struct setting settings[] = {
    {1, "0", 64 * KIB, 400},        {1, "1e-2", MIB, 400},
    {1, "1e-3", 16 * MIB, 100},     {10, "1e-3", 64 * KIB, 400},
    {10, "3e-2", 4 * MIB, 200},     {10, "0", 64 * MIB, 40},
    {25, "1e-4", MIB, 400},         {25, "1e-2", 16 * MIB, 100},
    {25, "1e-3", 128 * MIB, 24},    {100, "1e-2", 256 * KIB, 400},
    {100, "1e-5", 16 * MIB, 100},   {100, "1e-3", 256 * MIB, 16},
    {25, "1e-2,burst=8", MIB, 400}, {25, "1e-3,burst=20", 16 * MIB, 100},
};
#define SETTINGS (sizeof settings / sizeof *settings)

static const char *const schemes[] = {"sr-nack", "sr-rto", "ec:mds", "ec:xor", "hybrid", "auto"};
#define SCHEMES (sizeof schemes / sizeof *schemes)
#define AUTO    (SCHEMES - 1)

struct times {
    double mean_s;
    double first_s; /* the mean of those that do not count */
    char chosen[128];
    uint64_t changes;
};

static struct times measure(const struct setting *setting, const char *scheme, double rate_gbit,
                            unsigned runs, struct message_memory *memory)
{
    char link[128];
    double seconds[RUNS_MAX];
    unsigned first = runs / 4;
    struct sim_pair pair;
    struct lh_scheme_report report;
    snprintf(link, sizeof link, "rtt=%gms,rate=%gGbit,loss=%s,seed=%u", setting->rtt_ms, rate_gbit,
             setting->loss, SEED);
    const struct sim_pair_plan plan = {
        .scheme = scheme,
        .link = link,
        .seed = SEED,
        .slot_bytes = SEGMENT,
        .slots = SLOTS,
        .window_bytes = WINDOW,
        .grain_ns = 40 * LH_NS_PER_US,
    };
    sim_pair_open(&pair, &plan);
    for (unsigned i = 0; i < runs; i++) {
        message_memory_clear(memory, setting->bytes);
        seconds[i] = sim_pair_message(&pair, memory->from, memory->to, setting->bytes);
        if (!message_memory_same(memory, setting->bytes)) {
            fprintf(stderr, "bench_auto_sim: %s: message %u is wrong\n", scheme, i);
            exit(1);
        }
    }
    struct times times = {.mean_s = report_mean(seconds + first, runs - first),
                          .first_s = report_mean(seconds, first)};
    lh_connection_scheme(pair.receiver, &report);
    snprintf(times.chosen, sizeof times.chosen, "%s", report.scheme);
    times.changes = report.changes;
    sim_pair_close(&pair);
    return times;
}

static void size_text(size_t bytes, char text[LH_FORMAT_MAX])
{
    lh_format_size(bytes, text, LH_FORMAT_MAX);
}

static void row(FILE *json, unsigned number, const struct setting *setting, double rate_gbit, bool quick)
{
    struct message_memory memory = message_memory_open(setting->bytes);
    unsigned runs = quick ? setting->runs / 4 : setting->runs, best = 0;
    struct times times[SCHEMES];
    char size[LH_FORMAT_MAX], name[128];
    for (unsigned i = 0; i < SCHEMES; i++) {
        times[i] = measure(setting, schemes[i], rate_gbit, runs, &memory);
        if (i != AUTO && times[i].mean_s < times[best].mean_s)
            best = i;
    }
    size_text(setting->bytes, size);
    printf("  %2u %5gms %14s %7s", number, setting->rtt_ms, setting->loss, size);
    for (unsigned i = 0; i < SCHEMES; i++)
        printf(" %8.2f", times[i].mean_s * 1e3);
    printf("  %6.3f %6.3f %3llu  %s\n", times[AUTO].mean_s / times[best].mean_s,
           times[AUTO].first_s / times[best].first_s, (unsigned long long)times[AUTO].changes,
           times[AUTO].chosen);
    fflush(stdout);
    snprintf(name, sizeof name, "auto_sim_%gms_%s_%s", setting->rtt_ms, setting->loss, size);
    report_line(json, name, times[AUTO].mean_s * 1e3, "ms", schemes[best], times[best].mean_s * 1e3, runs);
    message_memory_close(&memory);
}

static double option(int argc, char **argv, const char *name, double preset)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return atof(argv[i + 1]);
    return preset;
}

int main(int argc, char **argv)
{
    bool quick = argc > 1 && strcmp(argv[argc - 1], "--quick") == 0;
    double rate_gbit = option(argc, argv, "--rate", 4);
    FILE *json = report_open(argc, argv);
    if (!(rate_gbit > 0)) {
        fprintf(stderr, "usage: bench_auto_sim [--json FILE] [--rate GBIT] [--quick]\n");
        return 2;
    }
    printf("  Mean completion in ms at %g Gbit/s; of the best fixed one, and of its first messages; "
           "changes\n\n",
           rate_gbit);
    printf("   #     rtt           loss    size");
    for (unsigned i = 0; i < SCHEMES; i++)
        printf(" %8s", schemes[i]);
    printf("  of best  first      chosen last\n");
    for (unsigned i = 0; i < SETTINGS; i++)
        row(json, i + 1, &settings[i], rate_gbit, quick);
    if (json)
        fclose(json);
    return 0;
}
