/*
 * Completion time at 400 Gbit/s over 3,750 km, in simulation, beside the SDR-RDMA paper's formula.
 *
 * The running protocol moves real bytes through the simulated link; the formula (section 4.2.2 and appendix
 * A) is evaluated for the same chunk (one packet of 4 KiB), rate, round trip and loss, with RTO = 3 RTT for
 * sr-rto and 1 RTT for sr-nack. The formula is a lower bound for sr-nack as the paper counts it: its RTO of
 * one round trip leaves no reordering window.
 *
 * usage: bench_completion_sim [--json FILE] [--quick]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include <longhaul/longhaul.h>

#include "base/prng.h"
#include "fabric/sim/sim.h"
#include "report.h"
#include "wire/roce.h"

#define RATE_BPS   400e9
#define RTT_S      25e-3
#define CHUNK      4096.0
#define WIRE_CHUNK (CHUNK + ROCE_WRITE_IMM_OVERHEAD_V6)

/* ---- the paper's distribution of the completion time ---- */

struct formula {
    double chunks;
    double loss;
    double inject_s;   /* T_INJ */
    double overhead_s; /* O = RTO + T_INJ */
};

/* P(max X_i < q): chunks whose start lies in ((q - k O), (q - (k - 1) O)] have had k transmissions, so each
 * is there with probability 1 - p^k. */
static double formula_cdf(const struct formula *f, double q)
{
    if (q <= f->chunks * f->inject_s)
        return 0;
    double log_sum = 0;
    double upper = f->chunks; /* chunks 1 … upper start at or before q - (k - 1) O */
    for (int k = 1; upper >= 1; k++) {
        double lower = floor((q - k * f->overhead_s) / f->inject_s);
        lower = lower < 0 ? 0 : lower > f->chunks ? f->chunks : lower;
        log_sum += (upper - lower) * log1p(-pow(f->loss, k));
        upper = lower;
    }
    return exp(log_sum);
}

static double formula_quantile(const struct formula *f, double p)
{
    double low = f->chunks * f->inject_s;
    double high = low + 200 * f->overhead_s;
    for (int i = 0; i < 200; i++) { /* bisection to the last bit */
        double middle = (low + high) / 2;
        *(formula_cdf(f, middle) < p ? &low : &high) = middle;
    }
    return high + RTT_S;
}

/* E[max X] = ∫ (1 - CDF); the integrand is smooth on the scale of T_INJ and dies out after some O. */
static double formula_mean(const struct formula *f)
{
    double start = f->chunks * f->inject_s;
    double step = f->overhead_s / 20000;
    double sum = start;
    for (double q = start;; q += step) {
        double tail = 1 - formula_cdf(f, q + step / 2);
        sum += tail * step;
        if (tail < 1e-12)
            return sum + RTT_S;
    }
}

/* ---- the running protocol ---- */

struct pair {
    struct sim_world *world;
    struct lh_connection *sender;
    struct lh_connection *receiver;
};

static void die(const char *what)
{
    fprintf(stderr, "bench_completion_sim: %s: %s\n", what, lh_last_error());
    exit(1);
}

static struct lh_connection *open_end(const char *device, const char *scheme, size_t bytes)
{
    struct lh_attr attr;
    lh_attr_init(&attr);
    attr.device = device;
    attr.reliability = scheme;
    attr.workers = LH_NO_WORKERS;
    attr.mtu_bytes = 4096;
    attr.slot_bytes = bytes;
    attr.slots = 4;
    attr.window_bytes = (uint64_t)4 << 30;
    struct lh_connection *connection;
    if (lh_open(&attr, &connection))
        die(device);
    return connection;
}

/* Lets both ends act until nothing is due now, then moves time on. */
static void turn(struct pair *pair)
{
    lh_time next_a;
    lh_time next_b;
    if (lh_progress(pair->sender, &next_a) || lh_progress(pair->receiver, &next_b))
        die("progress");
    lh_time now = sim_world_now(pair->world);
    lh_time next = next_a < next_b ? next_a : next_b;
    lh_time event = sim_world_next_event(pair->world);
    next = event < next ? event : next;
    if (next > now && next != LH_TIME_NEVER)
        sim_world_advance(pair->world, next);
}

static void attach(struct lh_connection *to, struct lh_connection *from)
{
    char blob[LH_BLOB_MAX];
    size_t bytes = sizeof blob;
    if (lh_blob(from, blob, &bytes) || lh_attach(to, blob, bytes))
        die("attach");
}

static struct pair pair_open(const char *scheme, double loss, size_t bytes, uint64_t seed)
{
    char text[128];
    struct lh_link_spec link;
    snprintf(text, sizeof text, "rtt=25ms,rate=400Gbit,loss=%g,seed=%llu", loss, (unsigned long long)seed);
    if (lh_link_parse(text, &link))
        die(text);
    struct pair pair = {.world = sim_world_create("bench", seed, &link)};
    if (!pair.world)
        die("world");
    pair.sender = open_end("sim:bench/0", scheme, bytes);
    pair.receiver = open_end("sim:bench/1", scheme, bytes);
    attach(pair.sender, pair.receiver);
    attach(pair.receiver, pair.sender);
    /* Some round trips, so that the path is measured as on any connection that is not brand-new. */
    for (lh_time end = sim_world_now(pair.world) + 200 * LH_NS_PER_MS; sim_world_now(pair.world) < end;)
        turn(&pair);
    return pair;
}

static void pair_close(struct pair *pair)
{
    lh_close(pair->sender);
    lh_close(pair->receiver);
    sim_world_destroy(pair->world);
}

static double one_message(struct pair *pair, const uint8_t *from, uint8_t *to, size_t bytes)
{
    struct lh_request *send;
    struct lh_request *recv;
    struct lh_result sent = {0};
    if (lh_recv(pair->receiver, to, bytes, NULL, &recv) || lh_send(pair->sender, from, bytes, NULL, &send))
        die("post");
    while (lh_test(send, &sent) == 0 || lh_test(recv, NULL) == 0)
        turn(pair);
    if (sent.error || memcmp(from, to, bytes) != 0) {
        fprintf(stderr, "bench_completion_sim: message is wrong: error %d\n", sent.error);
        exit(1);
    }
    lh_request_free(send);
    lh_request_free(recv);
    memset(to, 0, bytes);
    return (double)(sent.ended_ns - sent.started_ns) / 1e9;
}

static void measure(FILE *json, const char *scheme, double rtos, double loss, size_t bytes, unsigned count)
{
    double *times = malloc(count * sizeof *times);
    uint8_t *from = malloc(bytes);
    uint8_t *to = calloc(1, bytes);
    if (!times || !from || !to)
        abort();
    struct lh_prng prng;
    lh_prng_seed(&prng, bytes);
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        uint64_t word = lh_prng_next(&prng);
        memcpy(from + i, &word, 8);
    }
    struct pair pair = pair_open(scheme, loss, bytes, 42);
    for (unsigned i = 0; i < count; i++)
        times[i] = one_message(&pair, from, to, bytes);
    pair_close(&pair);
    struct formula formula = {(double)bytes / CHUNK, loss, WIRE_CHUNK * 8 / RATE_BPS, 0};
    formula.overhead_s = rtos * RTT_S + formula.inject_s;
    double ideal = formula.chunks * formula.inject_s + RTT_S;
    double mean = report_mean(times, count);
    double tail = report_quantile(times, count, 0.999);
    double mean_paper = loss > 0 ? formula_mean(&formula) : ideal;
    double tail_paper = loss > 0 ? formula_quantile(&formula, 0.999) : ideal;
    printf("%-8s %7.0f MiB %8g %9.2f %9.2f %9.2f %7.3f %9.2f %9.2f %7.3f\n", scheme,
           (double)bytes / 1048576, loss, ideal * 1e3, mean * 1e3, mean_paper * 1e3, mean / mean_paper,
           tail * 1e3, tail_paper * 1e3, tail / tail_paper);
    fflush(stdout);
    char name[96];
    snprintf(name, sizeof name, "completion_sim_400g_%s_%.0fMiB_loss_%g_mean", scheme,
             (double)bytes / 1048576, loss);
    report_line(json, name, mean * 1e3, "ms", "SDR-RDMA formula", mean_paper * 1e3, count);
    snprintf(name, sizeof name, "completion_sim_400g_%s_%.0fMiB_loss_%g_p999", scheme,
             (double)bytes / 1048576, loss);
    report_line(json, name, tail * 1e3, "ms", "SDR-RDMA formula", tail_paper * 1e3, count);
    free(times);
    free(from);
    free(to);
}

int main(int argc, char **argv)
{
    FILE *json = report_open(argc, argv);
    bool quick = argc > 1 && strcmp(argv[argc - 1], "--quick") == 0;
    const double losses[] = {0, 1e-5, 1e-4, 1e-3, 1e-2};
    const struct {
        size_t bytes;
        unsigned count;
    } sizes[] = {{(size_t)1 << 20, 1000}, {(size_t)16 << 20, 400}, {(size_t)128 << 20, 100}};
    printf("Completion time at 400 Gbit/s, RTT 25 ms, in simulation, beside the paper's formula (ms)\n\n");
    printf("%-8s %11s %8s %9s %9s %9s %7s %9s %9s %7s\n", "scheme", "message", "loss", "ideal", "mean",
           "formula", "ratio", "p99.9", "formula", "ratio");
    for (size_t s = 0; s < 3; s++)
        for (size_t l = 0; l < 5; l++) {
            unsigned count = quick ? sizes[s].count / 20 : sizes[s].count;
            measure(json, "sr-rto", 3, losses[l], sizes[s].bytes, losses[l] > 0 ? count : 3);
            measure(json, "sr-nack", 1, losses[l], sizes[s].bytes, losses[l] > 0 ? count : 3);
        }
    if (json)
        fclose(json);
    return 0;
}
