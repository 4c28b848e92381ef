/*
 * How fast the simulated fabric moves packets of 4 KiB with everything checked, on one core.
 *
 * Two cases: nothing on the way (all in cache), and 400 Gbit/s over 12.5 ms (a BDP of 625 MB lies in
 * memory). The reference is the least that real bytes can cost: two copies and two checksums of each
 * packet, through a buffer as large as what is on the way.
 *
 * usage: bench_sim [--json FILE] [--quick]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <time.h>

#include "longhaul/error.h"
#include "netsim/fabric/sim_packets.h"
#include "report.h"
#include "wire/roce_packet.h"

#define MTU     4096u
#define BATCH   FABRIC_BATCH_MAX
#define PACKETS 1024u /* of the message that is sent again and again */

static void die(const char *what)
{
    fprintf(stderr, "bench_sim: %s: %s\n", what, lh_last_error());
    exit(1);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void *allocate(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (!memory)
        die("memory");
    return memory;
}

struct end {
    struct fabric *fabric;
    struct fabric_endpoint *endpoint;
    struct lh_stats stats;
};

struct bench {
    struct sim_world *world;
    struct end sender;
    struct end receiver;
    struct fabric_slot_key key;
    uint8_t *from;
    uint8_t *to;
    _Atomic uint64_t received[PACKETS / 64]; /* stays clear, so that every packet is placed */
    uint32_t next_packet;
};

static void open_end(struct end *end, const char *address)
{
    const struct fabric_attr attr = {.address = address};
    const struct fabric_endpoint_attr endpoint_attr = {
        .channels = 1,
        .generations = 1,
        .mtu_bytes = MTU,
        .slots = 1,
        .slot_bytes = (uint64_t)MTU * PACKETS,
        .stripe_packets = 1,
        .split = IMMEDIATE_SPLIT_10_18_4,
        .stats = &end->stats,
    };
    if (fabric_sim_ops.open(&attr, &end->fabric) ||
        fabric_sim_ops.endpoint_create(end->fabric, &endpoint_attr, &end->endpoint))
        die(address);
}

static void connect_end(struct end *end, const struct end *peer)
{
    struct qp_info_endpoint info;
    fabric_sim_ops.endpoint_info(peer->endpoint, &info);
    if (fabric_sim_ops.endpoint_connect(end->endpoint, &info))
        die("connect");
}

static void bench_open(struct bench *bench, const char *link_text)
{
    struct lh_link_spec link;
    if (lh_link_parse(link_text, &link))
        die(link_text);
    memset(bench, 0, sizeof *bench);
    bench->world = sim_world_create("bench", 1, &link);
    if (!bench->world)
        die("world");
    open_end(&bench->sender, "bench/0");
    open_end(&bench->receiver, "bench/1");
    connect_end(&bench->sender, &bench->receiver);
    connect_end(&bench->receiver, &bench->sender);
    bench->from = allocate((size_t)MTU * PACKETS);
    bench->to = allocate((size_t)MTU * PACKETS);
    const struct fabric_slot slot = {
        .base = bench->to, .length_bytes = (uint64_t)MTU * PACKETS, .received = bench->received};
    if (fabric_sim_ops.slot_bind(bench->receiver.endpoint, 0, &slot, &bench->key))
        die("bind");
}

static void bench_close(struct bench *bench)
{
    fabric_sim_ops.endpoint_destroy(bench->sender.endpoint);
    fabric_sim_ops.endpoint_destroy(bench->receiver.endpoint);
    fabric_sim_ops.close(bench->sender.fabric);
    fabric_sim_ops.close(bench->receiver.fabric);
    sim_world_destroy(bench->world);
    free(bench->from);
    free(bench->to);
}

static uint32_t post(struct bench *bench)
{
    struct fabric_write writes[BATCH];
    for (uint32_t i = 0; i < BATCH; i++) {
        uint32_t packet = (bench->next_packet + i) % PACKETS;
        writes[i] = (struct fabric_write){
            .payload = bench->from + (size_t)packet * MTU,
            .bytes = MTU,
            .va = bench->key.base + (uint64_t)packet * MTU,
            .rkey = bench->key.rkey,
            .immediate =
                immediate_join(IMMEDIATE_SPLIT_10_18_4, (struct immediate_fields){.packet = packet}),
        };
    }
    int taken = fabric_sim_ops.post_writes(bench->sender.endpoint, 0, writes, BATCH);
    if (taken < 0)
        die("post");
    bench->next_packet += (uint32_t)taken;
    return (uint32_t)taken;
}

static uint64_t drain(struct bench *bench)
{
    struct fabric_arrival arrivals[BATCH];
    uint64_t total = 0;
    for (int got = 1; got > 0; total += (uint64_t)got)
        got = fabric_sim_ops.poll(bench->receiver.endpoint, 0, arrivals, BATCH);
    return total;
}

/* Keeps the link full until `packets` have arrived past the first `warm`; packets a second of real time. */
static double run(const char *link_text, uint64_t warm, uint64_t packets, lh_time *virtual_ns)
{
    struct bench bench;
    bench_open(&bench, link_text);
    uint64_t arrived = 0;
    double start = 0;
    lh_time virtual_start = 0;
    while (arrived < warm + packets) {
        bool warm_before = arrived >= warm;
        while (post(&bench) == BATCH && sim_world_next_event(bench.world) > sim_world_now(bench.world))
            continue;
        lh_time now = sim_world_now(bench.world);
        lh_time next = fabric_sim_ops.pump(bench.sender.endpoint, 0, now);
        if (next == LH_TIME_NEVER)
            next = sim_world_next_event(bench.world);
        sim_world_advance(bench.world, next > now ? next : now);
        arrived += drain(&bench);
        if (!warm_before && arrived >= warm) {
            start = seconds();
            virtual_start = sim_world_now(bench.world);
            warm = arrived;
        }
    }
    double spent = seconds() - start;
    *virtual_ns = sim_world_now(bench.world) - virtual_start;
    if (lh_stats_bad_packets(&bench.receiver.stats) != 0)
        die("a packet was bad");
    bench_close(&bench);
    return (double)(arrived - warm) / spent;
}

/* Two copies and two checksums a packet, through a buffer of so many packets. */
static double reference(uint64_t in_flight, uint64_t packets)
{
    size_t stride = MTU + 64;
    uint8_t *from = allocate((size_t)MTU * PACKETS);
    uint8_t *to = allocate((size_t)MTU * PACKETS);
    uint8_t *between = allocate(stride * in_flight);
    memset(between, 1, stride * in_flight);
    uint32_t sum = 0;
    double start = seconds();
    for (uint64_t i = 0; i < packets; i++) {
        uint8_t *in = between + i % in_flight * stride;
        memcpy(in, from + i % PACKETS * MTU, MTU);
        sum ^= icrc_add(0, in, MTU);
        const uint8_t *out = between + (i + 1) % in_flight * stride;
        sum ^= icrc_add(0, out, MTU);
        memcpy(to + i % PACKETS * MTU, out, MTU);
    }
    double spent = seconds() - start;
    __asm__ volatile("" : : "r"(sum), "r"(to) : "memory");
    free(from);
    free(to);
    free(between);
    return (double)packets / spent;
}

static void measure(FILE *json, const char *name, const char *link_text, uint64_t in_flight,
                    uint64_t packets)
{
    lh_time virtual_ns;
    double minimum = reference(in_flight, packets);
    double rate = run(link_text, in_flight, packets, &virtual_ns);
    printf("%-24s %8.3f M packets/s   two copies and CRCs %8.3f   ratio %5.2f   %.1f Gbit/s\n", name,
           rate / 1e6, minimum / 1e6, rate / minimum, rate * MTU * 8 / 1e9);
    if (virtual_ns > 0)
        printf("%-24s %8.2f s of real time for a second of the link\n", "",
               (double)packets / rate / ((double)virtual_ns / 1e9));
    fflush(stdout);
    report_line(json, name, rate / 1e6, "Mpackets/s", "two copies and two CRCs", minimum / 1e6, 1);
}

int main(int argc, char **argv)
{
    FILE *json = report_open(argc, argv);
    bool quick = argc > 1 && strcmp(argv[argc - 1], "--quick") == 0;
    uint64_t packets = quick ? 200000 : 2000000;
    measure(json, "sim_in_cache", "none", BATCH, packets);
    measure(json, "sim_400g_12.5ms", "delay=12500us,rate=400Gbit", 150000, packets);
    measure(json, "sim_400g_jitter", "delay=12500us,rate=400Gbit,jitter=1ms,loss=1e-3", 150000, packets);
    if (json)
        fclose(json);
    return 0;
}
