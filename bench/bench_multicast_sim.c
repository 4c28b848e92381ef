/*
 * bench_multicast_sim.c - multicast to 128 hosts in 2, 4 and 8 datacenters, by protocol, beside the model.
 *
 * A datacenter is a switch with its hosts, 10 Gbit/s each; every two have a link of 100 Gbit/s, which loses
 * packets in both directions. No other link loses any, and buffers never overflow. Transports: go-back-N of
 * a NIC, in the simulator, and the schemes of the real protocol. The model is flow_time() with the same
 * network, where a block has samples of what the scheme adds by lh_model_sample(3).
 *
 *     bench_multicast_sim [--quick] [TRANSPORT ...]       gbn, sr-rto, sr-nack, ec, hybrid; all by default
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

#include "collective/choose/schedule_choice.h"
#include "collective/schedules.h"

#define HOSTS     128u
#define HOST_BPS  10e9
#define LINK_BPS  100e9
#define CABLE_S   1e-6 /* of a host */
#define PACKET    4096u
#define WIRE      4174.0 /* of a packet */
#define BLOCK     (UINT64_C(256) << 10)
#define MIB       (UINT64_C(1) << 20)
#define SAMPLES   4096u
#define RUNS      200u /* of the model */
#define SEEDS_MAX 8u
#define TEXT_MAX  16384u

struct transport {
    const char *name;
    const char *scheme; /* of the real protocol; NULL: the simulator's */
    const char *model;
};

static const struct transport transports[] = {
    {"gbn", NULL, "gbn"},
    {"sr-rto", "sr-rto", "sr-rto"},
    {"sr-nack", "sr-nack", "sr-nack"},
    {"ec", "ec:mds,k=32,m=8", "ec:mds,k=32,m=8"},
    {"hybrid", "hybrid", "hybrid"},
};
static const char *const schedules[] = {"hybrid", "binomial-pipeline", "chain", "sequential"};
#define SCHEDULES (sizeof schedules / sizeof *schedules)
static const double losses[] = {0, 1e-4, 1e-2};

struct cell {
    const struct transport *transport;
    uint32_t sites;
    uint64_t bytes;
    double rtt_s, loss;
    const char *schedule;
};

struct result {
    double seconds;
    double long_bytes; /* over the links between datacenters, but for the headers of data */
};

static void fail(const char *what)
{
    fprintf(stderr, "bench_multicast_sim: %s: %s\n", what, lh_last_error());
    exit(1);
}

/* ---- by protocol -------------------------------------------------------------------------------------- */

static uint32_t cell_site(const struct cell *cell, uint32_t host)
{
    return host * cell->sites / HOSTS;
}

static void describe(const struct cell *cell, char text[TEXT_MAX])
{
    size_t used = 0;
    text[0] = '\0';
#define ADD(...) (used += (size_t)snprintf(text + used, TEXT_MAX - used, __VA_ARGS__))
    for (uint32_t site = 0; site < cell->sites; site++)
        ADD("switch s%u site=%u tier=dci\n", site, site);
    for (uint32_t host = 0; host < HOSTS; host++)
        ADD("host h%u site=%u\nlink h%u s%u rate=10Gbit delay=1us\n", host, cell_site(cell, host), host,
            cell_site(cell, host));
    for (uint32_t a = 0; a < cell->sites; a++)
        for (uint32_t b = a + 1; b < cell->sites; b++) {
            ADD("link s%u s%u rate=100Gbit delay=%.0fns", a, b, cell->rtt_s / 2 * 1e9);
            if (cell->loss > 0)
                ADD(" loss=%g", cell->loss);
            ADD("\n");
        }
#undef ADD
    if (used >= TEXT_MAX)
        fail("topology: too long");
}

static struct lh_netsim_config *configure(const struct cell *cell, const char *topology)
{
    char bytes[32];
    snprintf(bytes, sizeof bytes, "%lluB", (unsigned long long)cell->bytes);
    const char *const settings[][2] = {
        {"topology.kind", "file"},
        {"switch.buffer", "64GiB"},
        {"run.packets", "16000000"},
        {"transport.kind", cell->transport->scheme != NULL ? "longhaul" : cell->transport->name},
        {"transport.schemes", cell->transport->scheme != NULL ? cell->transport->scheme : "sr-nack"},
        {"transport.payload", "4096"},
        {"transport.window", "64MiB"},
        {"transport.rto_min", "2ms"},
        {"transport.retries", "none"},
        {"workload.kind", "collective"},
        {"workload.collective", "broadcast"},
        {"workload.schedule", cell->schedule},
        {"workload.bytes", bytes},
    };
    struct lh_netsim_config *config;
    if (lh_netsim_config_create(&config) != 0)
        fail("configuration");
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (lh_netsim_config_set(config, settings[i][0], settings[i][1]) != 0)
            fail(settings[i][0]);
    if (lh_netsim_config_text(config, "topology.file", "topology", topology, strlen(topology)) != 0)
        fail("topology");
    return config;
}

/* From the first start to the last arrival. */
static struct result measure(const struct lh_netsim *simulation)
{
    uint64_t first_ps = UINT64_MAX, last_ps = 0;
    struct result result = {0};
    for (uint64_t i = 0; i < lh_netsim_flows_count(simulation); i++) {
        struct lh_netsim_flow flow;
        if (lh_netsim_flow(simulation, i, &flow) != 0 || flow.received_ps == UINT64_MAX)
            fail("flow");
        first_ps = flow.start_ps < first_ps ? flow.start_ps : first_ps;
        last_ps = flow.received_ps > last_ps ? flow.received_ps : last_ps;
    }
    for (uint32_t i = 0; i < lh_netsim_links_count(simulation); i++) {
        struct lh_netsim_link link;
        if (lh_netsim_link(simulation, i, &link) != 0)
            fail("link");
        if (link.from[0] == 's' && link.to[0] == 's')
            result.long_bytes += (double)link.sent_bytes * PACKET / WIRE;
    }
    result.seconds = (double)(last_ps - first_ps) * 1e-12;
    return result;
}

static struct result simulate(const struct cell *cell, uint32_t seeds)
{
    static char topology[TEXT_MAX];
    describe(cell, topology);
    struct lh_netsim_config *config = configure(cell, topology);
    struct result sum = {0};
    for (uint32_t seed = 1; seed <= seeds; seed++) {
        struct lh_netsim *simulation = NULL;
        if (lh_netsim_create(config, seed, &simulation) != 0 ||
            lh_netsim_run(simulation, UINT64_MAX, UINT64_MAX) != 1)
            fail("simulation");
        struct result one = measure(simulation);
        sum.seconds += one.seconds / seeds;
        sum.long_bytes += one.long_bytes / seeds;
        lh_netsim_destroy(simulation);
    }
    lh_netsim_config_destroy(config);
    return sum;
}

/* ---- by the model ------------------------------------------------------------------------------------- */

/* What the scheme adds to a block across, as samples; how many bytes it sends for one. */
static double sample_repairs(const struct cell *cell, double samples_s[SAMPLES])
{
    struct lh_model_path path = {.message_bytes = BLOCK,
                                 .chunk_bytes = PACKET,
                                 .mtu_bytes = PACKET,
                                 .header_bytes = (uint32_t)(WIRE - PACKET),
                                 .bandwidth_bps = HOST_BPS,
                                 .rtt_s = cell->rtt_s,
                                 .loss = cell->loss};
    struct lh_model_scheme scheme;
    struct lh_model_times times;
    if (lh_model_scheme_parse(cell->transport->model, &scheme) != 0 ||
        lh_model_predict(&path, &scheme, &times) != 0 ||
        lh_model_sample(&path, &scheme, 1, 1, samples_s, SAMPLES) != 0)
        fail("model");
    for (uint32_t i = 0; i < SAMPLES; i++)
        samples_s[i] = fmax(samples_s[i] - times.ideal_s, 0);
    return scheme.m > 0 ? 1 + (double)scheme.m / scheme.k : 1;
}

static double predict(const struct cell *cell)
{
    static double samples_s[SAMPLES];
    static uint32_t numbers[4 * HOSTS + 1], sites[HOSTS];
    const struct schedule *schedule = schedule_find(COLLECTIVE_BROADCAST, cell->schedule);
    double wire = sample_repairs(cell, samples_s) * WIRE / PACKET, packet_s = WIRE * 8 / HOST_BPS, sum = 0;
    struct site_map map;
    struct lh_prng prng;
    for (uint32_t host = 0; host < HOSTS; host++)
        sites[host] = cell_site(cell, host);
    site_map_build(&map, sites, NULL, HOSTS, numbers);
    struct schedule_shape shape = {.ranks = HOSTS, .blocks = (uint32_t)(cell->bytes / BLOCK), .map = &map};
    struct flow_network network = {
        .inside = {.latency_s = 2 * CABLE_S + packet_s, .byte_s = 8 * wire / HOST_BPS},
        .across = {.latency_s = cell->rtt_s / 2 + 2 * CABLE_S + packet_s,
                   .byte_s = 8 * wire / LINK_BPS,
                   .samples_s = samples_s,
                   .samples = SAMPLES},
    };
    void *memory = malloc(flow_time_memory(&shape));
    uint32_t runs = cell->loss > 0 ? RUNS : 1;
    if (memory == NULL)
        exit(1);
    lh_prng_seed(&prng, 1);
    for (uint32_t run = 0; run < runs; run++)
        sum += flow_time(schedule, &shape, (double)cell->bytes, &network, &prng, memory);
    free(memory);
    return sum / runs;
}

/* ---- tables ------------------------------------------------------------------------------------------- */

static void print_row(struct cell cell, uint32_t seeds)
{
    printf("%-8s %5u %7.0f %6.1f %6.0e ", cell.transport->name, cell.sites,
           (double)cell.bytes / (double)MIB, 1e3 * cell.rtt_s, cell.loss);
    for (size_t i = 0; i < SCHEDULES; i++) {
        cell.schedule = schedules[i];
        if (cell.transport->scheme != NULL && cell.loss > 0 && strcmp(cell.schedule, "sequential") == 0)
            continue; /* more than a minute each */
        struct result result = simulate(&cell, cell.loss > 0 ? seeds : 1);
        printf(" %8.1f %8.1f %5.1f", 1e3 * result.seconds, 1e3 * predict(&cell),
               result.long_bytes / (double)cell.bytes);
        fflush(stdout);
    }
    printf("\n");
}

static void print_rows(struct cell cell, uint32_t seeds)
{
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        cell.loss = losses[i];
        print_row(cell, seeds);
    }
}

static void print_transport(const struct transport *transport, bool quick)
{
    static const uint32_t sites[] = {2, 4, 8};
    static const double rtts_s[] = {1e-3, 1e-4, 25e-3, 50e-3}; /* of the longer messages every second one */
    struct cell cell = {.transport = transport, .sites = 4, .bytes = 16 * MIB, .rtt_s = 25e-3};
    if (quick || transport->scheme != NULL) {
        print_rows(cell, 1);
        return;
    }
    for (cell.bytes = 16 * MIB; cell.bytes <= 64 * MIB; cell.bytes *= 4)
        for (size_t i = 0; i < sizeof sites / sizeof *sites; i++)
            for (size_t k = 0; k<sizeof rtts_s / sizeof *rtts_s; k += cell.bytes> 16 * MIB ? 2 : 1) {
                cell.sites = sites[i];
                cell.rtt_s = rtts_s[k];
                print_rows(cell, 5);
            }
}

static bool is_asked(int count, char **names, const char *name)
{
    bool any = false;
    for (int i = 1; i < count; i++) {
        if (strcmp(names[i], name) == 0)
            return true;
        any |= names[i][0] != '-';
    }
    return !any;
}

int main(int argc, char **argv)
{
    bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    printf(
        "# multicast to %u hosts of 10 Gbit/s; 100 Gbit/s between any two datacenters, with loss: ms, the "
        "model's ms, and\n# how often the data crossed between datacenters, of each schedule\n",
        HOSTS);
    printf("# %-6s %5s %7s %6s %6s ", "", "sites", "MiB", "rtt_ms", "loss");
    for (size_t i = 0; i < SCHEDULES; i++)
        printf(" %17s      ", schedules[i]);
    printf("\n");
    for (size_t i = 0; i < sizeof transports / sizeof *transports; i++)
        if (is_asked(argc, argv, transports[i].name))
            print_transport(&transports[i], quick);
    return 0;
}
