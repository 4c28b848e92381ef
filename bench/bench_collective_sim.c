/*
 * bench_collective_sim.c - figure 13 of the SDR-RDMA paper by the protocol: ring AllReduce of datacenters in
 * the simulator, beside the model of appendix C.
 *
 * Each datacenter is a host below a leaf. Every two are 25 ms apart over one spine, and each of the two links
 * between them loses half of what the path loses. Each operation has connections of its own, which wait a
 * round trip for each other at first: it is subtracted. The model: 2 N - 2 rounds of dependent messages, each
 * of which takes a sample of lh_model_sample(3). Here a receive is posted when its message starts, so that a
 * clear-to-send that is lost delays it by a round trip and an eighth: the samples have that, too. Control
 * messages are lost as packets are. (Groups post receives ahead.)
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

#define DATACENTERS 4u
#define BYTES       (UINT64_C(1) << 20)
#define RATE_BPS    10e9
#define RTT_S       25e-3
#define PACKET      4096u
#define HEADER      78u /* transport.header */
#define SLOT_BYTES  (UINT64_C(4) << 20)
#define SAMPLES     100000u
#define SEEDS_MAX   100000u

struct cell {
    double loss;
    const char *scheme;
};

static const struct cell cells[] = {
    {1e-3, "sr-rto"},          {1e-3, "ec:mds,k=32,m=8"}, {1e-2, "sr-rto"},
    {1e-2, "ec:mds,k=32,m=8"}, {1e-4, "sr-rto"},          {1e-4, "ec:mds,k=32,m=8"},
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
        {"topology.kind", "leaf-spine"},   {"topology.leaves", "4"},
        {"topology.spines", "1"},          {"topology.hosts", "1"},
        {"topology.rate", "10Gbit"},       {"topology.delay", "10ns"},
        {"topology.core_delay", "6.25ms"}, {"switch.buffer", "1GB"},
        {"transport.kind", "longhaul"},    {"transport.rate", "10Gbit"},
        {"workload.kind", "collective"},   {"workload.collective", "allreduce"},
        {"workload.schedule", "ring"},     {"workload.bytes", "1MiB"},
        {"workload.rounds", "1"},
    };
    struct lh_netsim_config *config;
    char link[64];
    if (lh_netsim_config_create(&config) != 0)
        fail("configuration");
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        set(config, settings[i][0], settings[i][1]);
    snprintf(link, sizeof link, "loss=%.9g", 1 - sqrt(1 - cell->loss));
    set(config, "topology.link", link);
    set(config, "transport.schemes", cell->scheme);
    return config;
}

/* Seconds until the last host has received its last message, without those of the first round trip. */
static double run(const struct lh_netsim_config *config, uint64_t seed)
{
    struct lh_netsim *simulation = NULL;
    uint64_t last_ps = 0;
    if (lh_netsim_create(config, seed, &simulation) != 0 ||
        lh_netsim_run(simulation, UINT64_MAX, UINT64_MAX) != 1)
        fail("simulation");
    for (uint64_t i = 0; i < lh_netsim_flows_count(simulation); i++) {
        struct lh_netsim_flow flow;
        if (lh_netsim_flow(simulation, i, &flow) != 0)
            fail("flow");
        last_ps = flow.received_ps > last_ps ? flow.received_ps : last_ps;
    }
    lh_netsim_destroy(simulation);
    return (double)last_ps * 1e-12 - RTT_S;
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

/* T(i, r) = max(T(i - 1, r - 1) + t, T(i, r - 1)): appendix C, but no sender waits for a receiver. */
static double operation(const double *samples, double loss, uint64_t *state)
{
    double ready[DATACENTERS] = {0}, next[DATACENTERS], last = 0;
    for (uint32_t round = 0; round < 2 * DATACENTERS - 2; round++) {
        for (uint32_t i = 0; i < DATACENTERS; i++)
            next[i] =
                fmax(ready[i], ready[(i + DATACENTERS - 1) % DATACENTERS] + message(samples, loss, state));
        memcpy(ready, next, sizeof ready);
    }
    for (uint32_t i = 0; i < DATACENTERS; i++)
        last = fmax(last, ready[i]);
    return last;
}

static struct lh_model_summary predict(const struct cell *cell)
{
    struct lh_model_path path = {.message_bytes = BYTES / DATACENTERS,
                                 .chunk_bytes = PACKET,
                                 .mtu_bytes = PACKET,
                                 .header_bytes = HEADER,
                                 .bandwidth_bps = RATE_BPS,
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
    for (uint32_t i = 0; i < SAMPLES; i++)
        seconds[i] = operation(samples, cell->loss, &state);
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
    printf("%7g  %-16s %9.1f %9.1f  %+6.1f %% %9.1f %9.1f  %+6.1f %% %9.1f\n", cell->loss, cell->scheme,
           seen->mean_s * 1e3, model->mean_s * 1e3, 100 * (model->mean_s / seen->mean_s - 1),
           seen->p99_s * 1e3, model->p99_s * 1e3, 100 * (model->p99_s / seen->p99_s - 1),
           model->p999_s * 1e3);
    fflush(stdout);
    if (json)
        fprintf(json,
                "  {\"loss\": %g, \"scheme\": \"%s\", \"mean_s\": %.6g, \"p99_s\": %.6g, "
                "\"model_mean_s\": %.6g, \"model_p99_s\": %.6g, \"model_p999_s\": %.6g}%s\n",
                cell->loss, cell->scheme, seen->mean_s, seen->p99_s, model->mean_s, model->p99_s,
                model->p999_s, last ? "" : ",");
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
    printf("ring AllReduce of 1 MiB, %u datacenters, 25 ms, 10 Gbit/s; %u operations; times in ms\n",
           DATACENTERS, seeds);
    printf("%7s  %-16s %9s %9s  %8s %9s %9s  %8s %9s\n", "loss", "scheme", "mean", "model", "", "p99",
           "model", "", "p99.9");
    if (json)
        fprintf(json, "[\n");
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        struct lh_model_summary seen = simulate(&cells[i], seeds), model = predict(&cells[i]);
        print(json, &cells[i], &seen, &model, i + 1 == sizeof cells / sizeof cells[0]);
    }
    if (json) {
        fprintf(json, "]\n");
        fclose(json);
    }
    return 0;
}
