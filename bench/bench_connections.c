/*
 * bench_connections.c - what connections cost that are open: memory, threads and descriptors of a process,
 * time to open, use and close them, CPU while they are idle, and while a receive is pending on each, at both
 * ends. Two processes, an engine with two workers each; measured is the one that connects.
 *
 * usage: bench_connections [--quick] [--json FILE]      (--quick: up to 1,000)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <longhaul/longhaul.h>

#include "report.h"

#define DEVICE      "udp:127.0.0.1"
#define WORKERS     2u
#define COUNT_MAX   10000u
#define MESSAGE     64u
#define BATCH       64u
#define SETTLE_S    3.0
#define IDLE_S      5.0
#define PATIENCE_NS (60 * LH_NS_PER_S)
#define GOAL_BYTES  32768.0 /* of an idle connection */
#define GOAL_CPU    1.0     /* % of a core, of 10,000 */
#define MEMORY_PART 0.8     /* of what is free: more is not tried */
#define SMALL_COUNT 100u    /* shows what more of them would take */

struct process {
    double resident_bytes;
    unsigned threads;
    unsigned descriptors;
};

struct cost {
    struct process open, used;
    double before_bytes; /* resident, with an engine and no connection */
    double open_s, use_s, close_s;
    double idle_cpu, waiting_cpu; /* % of a core */
};

static struct lh_engine *engine;
static struct lh_completion_queue *queue;
static struct lh_connection *connections[COUNT_MAX];
static uint8_t messages[COUNT_MAX][MESSAGE];

static void must(int code, const char *what)
{
    if (code >= 0)
        return;
    fprintf(stderr, "bench_connections: %s: %s\n", what,
            *lh_last_error() ? lh_last_error() : lh_strerror(code));
    exit(1);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static void pause_for(double span_s)
{
    const struct timespec span = {(time_t)span_s, (long)((span_s - (double)(time_t)span_s) * 1e9)};
    nanosleep(&span, NULL);
}

/* The number behind `name` in a file of /proc, 0: none. */
static double proc_number(const char *path, const char *name)
{
    char line[256];
    double value = 0;
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            value = strtod(line + strlen(name), NULL);
    if (file)
        fclose(file);
    return value;
}

static struct process look(void)
{
    struct process process = {
        .resident_bytes = 1024 * proc_number("/proc/self/status", "VmRSS:"),
        .threads = (unsigned)proc_number("/proc/self/status", "Threads:"),
    };
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        process.descriptors++;
    if (folder)
        closedir(folder);
    process.descriptors -= 3; /* ., .. and the folder's own */
    return process;
}

static struct lh_attr open_engine(void)
{
    struct lh_engine_attr attr;
    struct lh_attr of_connections;
    lh_engine_attr_init(&attr);
    attr.device = DEVICE;
    attr.channels = WORKERS;
    attr.workers = WORKERS;
    must(lh_engine_create(&attr, &engine), DEVICE);
    must(lh_completion_queue_create(engine, COUNT_MAX, &queue), "completion queue");
    lh_attr_init(&of_connections);
    of_connections.engine = engine;
    return of_connections;
}

static void close_engine(void)
{
    must(lh_completion_queue_destroy(queue), "completion queue");
    must(lh_engine_destroy(engine), "engine");
}

/* Waits for so many entries; returns how many of them had that error. */
static uint32_t finish(uint32_t count, int error)
{
    struct lh_completion entries[BATCH];
    uint32_t with = 0;
    for (uint32_t done = 0; done < count;) {
        int taken = lh_queue_wait(queue, entries, BATCH, PATIENCE_NS);
        must(taken, "waiting for messages");
        for (int i = 0; i < taken; i++)
            with += entries[i].result.error == error;
        done += (uint32_t)taken;
    }
    return with;
}

static void post_all(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        must(lh_post_recv(connections[i], messages[i], MESSAGE, NULL, queue, i, NULL), "lh_post_recv");
}

/* ---- the other process ------------------------------------------------------------------------------- */

/* Takes a message of each when it is told to, then waits until all have closed. Until it is told, it waits
 * for nothing, so that the connections are idle at both ends. */
static void serve(int to, int from, uint32_t count)
{
    char go;
    struct lh_listener *listener;
    struct lh_attr attr = open_engine();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    must(lh_listen("127.0.0.1:0", &attr, &listener), "lh_listen");
    uint16_t port = lh_listener_port(listener);
    if (write(to, &port, sizeof port) != sizeof port)
        exit(1);
    for (uint32_t i = 0; i < count; i++)
        must(lh_accept(listener, PATIENCE_NS, &connections[i]), "lh_accept");
    lh_listener_close(listener);
    if (read(from, &go, 1) != 1)
        exit(1);
    post_all(count);
    if (finish(count, 0) != count)
        must(-LH_EPEER, "a message");
    post_all(count);
    finish(count, -LH_ECLOSED);
    for (uint32_t i = 0; i < count; i++)
        lh_close(connections[i]);
    close_engine();
}

/* ---- what is measured -------------------------------------------------------------------------------- */

static void use_in_turn(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        must(lh_post_send(connections[i], messages[i], MESSAGE, NULL, queue, i, NULL), "lh_post_send");
        if (finish(1, 0) != 1)
            must(-LH_EPEER, "a message");
    }
}

static double cpu_of_pause(double span_s)
{
    double before = cpu_seconds();
    pause_for(span_s);
    return 100 * (cpu_seconds() - before) / span_s;
}

static struct cost measure_client(uint16_t port, int to, uint32_t count)
{
    struct cost cost = {0};
    char where[32];
    struct lh_attr attr = open_engine();
    snprintf(where, sizeof where, "127.0.0.1:%u", port);
    cost.before_bytes = look().resident_bytes;
    double since = seconds();
    for (uint32_t i = 0; i < count; i++)
        must(lh_connect(where, &attr, PATIENCE_NS, &connections[i]), "lh_connect");
    cost.open_s = seconds() - since;
    pause_for(SETTLE_S);
    cost.open = look();
    cost.idle_cpu = cpu_of_pause(IDLE_S);
    if (write(to, "", 1) != 1)
        exit(1);
    since = seconds();
    use_in_turn(count);
    cost.use_s = seconds() - since;
    pause_for(SETTLE_S);
    cost.used = look();
    post_all(count); /* as the other process has done */
    pause_for(SETTLE_S);
    cost.waiting_cpu = cpu_of_pause(IDLE_S);
    since = seconds();
    for (uint32_t i = 0; i < count; i++)
        lh_close(connections[i]);
    cost.close_s = seconds() - since;
    finish(count, -LH_ECLOSED);
    close_engine();
    return cost;
}

/* In processes of their own: what an earlier measurement left of memory counts for nothing. */
static struct cost measure(uint32_t count)
{
    int port_pipe[2], cost_pipe[2], go_pipe[2];
    uint16_t port;
    struct cost cost;
    if (pipe(port_pipe) || pipe(cost_pipe) || pipe(go_pipe))
        exit(1);
    fflush(NULL);
    pid_t server = fork();
    if (server == 0) {
        close(cost_pipe[1]);
        close(go_pipe[1]);
        serve(port_pipe[1], go_pipe[0], count);
        _exit(0);
    }
    if (read(port_pipe[0], &port, sizeof port) != sizeof port)
        exit(1);
    pid_t client = fork();
    if (client == 0) {
        cost = measure_client(port, go_pipe[1], count);
        _exit(write(cost_pipe[1], &cost, sizeof cost) != sizeof cost);
    }
    close(port_pipe[0]);
    close(port_pipe[1]);
    close(cost_pipe[1]);
    close(go_pipe[0]);
    close(go_pipe[1]);
    bool measured = read(cost_pipe[0], &cost, sizeof cost) == sizeof cost;
    close(cost_pipe[0]);
    waitpid(client, NULL, 0);
    waitpid(server, NULL, 0);
    if (!measured)
        exit(1);
    return cost;
}

static double bytes_each(double with_bytes, const struct cost *cost, uint32_t count)
{
    return (with_bytes - cost->before_bytes) / count;
}

static void print_row(uint32_t count, const struct cost *cost)
{
    printf("  %6u %12.0f %12.0f %9.1f %8u %12u %10.1f %10.1f %10.1f %9.2f %9.2f\n", count,
           bytes_each(cost->open.resident_bytes, cost, count),
           bytes_each(cost->used.resident_bytes, cost, count), cost->open.resident_bytes / 1048576,
           cost->open.threads, cost->open.descriptors, 1e3 * cost->open_s, 1e3 * cost->use_s,
           1e3 * cost->close_s, cost->idle_cpu, cost->waiting_cpu);
    fflush(stdout);
}

static void report_row(FILE *json, uint32_t count, const struct cost *cost)
{
    char name[64];
    double each = bytes_each(cost->open.resident_bytes, cost, count);
    snprintf(name, sizeof name, "idle_connections_%u_cpu", count);
    report_line(json, name, cost->idle_cpu, "%", "of a core, at most", GOAL_CPU, 1);
    snprintf(name, sizeof name, "waiting_connections_%u_cpu", count);
    report_line(json, name, cost->waiting_cpu, "%", "of a core, at most", GOAL_CPU, 1);
    snprintf(name, sizeof name, "idle_connections_%u_bytes", count);
    report_line(json, name, each, "B", "goal, at most", GOAL_BYTES, 1);
    if (count == COUNT_MAX)
        report_line(json, "idle_connection_bytes", each, "B", "goal, at most", GOAL_BYTES, 1);
    snprintf(name, sizeof name, "connections_%u_open", count);
    report_line(json, name, cost->open_s, "s", "", 0, 1);
    snprintf(name, sizeof name, "connections_%u_close", count);
    report_line(json, name, cost->close_s, "s", "", 0, 1);
    snprintf(name, sizeof name, "connections_%u_threads", count);
    report_line(json, name, cost->open.threads, "threads", "", 0, 1);
    snprintf(name, sizeof name, "connections_%u_descriptors", count);
    report_line(json, name, cost->open.descriptors, "descriptors", "", 0, 1);
}

/* Both processes have as many. */
static bool fits(uint32_t count, double each_bytes)
{
    double need = 2 * count * each_bytes;
    double have = 1024 * proc_number("/proc/meminfo", "MemAvailable:") * MEMORY_PART;
    if (need <= have)
        return true;
    printf("  %6u not measured: it would take %.1f GiB, and %.1f GiB are free\n", count, need / (1 << 30),
           have / (1 << 30));
    return false;
}

int main(int argc, char **argv)
{
    static const uint32_t counts[] = {1, SMALL_COUNT, 1000, COUNT_MAX};
    bool quick = argc > 1 && strcmp(argv[argc - 1], "--quick") == 0;
    struct rlimit limit;
    FILE *json = report_open(argc, argv);
    double each = 0;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    printf("  %6s %12s %12s %9s %8s %12s %10s %10s %10s %9s %9s\n", "", "B each", "B when used", "MiB",
           "threads", "descriptors", "open ms", "use ms", "close ms", "idle CPU%", "wait CPU%");
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        uint32_t count = counts[i];
        if ((quick && count > 1000) || !fits(count, each))
            continue;
        struct cost cost = measure(count);
        if (count == SMALL_COUNT)
            each = bytes_each(cost.used.resident_bytes, &cost, count);
        print_row(count, &cost);
        report_row(json, count, &cost);
    }
    if (json)
        fclose(json);
    return 0;
}
