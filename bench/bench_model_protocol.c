/*
 * The model beside the protocol that it models: the running protocol moves real bytes through a simulated
 * link, message after message, and lh_model_predict and lh_model_sample say what to expect of the same link.
 *
 * Both directions lose, but in rows only that of the data, which is the model's path. A percentile of some
 * thousand messages is itself uncertain, so it stands with the interval between those two of its messages
 * that hold the true one with 95 %. A mean differs when it is more than 5 % off and twice its standard
 * error, a 99.9th percentile when it is more than 10 % outside of that interval: such values have a star.
 *
 * The model knows the loss. hybrid measures it, so messages until it has do not count.
 *
 * usage: bench_model_protocol [--json FILE] [--quick] [--only NUMBER] [--paper] [--long-queue]
 *   --only        that point alone, with percentiles of both
 *   --paper       what the paper's own terms say, instead of Longhaul's
 *   --long-queue  the queue that a link has by default, 2 ms at its rate and 1 MiB at most, and for the model
 *                 the reordering window that the receiver measured behind it
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/model.h>

#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

#include "message_memory.h"
#include "report.h"
#include "sim_pair.h"
#include "wire/roce_packet.h"

#define KIB         ((size_t)1 << 10)
#define MIB         ((size_t)1 << 20)
#define MTU         4096u
#define SEED        42
#define QUICK_SHARE 10u /* of the messages */
#define SAMPLES     200000u
#define THREADS     2u
#define MEAN_LINE   0.05
#define TAIL_LINE   0.10
#define TAIL        0.999
#define WARM_CHUNKS 20000u /* until the loss is known, */
#define WARM_BURSTS 10u    /* and how long bursts are */

struct point {
    const char *scheme; /* as lh_attr takes it */
    size_t bytes;
    uint32_t chunk_packets;
    double rate_gbps;
    double rtt_ms;
    double loss;
    double burst; /* mean packets of a row of lost ones; 1: independent */
    unsigned runs;
    size_t segment_bytes; /* 0: the whole message */
};

static const struct point points[] = {
    /* a message much shorter than the round trip */
    {"sr-rto", 64 * KIB, 1, 10, 10, 1e-3, 1, 10000, 0},
    {"sr-nack", 64 * KIB, 1, 10, 10, 1e-3, 1, 10000, 0},
    {"sr-rto", 64 * KIB, 1, 4, 50, 3e-2, 1, 10000, 0},
    {"sr-nack", 64 * KIB, 1, 4, 50, 3e-2, 1, 10000, 0},
    {"ec:mds,k=32,m=8", 64 * KIB, 1, 10, 10, 1e-2, 1, 10000, 0},
    {"ec:xor,k=32,m=8", 64 * KIB, 1, 10, 10, 3e-2, 1, 10000, 0},
    {"ec:mds,k=16,m=2", 64 * KIB, 1, 4, 50, 3e-2, 1, 10000, 0},
    /* about a round trip at 4 Gbit/s and 1 ms, and many packets a chunk */
    {"sr-rto", MIB, 1, 4, 1, 1e-3, 1, 4000, 0},
    {"sr-nack", MIB, 1, 4, 1, 1e-3, 1, 4000, 0},
    {"sr-nack", MIB, 1, 4, 1, 3e-2, 1, 4000, 0},
    {"sr-rto", MIB, 16, 4, 1, 1e-3, 1, 4000, 0},
    {"sr-nack", MIB, 16, 4, 1, 1e-3, 1, 4000, 0},
    {"ec:mds,k=8,m=4", MIB, 4, 4, 1, 1e-2, 1, 4000, 0},
    {"ec:mds,k=32,m=8", MIB, 1, 4, 1, 3e-2, 1, 4000, 0},
    {"ec:xor,k=32,m=8", MIB, 1, 4, 1, 1e-2, 1, 4000, 0},
    /* 25 ms */
    {"sr-rto", MIB, 1, 100, 25, 1e-5, 1, 4000, 0},
    {"sr-rto", MIB, 1, 100, 25, 1e-4, 1, 4000, 0},
    {"sr-nack", MIB, 1, 100, 25, 1e-4, 1, 4000, 0},
    {"sr-rto", MIB, 1, 400, 25, 1e-2, 1, 4000, 0},
    {"sr-nack", MIB, 1, 400, 25, 1e-2, 1, 4000, 0},
    {"sr-nack", MIB, 1, 100, 25, 3e-2, 1, 4000, 0},
    {"ec:mds,k=32,m=8", MIB, 1, 100, 25, 1e-2, 1, 4000, 0},
    {"ec:mds,k=32,m=4", MIB, 1, 100, 25, 3e-2, 1, 4000, 0},
    {"ec:xor,k=32,m=8", MIB, 1, 100, 25, 1e-2, 1, 4000, 0},
    {"ec:xor,k=32,m=8,fallback=sr", MIB, 1, 100, 25, 1e-2, 1, 4000, 0},
    {"ec:mds,k=32,m=4,fallback=sr", MIB, 1, 100, 25, 3e-2, 1, 4000, 0},
    {"ec:mds,k=32,m=2,fallback=sr", 4 * MIB, 1, 40, 10, 3e-2, 1, 2000, 0},
    {"ec:xor,k=32,m=8", 4 * MIB, 1, 40, 10, 3e-2, 1, 2000, 0},
    /* longer than the round trip */
    {"sr-rto", 16 * MIB, 1, 100, 5, 1e-4, 1, 1000, 0},
    {"sr-nack", 16 * MIB, 1, 40, 5, 1e-3, 1, 1000, 0},
    {"sr-rto", 16 * MIB, 16, 40, 1, 1e-3, 1, 1000, 0},
    {"sr-nack", 16 * MIB, 1, 40, 1, 1e-2, 1, 1000, 0},
    {"ec:mds,k=32,m=8", 16 * MIB, 1, 40, 5, 1e-2, 1, 1000, 0},
    {"ec:xor,k=32,m=8", 16 * MIB, 1, 100, 50, 1e-3, 1, 1000, 0},
    {"sr-nack", 16 * MIB, 16, 400, 25, 1e-4, 1, 1000, 0},
    {"ec:mds,k=16,m=4", 16 * MIB, 16, 400, 25, 1e-3, 1, 1000, 0},
    /* segments of 4 MiB, as a connection has them unless told */
    {"sr-nack", 16 * MIB, 1, 100, 25, 1e-3, 1, 1000, 4 * MIB},
    {"ec:mds,k=32,m=8", 16 * MIB, 1, 40, 5, 1e-2, 1, 1000, 4 * MIB},
    {"ec:xor,k=32,m=8", 16 * MIB, 1, 100, 25, 3e-3, 1, 1000, 4 * MIB},
    /* bursts */
    {"sr-rto", MIB, 1, 100, 25, 1e-3, 8, 4000, 0},
    {"sr-nack", MIB, 1, 100, 25, 1e-3, 8, 4000, 0},
    {"sr-nack", MIB, 1, 100, 25, 1e-2, 32, 4000, 0},
    {"ec:mds,k=32,m=8", MIB, 1, 100, 25, 1e-2, 8, 4000, 0},
    {"ec:mds,k=32,m=8", MIB, 1, 100, 25, 1e-2, 32, 4000, 0},
    {"ec:xor,k=32,m=8", MIB, 1, 100, 25, 1e-3, 8, 4000, 0},
    {"ec:mds,k=32,m=8,fallback=sr", MIB, 1, 100, 25, 1e-2, 32, 4000, 0},
    {"ec:mds,k=32,m=8", 16 * MIB, 1, 100, 25, 1e-3, 256, 1000, 4 * MIB},
    /* repeats and parity: shorter than a round trip, longer, in chunks of several packets, bursts */
    {"hybrid", 64 * KIB, 1, 10, 10, 1e-2, 1, 10000, 0},
    {"hybrid", 64 * KIB, 1, 4, 50, 3e-2, 1, 10000, 0},
    {"hybrid", MIB, 1, 100, 25, 1e-4, 1, 4000, 0},
    {"hybrid", MIB, 1, 100, 25, 3e-2, 1, 4000, 0},
    {"hybrid", MIB, 1, 4, 1, 1e-2, 1, 4000, 0},
    {"hybrid", MIB, 16, 4, 1, 1e-3, 1, 4000, 0},
    {"hybrid", 4 * MIB, 1, 40, 10, 3e-2, 1, 2000, 0},
    {"hybrid", 16 * MIB, 1, 40, 5, 1e-2, 1, 1000, 4 * MIB},
    {"hybrid", 16 * MIB, 1, 40, 1, 1e-2, 1, 1000, 4 * MIB},
    {"hybrid", 16 * MIB, 1, 40, 1, 3e-2, 1, 1000, 4 * MIB},
    {"hybrid", 16 * MIB, 1, 100, 25, 1e-3, 1, 1000, 4 * MIB},
    {"hybrid", 16 * MIB, 16, 400, 25, 1e-4, 1, 1000, 4 * MIB},
    {"hybrid", MIB, 1, 100, 25, 1e-2, 8, 4000, 0},
    {"hybrid", 16 * MIB, 1, 100, 25, 1e-3, 8, 1000, 4 * MIB},
};
#define POINTS (sizeof points / sizeof points[0])

/* What one side says of a point, in seconds. */
struct times {
    double mean;
    double mean_error; /* standard error; of a formula 0 */
    double tail, tail_low, tail_high;
};

struct result {
    struct times protocol;
    struct times formula;
    struct times drawn; /* by Monte Carlo */
};

struct bench {
    FILE *json;
    bool quick;
    bool paper;
    bool long_queue;
    long only; /* -1: all */
};

static void die(const char *what)
{
    fprintf(stderr, "bench_model_protocol: %s: %s\n", what, lh_last_error());
    exit(1);
}

/* ---- the protocol ------------------------------------------------------------------------------------- */

static struct sim_pair_plan plan_of(const struct point *point, const char *link, struct burst_loss *burst)
{
    struct sim_pair_plan plan = {
        .scheme = point->scheme,
        .link = link,
        .burst = point->burst > 1 ? burst : NULL,
        .seed = SEED,
        .chunk_bytes = point->chunk_packets * MTU,
        .slot_bytes = point->segment_bytes ? point->segment_bytes : point->bytes,
        .slots = point->segment_bytes ? 32 : 8,
        .window_bytes = 64 * MIB,
        /* Some packets of the link, and far less than a round trip. */
        .grain_ns = (lh_time)(8 * MTU * 8 / point->rate_gbps),
    };
    if (plan.grain_ns > (lh_time)(point->rtt_ms * 1e6 / 500))
        plan.grain_ns = (lh_time)(point->rtt_ms * 1e6 / 500);
    if (plan.window_bytes < 4 * point->bytes)
        plan.window_bytes = 4 * point->bytes;
    if (plan.window_bytes < (uint64_t)(point->rate_gbps * point->rtt_ms * 1e6 / 4))
        plan.window_bytes = (uint64_t)(point->rate_gbps * point->rtt_ms * 1e6 / 4);
    return plan;
}

/* A fiftieth of a round trip, as control waits behind it. A longer queue would be a longer round trip. */
static double queue_bytes(const struct bench *bench, const struct point *point)
{
    if (bench->long_queue)
        return 0; /* the default */
    double bytes = point->rate_gbps * point->rtt_ms * 1e6 / 8 / 50;
    return fmin(fmax(bytes, 2 * MTU), MIB);
}

static double window_s(struct sim_pair *pair)
{
    struct lh_path_view path;
    if (lh_connection_path(pair->receiver, &path))
        die("path");
    return (double)path.reorder_window_ns / 1e9;
}

static unsigned warm_runs(const struct point *point)
{
    double chunks = WARM_CHUNKS;
    if (point->burst > 1)
        chunks = fmax(chunks, WARM_BURSTS * point->burst / point->loss);
    double each = (double)point->bytes / (point->chunk_packets * MTU);
    return strcmp(point->scheme, "hybrid") == 0 ? (unsigned)(chunks / each) + 1 : 0;
}

/* Returns the reordering window that the receiver measured, in the mean. */
static double move_messages(const struct bench *bench, const struct point *point, unsigned runs,
                            double *seconds)
{
    double window_sum = 0;
    char link[128];
    struct burst_loss burst = {.packet_s = (MTU + ROCE_WRITE_IMM_OVERHEAD_V6) * 8 / point->rate_gbps / 1e9};
    snprintf(link, sizeof link, "rtt=%gms,rate=%gGbit,queue=%.0f,loss=%g,seed=%d", point->rtt_ms,
             point->rate_gbps, queue_bytes(bench, point), point->burst > 1 ? 0 : point->loss, SEED);
    burst_loss_init(&burst, SEED, point->loss, point->burst);
    struct sim_pair_plan plan = plan_of(point, link, &burst);
    struct message_memory memory = message_memory_open(point->bytes);
    struct sim_pair pair;
    sim_pair_open(&pair, &plan);
    for (unsigned warm = warm_runs(point); warm > 0; warm--)
        sim_pair_message(&pair, memory.from, memory.to, point->bytes);
    for (unsigned i = 0; i < runs; i++) {
        message_memory_clear(&memory, point->bytes);
        seconds[i] = sim_pair_message(&pair, memory.from, memory.to, point->bytes);
        if (!message_memory_same(&memory, point->bytes)) {
            fprintf(stderr, "bench_model_protocol: %s: message %u is wrong\n", point->scheme, i);
            exit(1);
        }
        window_sum += window_s(&pair);
    }
    sim_pair_close(&pair);
    message_memory_close(&memory);
    return window_sum / runs;
}

/* How many of `runs` messages may be above the true percentile: the binomial's 2.5 % and 97.5 %. */
static void above_range(unsigned runs, unsigned *minimum, unsigned *maximum)
{
    double chance = pow(TAIL, runs);
    double sum = chance;
    *minimum = 0;
    for (unsigned above = 0; above < runs; above++) {
        if (sum < 0.025)
            *minimum = above + 1;
        *maximum = above + 1;
        if (sum >= 0.975)
            return;
        chance *= (double)(runs - above) / (above + 1) * (1 - TAIL) / TAIL;
        sum += chance;
    }
}

static struct times times_of(double *seconds, unsigned runs)
{
    struct times times = {.mean = report_mean(seconds, runs)};
    double square = 0;
    unsigned minimum = 0;
    unsigned maximum = 0;
    for (unsigned i = 0; i < runs; i++)
        square += (seconds[i] - times.mean) * (seconds[i] - times.mean);
    times.mean_error = sqrt(square / runs / runs);
    qsort(seconds, runs, sizeof *seconds, report_compare);
    above_range(runs, &minimum, &maximum);
    unsigned rank = (unsigned)ceil(TAIL * runs); /* nearest rank */
    times.tail = seconds[rank - 1];
    times.tail_low = maximum < runs ? seconds[runs - 1 - maximum] : seconds[0];
    times.tail_high = minimum > 0 ? seconds[runs - minimum] : INFINITY; /* too few to bound it */
    return times;
}

/* ---- the model ---------------------------------------------------------------------------------------- */

static struct lh_model_scheme scheme_of(const struct bench *bench, const struct point *point)
{
    struct lh_model_scheme scheme;
    if (lh_model_scheme_parse(point->scheme, &scheme))
        die(point->scheme);
    scheme.timing = bench->paper ? LH_MODEL_TIMING_PAPER : LH_MODEL_TIMING_LONGHAUL;
    return scheme;
}

static struct lh_model_path path_of(const struct point *point)
{
    return (struct lh_model_path){.message_bytes = point->bytes,
                                  .chunk_bytes = point->chunk_packets * MTU,
                                  .mtu_bytes = MTU,
                                  .header_bytes = ROCE_WRITE_IMM_OVERHEAD_V6,
                                  .bandwidth_bps = point->rate_gbps * 1e9,
                                  .rtt_s = point->rtt_ms / 1e3,
                                  .loss = point->loss,
                                  .burst_packets = point->burst,
                                  .segment_bytes = point->segment_bytes};
}

static void ask_model(const struct bench *bench, const struct point *point, double window, double *seconds,
                      struct result *result)
{
    const struct lh_model_scheme scheme = scheme_of(bench, point);
    struct lh_model_path path = path_of(point);
    path.reorder_window_s = window;
    struct lh_model_times times;
    struct lh_model_summary summary;
    if (lh_model_predict(&path, &scheme, &times) ||
        lh_model_sample(&path, &scheme, SEED, THREADS, seconds, SAMPLES) ||
        lh_model_summarize(seconds, SAMPLES, &summary))
        die(point->scheme);
    result->formula = (struct times){.mean = times.mean_s, .tail = times.p999_s};
    result->drawn =
        (struct times){.mean = summary.mean_s, .mean_error = summary.mean_error_s, .tail = summary.p999_s};
}

static double *memory_for(size_t count)
{
    double *seconds = malloc(count * sizeof *seconds);
    if (!seconds)
        abort();
    return seconds;
}

static unsigned runs_of(const struct bench *bench, const struct point *point)
{
    return bench->quick ? point->runs / QUICK_SHARE : point->runs;
}

static void print_shares(const struct point *point, double *protocol, unsigned runs, double *model)
{
    static const double shares[] = {0.01, 0.1,  0.25, 0.5,   0.75,  0.9,
                                    0.95, 0.98, 0.99, 0.995, 0.999, 0.9999};
    qsort(model, SAMPLES, sizeof *model, report_compare);
    printf("%7s %10s %10s   (in round trips, less the first)\n", "share", "protocol", "model");
    for (unsigned i = 0; i < sizeof shares / sizeof *shares; i++) {
        double a = protocol[(unsigned)(shares[i] * runs)];
        double b = model[(unsigned)(shares[i] * SAMPLES)];
        printf("%7g %10.4f %10.4f %10.4f %10.4f\n", shares[i], a * 1e3, b * 1e3,
               a * 1e3 / point->rtt_ms - 1, b * 1e3 / point->rtt_ms - 1);
    }
}

static struct result measure(const struct bench *bench, const struct point *point)
{
    struct result result;
    unsigned runs = runs_of(bench, point);
    double *seconds = memory_for(runs);
    double *drawn = memory_for(SAMPLES);
    double window = move_messages(bench, point, runs, seconds);
    result.protocol = times_of(seconds, runs);
    ask_model(bench, point, bench->long_queue ? window : 0, drawn, &result);
    if (bench->only >= 0)
        print_shares(point, seconds, runs, drawn);
    free(drawn);
    free(seconds);
    return result;
}

/* ---- tables ------------------------------------------------------------------------------------------- */

static bool mean_differs(const struct times *protocol, const struct times *model)
{
    return fabs(model->mean / protocol->mean - 1) > MEAN_LINE + 2 * protocol->mean_error / protocol->mean;
}

/* A distribution has gaps, a timeout wide: where the percentile stands in one, its interval goes over it. */
static bool tail_differs(const struct times *protocol, const struct times *model)
{
    return model->tail < protocol->tail_low * (1 - TAIL_LINE) ||
           model->tail > protocol->tail_high * (1 + TAIL_LINE);
}

static void print_titles(void)
{
    printf("%2s %-28s %8s %4s %5s %4s %6s %3s %6s | %8s %5s %8s %6s %6s | %8s %17s %8s %6s %6s\n", "",
           "scheme", "message", "pkts", "Gbit", "RTT", "loss", "row", "runs", "mean", "+-%", "formula",
           "ratio", "drawn", "p99.9", "interval", "formula", "ratio", "drawn");
}

static void print_row(unsigned number, const struct point *point, unsigned runs,
                      const struct result *result)
{
    const struct times *protocol = &result->protocol;
    const struct times *formula = &result->formula;
    const struct times *drawn = &result->drawn;
    char size[24];
    snprintf(size, sizeof size, point->bytes < MIB ? "%zuKiB" : "%zuMiB",
             point->bytes / (point->bytes < MIB ? KIB : MIB));
    printf("%2u %-28s %8s %4u %5g %4g %6g %3g %6u | %8.3f %5.2f %8.3f %6.3f %6.3f%c| ", number,
           point->scheme, size, point->chunk_packets, point->rate_gbps, point->rtt_ms, point->loss,
           point->burst, runs, protocol->mean * 1e3, protocol->mean_error / protocol->mean * 100,
           formula->mean * 1e3, formula->mean / protocol->mean, drawn->mean / protocol->mean,
           mean_differs(protocol, formula) || mean_differs(protocol, drawn) ? '*' : ' ');
    printf("%8.2f %8.2f-%8.2f %8.2f %6.3f %6.3f%c\n", protocol->tail * 1e3, protocol->tail_low * 1e3,
           protocol->tail_high * 1e3, formula->tail * 1e3, formula->tail / protocol->tail,
           drawn->tail / protocol->tail,
           tail_differs(protocol, formula) || tail_differs(protocol, drawn) ? '*' : ' ');
    fflush(stdout);
}

static void report_point(const struct bench *bench, const struct point *point, unsigned runs,
                         const struct result *result)
{
    char name[160];
    int length = snprintf(name, sizeof name, "model_protocol_%s_%zuKiB_%u_%gGbit_%gms_loss_%g_row_%g",
                          point->scheme, point->bytes / KIB, point->chunk_packets, point->rate_gbps,
                          point->rtt_ms, point->loss, point->burst);
    for (char *c = name; *c; c++)
        if (strchr(":,=", *c))
            *c = '_';
    snprintf(name + length, sizeof name - (size_t)length, "_mean");
    report_line(bench->json, name, result->protocol.mean * 1e3, "ms", "model", result->formula.mean * 1e3,
                runs);
    snprintf(name + length, sizeof name - (size_t)length, "_p999");
    report_line(bench->json, name, result->protocol.tail * 1e3, "ms", "model", result->formula.tail * 1e3,
                runs);
}

/* ---- two processes ------------------------------------------------------------------------------------ */

#define PROCESSES 2u

/* One of them: every second point, as bytes into a pipe. */
static void measure_share(const struct bench *bench, unsigned process, int out)
{
    for (unsigned i = process; i < POINTS; i += PROCESSES) {
        struct result result = measure(bench, &points[i]);
        if (write(out, &result, sizeof result) != (ssize_t)sizeof result)
            exit(1);
    }
}

static void start(const struct bench *bench, unsigned process, int *in)
{
    int ends[2];
    if (pipe(ends) != 0)
        abort();
    pid_t child = fork();
    if (child < 0)
        abort();
    if (child == 0) {
        close(ends[0]);
        measure_share(bench, process, ends[1]);
        _exit(0);
    }
    close(ends[1]);
    *in = ends[0];
}

static void run_all(const struct bench *bench)
{
    int in[PROCESSES];
    for (unsigned process = 0; process < PROCESSES; process++)
        start(bench, process, &in[process]);
    print_titles();
    for (unsigned i = 0; i < POINTS; i++) {
        struct result result;
        if (read(in[i % PROCESSES], &result, sizeof result) != (ssize_t)sizeof result) {
            fprintf(stderr, "bench_model_protocol: point %u failed\n", i);
            exit(1);
        }
        print_row(i, &points[i], runs_of(bench, &points[i]), &result);
        report_point(bench, &points[i], runs_of(bench, &points[i]), &result);
    }
    for (unsigned process = 0; process < PROCESSES; process++)
        wait(NULL);
}

int main(int argc, char **argv)
{
    struct bench bench = {.json = report_open(argc, argv), .only = -1};
    for (int i = 1; i < argc; i++) {
        bench.quick |= strcmp(argv[i], "--quick") == 0;
        bench.paper |= strcmp(argv[i], "--paper") == 0;
        bench.long_queue |= strcmp(argv[i], "--long-queue") == 0;
        if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            bench.only = strtol(argv[i + 1], NULL, 10);
    }
    if (bench.only >= (long)POINTS) {
        fprintf(stderr, "bench_model_protocol: there is no point %ld; use 0 to %zu\n", bench.only,
                POINTS - 1);
        return 2;
    }
    if (bench.only < 0) {
        run_all(&bench);
    } else {
        const struct point *point = &points[bench.only];
        struct result result = measure(&bench, point);
        print_titles();
        print_row((unsigned)bench.only, point, runs_of(&bench, point), &result);
    }
    if (bench.json)
        fclose(bench.json);
    return 0;
}
