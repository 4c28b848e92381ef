/*
 * How fast the network simulator is, and how much memory it takes: one case, one run, one line of JSON.
 *
 * The fat trees carry a permutation of bulk flows with acknowledgements and PFC. dumbbell and fat-tree-16 are
 * what bench/ns3/netsim_ns3.cc does too, so they are plainer: each host sends to the one that stands half of
 * all hosts further, no PFC, one priority, and a window that is given in packets. bench/run runs both and
 * demands that they count the same hops.
 *
 * usage: bench_netsim CASE [BYTES]       bytes of each flow, such as 8MB, which is also the default
 * {"case":…,"hops":…,"seconds":…,"cpu_seconds":…,"setup_seconds":…,"virtual_seconds":…,"flows":…,
 *  "repeated_packets":…,"dropped_packets":…,"pauses":…,"packets_alive_max":…,"bytes_a_packet":…,
 *  "memory_bytes":…,"resident_bytes":…}
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <longhaul/netsim.h>

struct setting {
    const char *key;
    const char *value;
};

/* Queues of a full window of others are the rule here, so a timeout of a few empty round trips would repeat
 * packets that only wait. */
#define PATIENT                                                                                            \
    {                                                                                                      \
        "transport.rto", "1000"                                                                            \
    }
#define SAME_AS_NS3                                                                                        \
    {"transport.window", "256KiB"}, {"transport.ack_priority", "3"}, {"workload.kind", "flows"}, PATIENT

struct bench_case {
    const char *name;
    uint32_t opposite; /* hosts, each of which sends to the one half of them further; 0: a permutation */
    struct setting settings[8];
};

static const struct bench_case cases[] = {
    {"fat-tree-128",
     0,
     {{"topology.kind", "fat-tree"}, {"topology.k", "8"}, {"switch.pfc", "on"}, PATIENT}},
    {"fat-tree-1024",
     0,
     {{"topology.kind", "fat-tree"}, {"topology.k", "16"}, {"switch.pfc", "on"}, PATIENT}},
    {"dumbbell", 8, {{"topology.kind", "dumbbell"}, {"topology.hosts", "4"}, SAME_AS_NS3}},
    {"fat-tree-16", 16, {{"topology.kind", "fat-tree"}, {"topology.k", "4"}, SAME_AS_NS3}},
};

static void die(const char *what)
{
    fprintf(stderr, "bench_netsim: %s: %s\n", what, lh_last_error());
    exit(1);
}

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static const struct bench_case *find_case(const char *name)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (strcmp(cases[i].name, name) == 0)
            return &cases[i];
    fprintf(stderr, "bench_netsim: no case \"%s\":", name);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        fprintf(stderr, " %s", cases[i].name);
    fprintf(stderr, "\n");
    exit(2);
}

static void set(struct lh_netsim_config *config, const char *key, const char *value)
{
    if (lh_netsim_config_set(config, key, value))
        die(key);
}

static void set_opposite_flows(struct lh_netsim_config *config, uint32_t hosts, const char *bytes)
{
    char text[4096];
    size_t used = 0;
    for (uint32_t host = 0; host < hosts; host++) {
        uint32_t to = (host + hosts / 2) % hosts;
        int added = snprintf(text + used, sizeof text - used, "%u %u %s 0\n", host, to, bytes);
        if (added < 0 || (size_t)added >= sizeof text - used)
            die("the list of flows");
        used += (size_t)added;
    }
    if (lh_netsim_config_text(config, "workload.flows", "opposite", text, used))
        die("workload.flows");
}

static struct lh_netsim *make(const struct bench_case *what, const char *bytes)
{
    struct lh_netsim_config *config;
    struct lh_netsim *simulation;
    if (lh_netsim_config_create(&config))
        die("configuration");
    for (const struct setting *s = what->settings; s->key; s++)
        set(config, s->key, s->value);
    set(config, "workload.bytes", bytes);
    if (what->opposite)
        set_opposite_flows(config, what->opposite, bytes);
    if (lh_netsim_create(config, 1, &simulation))
        die(what->name);
    lh_netsim_config_destroy(config);
    return simulation;
}

/* The most that was resident. Not ru_maxrss, which remembers the process that this one was forked from. */
static uint64_t resident_bytes(void)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    if (!file)
        return 0;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %llu kB", &kib) == 1)
            break;
    fclose(file);
    return kib * 1024;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: bench_netsim CASE [BYTES]\n");
        return 2;
    }
    const struct bench_case *what = find_case(argv[1]);
    struct lh_netsim_totals before;
    struct lh_netsim_totals after;

    double created = seconds(CLOCK_MONOTONIC);
    struct lh_netsim *simulation = make(what, argc > 2 ? argv[2] : "8MB");
    lh_netsim_totals(simulation, &before);
    double started = seconds(CLOCK_MONOTONIC);
    double cpu_started = seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (lh_netsim_run(simulation, UINT64_MAX, UINT64_MAX) != 1)
        die("run");
    double spent = seconds(CLOCK_MONOTONIC) - started;
    double cpu_spent = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_started;
    lh_netsim_totals(simulation, &after);
    if (after.flows_done != after.flows || after.hops == 0) {
        fprintf(stderr, "bench_netsim: %s: %llu of %llu flows are done\n", what->name,
                (unsigned long long)after.flows_done, (unsigned long long)after.flows);
        return 1;
    }
    /* Tables are made before the run, so what memory grows by is packets. */
    double packet_bytes =
        (double)(after.memory_bytes - before.memory_bytes) / (double)after.packets_alive_max;
    printf("{\"case\":\"%s\",\"hops\":%llu,\"seconds\":%.6f,\"cpu_seconds\":%.6f,\"setup_seconds\":%.6f,"
           "\"virtual_seconds\":%.9f,\"flows\":%llu,",
           what->name, (unsigned long long)after.hops, spent, cpu_spent, started - created,
           (double)after.now_ps * 1e-12, (unsigned long long)after.flows);
    printf("\"repeated_packets\":%llu,\"dropped_packets\":%llu,\"pauses\":%llu,\"packets_alive_max\":%llu,"
           "\"bytes_a_packet\":%.1f,\"memory_bytes\":%llu,\"resident_bytes\":%llu}\n",
           (unsigned long long)after.repeated_packets, (unsigned long long)after.dropped_packets,
           (unsigned long long)after.pauses, (unsigned long long)after.packets_alive_max, packet_bytes,
           (unsigned long long)after.memory_bytes, (unsigned long long)resident_bytes());
    lh_netsim_destroy(simulation);
    return 0;
}
