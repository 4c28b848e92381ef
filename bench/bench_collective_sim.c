/*
 * bench_collective_sim.c - figure 13 of the SDR-RDMA paper by the protocol: ring AllReduce of datacenters in
 * the simulator, beside the model of appendix C.
 *
 * Each datacenter is a host below a leaf. Every two are 25 ms apart over one spine, and each of the two links
 * between them loses half of what the path loses. Two operations follow each other, host by host, a second
 * apart; the first opens the connections. An operation takes what it adds to the end of the one before it.
 * The model, of two operations likewise: 2 N - 2 rounds of dependent messages, each of which takes a sample
 * of lh_model_sample(3). Here a receive is posted when its message starts, so that a clear-to-send that is
 * lost delays it by a round trip and an eighth: the samples have that, too. Control messages are lost as
 * packets are. (Groups post receives ahead.)
 *
 * The last table is the model alone, with the figure's 128 MiB and rate.
 *
 *     bench_collective_sim [--seeds N] [--json FILE]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/model.h>
#include <longhaul/netsim.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATACENTERS 8u /* at most */
#define MESSAGE     (UINT64_C(1) << 20)
#define RATE_BPS    10e9
#define PAUSE_PS    UINT64_C(1000000000000) /* workload.compute */
#define FIGURE      (UINT64_C(128) << 20)   /* of figure 13: bytes of the buffer, and the rate */
#define FIGURE_BPS  400e9
#define RTT_S       25e-3
#define PACKET      4096u
#define HEADER      78u /* transport.header */
#define SLOT_BYTES  (UINT64_C(4) << 20)
#define SAMPLES     100000u
#define SEEDS_MAX   100000u

struct cell {
    uint32_t datacenters;
    double loss;
    const char *scheme;
};

#define SR "sr-rto"
#define EC "ec:mds,k=32,m=8"

static const struct cell cells[] = {
    {4, 1e-4, SR}, {4, 1e-4, EC}, {4, 1e-3, SR}, {4, 1e-3, EC}, {4, 1e-2, SR},
    {4, 1e-2, EC}, {2, 1e-3, SR}, {2, 1e-3, EC}, {8, 1e-3, SR}, {8, 1e-3, EC},
};

static void fail(const char *what)
{
    fprintf(stderr, "bench_collective_sim: %s: %s\n", what, lh_last_error());
    exit(1);
}

/* ---- the protocol ------------------------------------------------------------------------------------ */

static void set(struct lh_netsim_config *config, const char *key, const char *value)
{
    if (lh_netsim_config_set(config, key, value) != 0)
        fail(key);
}

static struct lh_netsim_config *configure(const struct cell *cell)
{
    static const char *const settings[][2] = {
        {"topology.kind", "leaf-spine"},
        {"topology.spines", "1"},
        {"topology.hosts", "1"},
        {"topology.rate", "10Gbit"},
        {"topology.delay", "10ns"},
        {"topology.core_delay", "6.25ms"},
        {"switch.buffer", "1GB"},
        {"transport.kind", "longhaul"},
        {"transport.rate", "10Gbit"},
        {"workload.kind", "collective"},
        {"workload.collective", "allreduce"},
        {"workload.schedule", "ring"},
        {"workload.wait", "steps"},
        {"workload.rounds", "2"},
        {"workload.compute", "1s"},
    };
    struct lh_netsim_config *config;
    char link[64], number[32];
    if (lh_netsim_config_create(&config) != 0)
        fail("configuration");
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        set(config, settings[i][0], settings[i][1]);
    snprintf(number, sizeof number, "%u", cell->datacenters);
    set(config, "topology.leaves", number);
    snprintf(number, sizeof number, "%uMiB", cell->datacenters);
    set(config, "workload.bytes", number);
    snprintf(link, sizeof link, "loss=%.9g", 1 - sqrt(1 - cell->loss));
    set(config, "topology.link", link);
    set(config, "transport.schemes", cell->scheme);
    return config;
}

/* Seconds of the second operation. */
static double run(const struct lh_netsim_config *config, uint64_t seed)
{
    struct lh_netsim *simulation = NULL;
    uint64_t last_ps[2] = {0};
    if (lh_netsim_create(config, seed, &simulation) != 0 ||
        lh_netsim_run(simulation, UINT64_MAX, UINT64_MAX) != 1)
        fail("simulation");
    for (uint64_t i = 0; i < lh_netsim_flows_count(simulation); i++) {
        struct lh_netsim_flow flow;
        if (lh_netsim_flow(simulation, i, &flow) != 0 || flow.operation > 1)
            fail("flow");
        if (flow.received_ps > last_ps[flow.operation])
            last_ps[flow.operation] = flow.received_ps;
    }
    lh_netsim_destroy(simulation);
    return (double)(last_ps[1] - last_ps[0] - PAUSE_PS) * 1e-12;
}

static struct lh_model_summary simulate(const struct cell *cell, uint32_t seeds)
{
    struct lh_model_summary summary;
    struct lh_netsim_config *config = configure(cell);
    double *seconds = calloc(seeds, sizeof *seconds);
    if (!seconds)
        exit(1);
    for (uint32_t i = 0; i < seeds; i++)
        seconds[i] = run(config, i + 1);
    if (lh_model_summarize(seconds, seeds, &summary) != 0)
        fail("summary");
    lh_netsim_config_destroy(config);
    free(seconds);
    return summary;
}

/* ---- the model --------------------------------------------------------------------------------------- */

/* Any sequence of 64 bits: SplitMix64. A share of 0 to below 1. */
static double chance(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static double message(const double *samples, double loss, uint64_t *state)
{
    double seconds = samples[(size_t)(chance(state) * SAMPLES)];
    while (chance(state) < loss)
        seconds += 1.125 * RTT_S;
    return seconds;
}

/* T(i, r) = max(T(i - 1, r - 1) + t, T(i, r - 1)): appendix C, but no sender waits for a receiver. Returns
 * the end of the last. */
static double operation(const double *samples, const struct cell *cell, double *ready, uint64_t *state)
{
    uint32_t n = cell->datacenters;
    double next[DATACENTERS], last = 0;
    for (uint32_t round = 0; round < 2 * n - 2; round++) {
        for (uint32_t i = 0; i < n; i++)
            next[i] = fmax(ready[i], ready[(i + n - 1) % n] + message(samples, cell->loss, state));
        memcpy(ready, next, n * sizeof *ready);
    }
    for (uint32_t i = 0; i < n; i++)
        last = fmax(last, ready[i]);
    return last;
}

static struct lh_model_summary predict(const struct cell *cell, uint64_t message_bytes, double rate_bps)
{
    struct lh_model_path path = {.message_bytes = message_bytes,
                                 .chunk_bytes = PACKET,
                                 .mtu_bytes = PACKET,
                                 .header_bytes = HEADER,
                                 .bandwidth_bps = rate_bps,
                                 .rtt_s = RTT_S,
                                 .loss = cell->loss,
                                 .segment_bytes = SLOT_BYTES};
    struct lh_model_scheme scheme;
    struct lh_model_summary summary;
    uint64_t state = 1;
    double *samples = calloc(SAMPLES, sizeof *samples), *seconds = calloc(SAMPLES, sizeof *seconds);
    if (!samples || !seconds)
        exit(1);
    if (lh_model_scheme_parse(cell->scheme, &scheme) != 0)
        fail(cell->scheme);
    scheme.timing = LH_MODEL_TIMING_LONGHAUL;
    if (lh_model_sample(&path, &scheme, 1, 1, samples, SAMPLES) != 0)
        fail("model");
    for (uint32_t i = 0; i < SAMPLES; i++) {
        double ready[DATACENTERS] = {0};
        double first = operation(samples, cell, ready, &state);
        seconds[i] = operation(samples, cell, ready, &state) - first;
    }
    if (lh_model_summarize(seconds, SAMPLES, &summary) != 0)
        fail("summary");
    free(samples);
    free(seconds);
    return summary;
}

/* ---- all --------------------------------------------------------------------------------------------- */

static void print(FILE *json, const struct cell *cell, const struct lh_model_summary *seen,
                  const struct lh_model_summary *model, bool last)
{
    printf("%2u %7g  %-16s %9.1f %9.1f  %+6.1f %% %9.1f %9.1f  %+6.1f %% %9.1f\n", cell->datacenters,
           cell->loss, cell->scheme, seen->mean_s * 1e3, model->mean_s * 1e3,
           100 * (model->mean_s / seen->mean_s - 1), seen->p99_s * 1e3, model->p99_s * 1e3,
           100 * (model->p99_s / seen->p99_s - 1), model->p999_s * 1e3);
    fflush(stdout);
    if (json)
        fprintf(
            json,
            "  {\"datacenters\": %u, \"loss\": %g, \"scheme\": \"%s\", \"mean_s\": %.6g, \"p99_s\": %.6g, "
            "\"model_mean_s\": %.6g, \"model_p99_s\": %.6g, \"model_p999_s\": %.6g}%s\n",
            cell->datacenters, cell->loss, cell->scheme, seen->mean_s, seen->p99_s, model->mean_s,
            model->p99_s, model->p999_s, last ? "" : ",");
}

static void print_point(uint32_t datacenters, double loss)
{
    const struct cell cells_of[] = {{datacenters, loss, SR}, {datacenters, loss, EC}};
    struct lh_model_summary sr = predict(&cells_of[0], FIGURE / datacenters, FIGURE_BPS);
    struct lh_model_summary ec = predict(&cells_of[1], FIGURE / datacenters, FIGURE_BPS);
    printf("%2u %7g %9.1f %9.1f %9.1f %9.1f %9.2f  %.2f\n", datacenters, loss, sr.p99_s * 1e3,
           ec.p99_s * 1e3, sr.p999_s * 1e3, ec.p999_s * 1e3, sr.p99_s / ec.p99_s, sr.p999_s / ec.p999_s);
    fflush(stdout);
}

static void print_figure(void)
{
    static const double losses[] = {1e-5, 1e-3, 1e-2};
    printf("\nfigure 13 by the model: 128 MiB at 400 Gbit/s, %s and %s; ms\n", SR, EC);
    printf("%2s %7s %9s %9s %9s %9s %9s  %s\n", "n", "loss", "p99", "ec", "p99.9", "ec", "times", "p99.9");
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++)
        for (uint32_t datacenters = 2; datacenters <= DATACENTERS; datacenters *= 2)
            print_point(datacenters, losses[i]);
}

int main(int argc, char **argv)
{
    uint32_t seeds = 400;
    FILE *json = NULL;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seeds") == 0)
            seeds = (uint32_t)strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--json") == 0)
            json = fopen(argv[i + 1], "w");
    }
    if (seeds < 1 || seeds > SEEDS_MAX) {
        fprintf(stderr, "bench_collective_sim: --seeds: out of range (1 to %u)\n", SEEDS_MAX);
        return 2;
    }
    printf("ring AllReduce of datacenters, 25 ms apart, 10 Gbit/s, 1 MiB for each; %u operations; times in "
           "ms\n",
           seeds);
    printf("%2s %7s  %-16s %9s %9s  %8s %9s %9s  %8s %9s\n", "n", "loss", "scheme", "mean", "model", "",
           "p99", "model", "", "p99.9");
    if (json)
        fprintf(json, "[\n");
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        struct lh_model_summary seen = simulate(&cells[i], seeds),
                                model = predict(&cells[i], MESSAGE, RATE_BPS);
        print(json, &cells[i], &seen, &model, i + 1 == sizeof cells / sizeof cells[0]);
    }
    if (json) {
        fprintf(json, "]\n");
        fclose(json);
    }
    print_figure();
    return 0;
}
