/*
 * How long the model takes: a value by formula, and figure 9 of the SDR-RDMA paper by Monte Carlo.
 *
 * The map is 8 message sizes by 8 loss rates, 3 schemes, 10,000 samples each, by two threads. A formula is
 * looked at over the same map and its corners: one chunk to 10^9, loss from 10^-12 to one half.
 *
 * usage: bench_model [--json FILE]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/model.h>

#include <math.h>
#include <time.h>

#include "report.h"

#define SAMPLES 10000
#define REPEATS 20 /* of a call, of which the fastest counts: others use this machine too */
#define ROUNDS  3  /* of the map, likewise */

static const char *const schemes[] = {"sr-rto", "sr-nack", "ec:mds,k=32,m=8,fallback=sr"};
#define SCHEMES (sizeof schemes / sizeof *schemes)

static double samples[SAMPLES];

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static struct lh_model_path path_of(double bytes, double loss, uint64_t chunk_bytes)
{
    return (struct lh_model_path){.message_bytes = (uint64_t)bytes,
                                  .chunk_bytes = chunk_bytes,
                                  .mtu_bytes = 4096,
                                  .bandwidth_bps = 400e9,
                                  .rtt_s = 25e-3,
                                  .loss = loss,
                                  .loss_of_chunk = true};
}

static struct lh_model_scheme scheme_of(const char *text)
{
    struct lh_model_scheme scheme;
    if (lh_model_scheme_parse(text, &scheme) != 0) {
        fprintf(stderr, "bench_model: %s\n", lh_last_error());
        exit(1);
    }
    return scheme;
}

static void must(int failed)
{
    if (!failed)
        return;
    fprintf(stderr, "bench_model: %s\n", lh_last_error());
    exit(1);
}

/* Mean and three percentiles in one call, in microseconds. */
static double predict_us(const struct lh_model_path *path, const struct lh_model_scheme *scheme)
{
    double best = INFINITY;
    for (int i = 0; i < REPEATS; i++) {
        struct lh_model_times times;
        double start = now_s();
        must(lh_model_predict(path, scheme, &times));
        best = fmin(best, now_s() - start);
    }
    return best * 1e6;
}

/* One percentile, in microseconds. */
static double quantile_us(const struct lh_model_path *path, const struct lh_model_scheme *scheme)
{
    double best = INFINITY;
    for (int i = 0; i < REPEATS; i++) {
        double seconds;
        double start = now_s();
        must(lh_model_quantile(path, scheme, 0.999, &seconds));
        best = fmin(best, now_s() - start);
    }
    return best * 1e6;
}

struct cost {
    double times[128];
    unsigned count;
    double slowest;
    double at_loss;
    double at_chunks;
};

static void add_cost(struct cost *cost, double us, const struct lh_model_path *path)
{
    cost->times[cost->count++ % 128] = us;
    if (us <= cost->slowest)
        return;
    cost->slowest = us;
    cost->at_loss = path->loss;
    cost->at_chunks = (double)path->message_bytes / (double)path->chunk_bytes;
}

static void print_cost(struct cost *cost)
{
    double typical = report_quantile(cost->times, cost->count < 128 ? cost->count : 128, 0.5);
    printf(" %8.1f %8.1f (%.3g, %.3g)", typical, cost->slowest, cost->at_loss, cost->at_chunks);
}

static void formulas(FILE *json)
{
    static const char *const all[] = {
        "sr-rto", "sr-nack", "ec:mds", "ec:xor", "ec:mds,fallback=sr", "ec:xor,fallback=sr", "gbn"};
    printf("\n  microseconds by formula: p99.9 alone, and mean, p50, p99, p99.9 and bytes in one call;\n"
           "  typical, slowest (at loss, chunks of 4 KiB)\n\n");
    for (unsigned s = 0; s < sizeof all / sizeof *all; s++) {
        struct lh_model_scheme scheme = scheme_of(all[s]);
        struct cost one = {0};
        struct cost call = {0};
        for (double chunks = 1; chunks <= 1.1e9; chunks *= 31.6227766)
            for (double loss = 1e-12; loss <= 0.5; loss = loss < 1e-2 ? loss * 50 : loss * 3) {
                struct lh_model_path path = path_of(floor(chunks) * 4096, loss, 4096);
                add_cost(&one, quantile_us(&path, &scheme), &path);
                add_cost(&call, predict_us(&path, &scheme), &path);
            }
        printf("  %-20s", all[s]);
        print_cost(&one);
        print_cost(&call);
        printf("\n");
        char name[64];
        snprintf(name, sizeof name, "model_formula_%s_p999_slowest", all[s]);
        report_line(json, name, one.slowest, "us", "goal, at most", 50, REPEATS);
        snprintf(name, sizeof name, "model_formula_%s_all_slowest", all[s]);
        report_line(json, name, call.slowest, "us", "goal for one value, at most", 50, REPEATS);
    }
}

static double map_s(uint64_t chunk_bytes)
{
    double start = now_s();
    for (unsigned s = 0; s < SCHEMES; s++) {
        struct lh_model_scheme scheme = scheme_of(schemes[s]);
        for (int size = 0; size < 8; size++)
            for (int loss = 0; loss < 8; loss++) {
                double bytes =
                    floor(131072 * pow(65536, size / 7.0) / (double)chunk_bytes) * (double)chunk_bytes;
                struct lh_model_path path = path_of(bytes, pow(10, -6 + 5 * loss / 7.0), chunk_bytes);
                struct lh_model_summary summary;
                must(lh_model_sample(&path, &scheme, 1, 2, samples, SAMPLES));
                must(lh_model_summarize(samples, SAMPLES, &summary));
            }
    }
    return now_s() - start;
}

int main(int argc, char **argv)
{
    FILE *json = report_open(argc, argv);
    formulas(json);
    printf("\n  figure 9 by Monte Carlo: 8 sizes, 8 loss rates, 3 schemes, %d samples each, 2 threads\n\n",
           SAMPLES);
    for (uint64_t chunk = 4096; chunk <= 65536; chunk *= 16) {
        double best = INFINITY;
        for (int i = 0; i < ROUNDS; i++)
            best = fmin(best, map_s(chunk));
        printf("  chunks of %2u KiB       %6.3f s\n", (unsigned)(chunk >> 10), best);
        char name[64];
        snprintf(name, sizeof name, "model_figure9_%uKiB", (unsigned)(chunk >> 10));
        report_line(json, name, best, "s", "goal, at most", 2, ROUNDS);
    }
    if (json)
        fclose(json);
    return 0;
}
