/*
 * The hybrid scheme over the better of the two that it combines, sr-nack and ec:mds (32, 8), at 400
 * Gbit/s and 25 ms with one packet of 4 KiB a chunk: the cells of the SDR-RDMA paper's figure 9, alone
 * and in bursts of 8 packets.
 *
 *   map      by the model, in every cell: how many times faster hybrid is by the mean, and by the 99.9th
 *            percentile (the 99th above 128 MiB); what it sends beyond the loss
 *   points   by the protocol in simulation, the same at points spread over the map, with the model's mean
 *
 * usage: bench_hybrid_sim [--json FILE] [--part NAME] [--only NUMBER] [--quick]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include <longhaul/model.h>

#include "message_memory.h"
#include "report.h"
#include "sim_pair.h"
#include "wire/roce_packet.h"

#define KIB         ((size_t)1 << 10)
#define MIB         ((size_t)1 << 20)
#define GIB         ((size_t)1 << 30)
#define RATE_BPS    400e9
#define RTT_S       25e-3
#define MTU         4096u
#define SEGMENT     (16 * MIB)
#define BURST       8.0
#define SEED        42
#define SLOTS_CODED 512u
#define WARM_CHUNKS 20000u /* until the loss is known, */
#define WARM_BURSTS 10u    /* and how long bursts are */
#define LARGE       (128 * MIB)
#define QUICK_SHARE 20u
#define SCHEMES     3u
#define HYBRID      2u

static const char *const schemes[SCHEMES] = {"sr-nack", "ec:mds,k=32,m=8", "hybrid"};
static const size_t sizes[] = {128 * KIB, 512 * KIB, 2 * MIB, 8 * MIB, 32 * MIB, 128 * MIB, GIB, 8 * GIB};
static const double losses[] = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1};
static const double bursts[] = {1, BURST};

#define SIZES  (sizeof sizes / sizeof sizes[0])
#define LOSSES (sizeof losses / sizeof losses[0])

struct point {
    size_t bytes;
    double loss;
    double burst;
    unsigned runs;
};

struct times {
    double mean;
    double tail;     /* 99.9 %, above 128 MiB 99 % */
    double overhead; /* sent beyond the message and what is lost of that */
};

static void die(const char *what)
{
    fprintf(stderr, "bench_hybrid_sim: %s: %s\n", what, lh_last_error());
    exit(1);
}

static double tail_share(size_t bytes)
{
    return bytes > LARGE ? 0.99 : 0.999;
}

/* ---- the model ---------------------------------------------------------------------------------------- */

static struct times predict(const char *text, const struct point *point)
{
    struct lh_model_scheme scheme;
    struct lh_model_times times;
    struct times out;
    const struct lh_model_path path = {
        .message_bytes = point->bytes,
        .chunk_bytes = MTU,
        .mtu_bytes = MTU,
        .header_bytes = ROCE_WRITE_IMM_OVERHEAD_V6,
        .bandwidth_bps = RATE_BPS,
        .rtt_s = RTT_S,
        .loss = point->loss,
        .burst_packets = point->burst,
        .segment_bytes = SEGMENT,
    };
    if (lh_model_scheme_parse(text, &scheme))
        die(text);
    scheme.timing = LH_MODEL_TIMING_LONGHAUL;
    if (lh_model_predict(&path, &scheme, &times) ||
        lh_model_quantile(&path, &scheme, tail_share(point->bytes), &out.tail))
        die(text);
    out.mean = times.mean_s;
    double share = times.overhead_bytes / (times.wire_bytes - times.overhead_bytes);
    out.overhead = share - point->loss / (1 - point->loss);
    return out;
}

/* ---- the protocol ------------------------------------------------------------------------------------- */

/* Each segment in flight holds memory for its parity at both ends, with a code of 25 % half as much as its
 * data: 256 segments, 4 GiB, keep the link busy for three round trips, and no code waits for as many.
 * Repeats may, of a chunk that is lost again and again. */
static uint32_t slots_for(const char *scheme, size_t segments)
{
    uint32_t slots = 8, maximum = strncmp(scheme, "ec:", 3) == 0 ? SLOTS_CODED : UINT32_MAX;
    while (slots < 2 * segments && slots < maximum) /* data and parity */
        slots *= 2;
    return slots;
}

static struct lh_stats sent_by(struct sim_pair *pair)
{
    struct lh_stats stats;
    if (lh_connection_stats(pair->sender, &stats))
        die("statistics");
    return stats;
}

static void move(struct sim_pair *pair, struct message_memory *memory, const struct point *point,
                 unsigned runs, double *seconds)
{
    for (unsigned i = 0; i < runs; i++) {
        message_memory_clear(memory, point->bytes);
        seconds[i] = sim_pair_message(pair, memory->from, memory->to, point->bytes);
        if (message_memory_same(memory, point->bytes))
            continue;
        fprintf(stderr, "bench_hybrid_sim: message %u is wrong\n", i);
        exit(1);
    }
}

static struct sim_pair_plan plan_of(const char *scheme, const struct point *point, const char *link,
                                    struct burst_loss *burst)
{
    size_t slot = point->bytes < SEGMENT ? point->bytes : SEGMENT;
    return (struct sim_pair_plan){
        .scheme = scheme,
        .link = link,
        .burst = point->burst > 1 ? burst : NULL,
        .seed = SEED,
        .slot_bytes = slot,
        .slots = slots_for(scheme, point->bytes / slot),
        .window_bytes = 2 * point->bytes > 4 * GIB ? 2 * point->bytes : 4 * GIB,
        .grain_ns = 2 * LH_NS_PER_US,
    };
}

static unsigned warm_runs(const struct point *point)
{
    double chunks = WARM_CHUNKS;
    if (point->burst > 1)
        chunks = fmax(chunks, WARM_BURSTS * point->burst / point->loss);
    return (unsigned)(chunks / (double)(point->bytes / MTU)) + 1;
}

static struct times measure(const char *scheme, const struct point *point)
{
    char link[96];
    struct burst_loss burst = {.packet_s = (MTU + ROCE_WRITE_IMM_OVERHEAD_V6) * 8 / RATE_BPS};
    snprintf(link, sizeof link, "rtt=25ms,rate=400Gbit,loss=%g,seed=%d", point->burst > 1 ? 0 : point->loss,
             SEED);
    burst_loss_init(&burst, SEED, point->loss, point->burst);
    struct sim_pair_plan plan = plan_of(scheme, point, link, &burst);
    struct message_memory memory = message_memory_open(point->bytes);
    unsigned warm = warm_runs(point);
    double *seconds = malloc((point->runs > warm ? point->runs : warm) * sizeof *seconds);
    struct sim_pair pair;
    if (!seconds)
        abort();
    sim_pair_open(&pair, &plan);
    move(&pair, &memory, point, warm, seconds);
    struct lh_stats before = sent_by(&pair);
    move(&pair, &memory, point, point->runs, seconds);
    struct lh_stats after = sent_by(&pair);
    sim_pair_close(&pair);
    message_memory_close(&memory);
    double chunks = (double)point->runs * ceil((double)point->bytes / MTU);
    double more = (double)(after.parity_chunks_sent - before.parity_chunks_sent) +
                  (double)(after.tx_retransmitted_packets - before.tx_retransmitted_packets);
    struct times times = {
        .mean = report_mean(seconds, point->runs),
        .tail = report_quantile(seconds, point->runs, tail_share(point->bytes)),
        .overhead = more / chunks - point->loss / (1 - point->loss),
    };
    free(seconds);
    return times;
}

/* ---- the map ------------------------------------------------------------------------------------------ */

static void size_text(size_t bytes, char text[24])
{
    bool large = bytes >= GIB, small = bytes < MIB;
    snprintf(text, 24, "%zu%s",
             bytes / (large   ? GIB
                      : small ? KIB
                              : MIB),
             large   ? "GiB"
             : small ? "KiB"
                     : "MiB");
}

static const char *const whats[] = {"mean", "tail", "overhead"};

static double value_of(const struct times times[SCHEMES], unsigned what)
{
    if (what == 0)
        return fmin(times[0].mean, times[1].mean) / times[HYBRID].mean;
    if (what == 1)
        return fmin(times[0].tail, times[1].tail) / times[HYBRID].tail;
    return times[HYBRID].overhead;
}

/* Sizes down, losses across: what bench/results/hybrid-figure9.gp reads. */
static void print_map(FILE *json, double burst, unsigned what)
{
    printf("\nhybrid, bursts of %g: %s\n\n%8s", burst, whats[what], "-");
    for (unsigned l = 0; l < LOSSES; l++)
        printf(" %8.0e", losses[l]);
    putchar('\n');
    for (unsigned s = SIZES; s-- > 0;) {
        char size[24], name[96];
        size_text(sizes[s], size);
        printf("%8s", size);
        for (unsigned l = 0; l < LOSSES; l++) {
            struct point point = {sizes[s], losses[l], burst, 0};
            struct times times[SCHEMES];
            for (unsigned i = 0; i < SCHEMES; i++)
                times[i] = predict(schemes[i], &point);
            printf(" %8.*f", what == 2 ? 4 : 3, value_of(times, what));
            snprintf(name, sizeof name, "hybrid_map_%s_loss_%.0e_burst_%g_%s", size, losses[l], burst,
                     whats[what]);
            report_line(json, name, value_of(times, what), what == 2 ? "share" : "times faster",
                        "better of sr-nack and ec:mds", 1, 1);
        }
        putchar('\n');
    }
}

/* ---- points ------------------------------------------------------------------------------------------- */

static const struct point points[] = {
    {128 * KIB, 1e-6, 1, 1000}, {128 * KIB, 1e-4, 1, 1000}, {128 * KIB, 1e-2, 1, 1000},
    {128 * KIB, 1e-1, 1, 1000}, {128 * KIB, 1e-3, 8, 1000}, {128 * KIB, 1e-2, 8, 1000},
    {MIB, 1e-5, 1, 1000},       {MIB, 1e-3, 1, 1000},       {MIB, 1e-2, 1, 1000},
    {MIB, 1e-1, 1, 1000},       {MIB, 1e-4, 8, 1000},       {MIB, 1e-2, 8, 1000},
    {MIB, 1e-1, 8, 1000},       {8 * MIB, 1e-6, 1, 1000},   {8 * MIB, 1e-4, 1, 1000},
    {8 * MIB, 1e-2, 1, 1000},   {8 * MIB, 1e-1, 1, 1000},   {8 * MIB, 1e-3, 8, 1000},
    {8 * MIB, 1e-2, 8, 1000},   {128 * MIB, 1e-6, 1, 100},  {128 * MIB, 1e-4, 1, 100},
    {128 * MIB, 1e-2, 1, 100},  {128 * MIB, 1e-1, 1, 60},   {128 * MIB, 1e-2, 8, 60},
    {GIB, 1e-5, 1, 10},         {GIB, 1e-3, 1, 10},         {GIB, 1e-2, 1, 10},
    {GIB, 1e-2, 8, 10},         {8 * GIB, 1e-4, 1, 2},      {8 * GIB, 1e-2, 1, 2},
};

#define POINTS (sizeof points / sizeof points[0])

static void print_point(FILE *json, unsigned number, struct point point, bool quick)
{
    char size[24], name[96];
    struct times times[SCHEMES];
    if (quick)
        point.runs = point.runs > QUICK_SHARE ? point.runs / QUICK_SHARE : 1;
    for (unsigned i = 0; i < SCHEMES; i++)
        times[i] = measure(schemes[i], &point);
    struct times model = predict("hybrid", &point);
    size_text(point.bytes, size);
    printf("%2u %7s %6.0e %5g %6u %9.3f %9.3f %9.3f %7.3f %9.3f %9.3f %9.3f %7.3f %8.4f %8.4f %7.3f\n",
           number, size, point.loss, point.burst, point.runs, times[0].mean * 1e3, times[1].mean * 1e3,
           times[2].mean * 1e3, value_of(times, 0), times[0].tail * 1e3, times[1].tail * 1e3,
           times[2].tail * 1e3, value_of(times, 1), times[HYBRID].overhead, model.overhead,
           model.mean / times[HYBRID].mean);
    fflush(stdout);
    for (unsigned what = 0; what < 3; what++) {
        snprintf(name, sizeof name, "hybrid_%s_loss_%.0e_burst_%g_%s", size, point.loss, point.burst,
                 whats[what]);
        report_line(json, name, value_of(times, what), what == 2 ? "share" : "times faster",
                    "better of sr-nack and ec:mds", 1, point.runs);
    }
}

static const char *option(int argc, char **argv, const char *name)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return argv[i + 1];
    return NULL;
}

int main(int argc, char **argv)
{
    FILE *json = report_open(argc, argv);
    const char *part = option(argc, argv, "--part"), *only = option(argc, argv, "--only");
    bool quick = strcmp(argv[argc - 1], "--quick") == 0;
    if (!only && (!part || strcmp(part, "map") == 0))
        for (unsigned b = 0; b < 2; b++)
            for (unsigned what = 0; what < 3; what++)
                print_map(json, bursts[b], what);
    if (part && strcmp(part, "points") != 0)
        return 0;
    printf("\nby the protocol (ms); tail: 99.9 %%, above 128 MiB 99 %%, of few runs the worst; x: times "
           "faster than the "
           "better\n\n%2s %7s %6s %5s %6s %9s %9s %9s %7s %9s %9s %9s %7s %8s %8s %7s\n",
           "", "message", "loss", "burst", "runs", "sr-nack", "ec:mds", "hybrid", "x", "tail", "tail",
           "tail", "x", "overhead", "model", "model/");
    for (unsigned i = 0; i < POINTS; i++)
        if (!only || strtoul(only, NULL, 10) == i)
            print_point(json, i, points[i], quick);
    if (json)
        fclose(json);
    return 0;
}
