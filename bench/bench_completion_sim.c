/*
 * Completion time at 400 Gbit/s and 25 ms, in simulation, beside the SDR-RDMA paper's formula.
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
#include "completion_formula.h"
#include "message_memory.h"
#include "report.h"
#include "sim_pair.h"
#include "wire/roce_packet.h"

#define RATE_BPS   400e9
#define RTT_S      25e-3
#define CHUNK      4096.0
#define WIRE_CHUNK (CHUNK + ROCE_WRITE_IMM_OVERHEAD_V6)
#define SEED       42

static void move_messages(const char *scheme, double loss, size_t bytes, double *times, unsigned count)
{
    char link[128];
    snprintf(link, sizeof link, "rtt=25ms,rate=400Gbit,loss=%g,seed=%u", loss, SEED);
    struct sim_pair_plan plan = {
        .scheme = scheme,
        .link = link,
        .seed = SEED,
        .slot_bytes = bytes,
        .slots = 4,
        .window_bytes = (uint64_t)4 << 30,
        .grain_ns = 2 * LH_NS_PER_US,
    };
    struct message_memory memory = message_memory_open(bytes);
    struct sim_pair pair;
    sim_pair_open(&pair, &plan);
    for (unsigned i = 0; i < count; i++) {
        message_memory_clear(&memory, bytes);
        times[i] = sim_pair_message(&pair, memory.from, memory.to, bytes);
        if (!message_memory_same(&memory, bytes)) {
            fprintf(stderr, "bench_completion_sim: message %u is wrong\n", i);
            exit(1);
        }
    }
    sim_pair_close(&pair);
    message_memory_close(&memory);
}

static void measure(FILE *json, const char *scheme, double rtos, double loss, size_t bytes, unsigned count)
{
    double *times = malloc(count * sizeof *times);
    if (!times)
        abort();
    move_messages(scheme, loss, bytes, times, count);
    const struct formula_path path = {WIRE_CHUNK * 8 / RATE_BPS, RTT_S, loss};
    double chunks = (double)bytes / CHUNK;
    double ideal = formula_ideal(&path, chunks);
    double mean = report_mean(times, count);
    double tail = report_quantile(times, count, 0.999);
    double mean_paper = formula_sr_mean(&path, rtos * RTT_S, chunks);
    double tail_paper = formula_sr_quantile(&path, rtos * RTT_S, chunks, 0.999);
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
