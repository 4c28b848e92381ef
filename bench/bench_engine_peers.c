/*
 * bench_engine_peers.c - one engine and many peers: what all of them get together, how evenly, and what a
 * small message takes meanwhile. Reference: one peer that moves as many bytes through the same memory, and a
 * small message beside nothing; both in the same run.
 *
 * The engine is this process, on CPU 0; the peers are another one on CPU 1, evenly on its engines, and the
 * peer of small messages on an engine of its own. Each message is 16 MiB. Goodput of a peer is its bytes by
 * the time until it had all, from the common start, and Jain's index is of those. Without workers both
 * processes are one thread each, so that the kernel's scheduler has no part in it.
 *
 * usage: bench_engine_peers [--peers 64] [--engines 8] [--repeats 3] [--workers 0] [--mbit RATE]
 *                           [--json FILE]
 *   --mbit: the engine's rate is told (lh_engine_attr.rate_bps)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <longhaul/connection.h>
#include <longhaul/engine.h>

#include "report.h"

#define PEERS_MAX   256u
#define ENGINES_MAX (PEERS_MAX + 1)
#define MESSAGE     ((size_t)16 << 20)
#define WARM_UP     ((size_t)64 << 10)
#define SMALL       64u
#define DEVICE      "udp:[::1]"
#define PATIENCE    (120 * LH_NS_PER_S)
#define IDLE_PINGS  2000u
#define PINGS_MAX   200000u

struct options {
    uint32_t peers;
    uint32_t engines;
    uint32_t repeats;
    uint32_t workers; /* 0: the caller makes progress */
    uint64_t rate_bps;
};

/* A small message there, and back. */
struct pings {
    struct lh_connection *connection;
    bool hub;
    bool over;
    uint32_t wanted; /* 0: until told to stop */
    _Atomic bool stop;
    struct lh_request *send, *recv; /* NULL: not started */
    uint8_t out[SMALL], in[SMALL];  /* the first byte of the last one is not 0 */
    lh_time began_ns;
    uint32_t count;
    double us[PINGS_MAX]; /* one way: half of there and back */
};

/* One process. connections[peers] is the one for small messages. */
struct side {
    struct options options;
    bool hub;
    int to, from; /* the other process */
    uint8_t *bytes;
    struct lh_engine *engines[ENGINES_MAX];
    uint32_t engine_count; /* the last one is for small messages, unless there is one only */
    struct lh_connection *connections[PEERS_MAX + 1];
    struct lh_request *requests[PEERS_MAX];
    struct pings pings;
};

static void must(int code, const char *what)
{
    if (code == 0)
        return;
    fprintf(stderr, "bench: %s: %d, %s\n", what, code, lh_last_error());
    exit(1);
}

static void pin(unsigned cpu)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(cpu, &cpus);
    sched_setaffinity(0, sizeof cpus, &cpus); /* on one CPU only: fine, but slower */
}

static uint32_t option(int argc, char **argv, const char *name, uint32_t otherwise)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return (uint32_t)strtoul(argv[i + 1], NULL, 10);
    return otherwise;
}

static struct lh_engine *create(const struct side *side)
{
    struct lh_engine_attr attr;
    struct lh_engine *engine;
    lh_engine_attr_init(&attr);
    attr.device = DEVICE;
    attr.workers = side->options.workers ? side->options.workers : LH_NO_WORKERS;
    attr.rate_bps = side->hub ? side->options.rate_bps : 0;
    must(lh_engine_create(&attr, &engine), "lh_engine_create");
    return engine;
}

/* ---- connecting -------------------------------------------------------------------------------------- */

static void accept_all(struct side *side)
{
    struct lh_attr attr;
    struct lh_listener *listener;
    lh_attr_init(&attr);
    side->engine_count = 1;
    attr.engine = side->engines[0] = create(side);
    must(lh_listen("[::1]:0", &attr, &listener), "lh_listen");
    uint16_t port = lh_listener_port(listener);
    if (write(side->to, &port, sizeof port) != sizeof port)
        exit(1);
    for (uint32_t i = 0; i <= side->options.peers; i++)
        must(lh_accept(listener, PATIENCE, &side->connections[i]), "lh_accept");
}

static void connect_all(struct side *side)
{
    uint16_t port;
    char where[32];
    if (read(side->from, &port, sizeof port) != sizeof port)
        exit(1);
    snprintf(where, sizeof where, "[::1]:%u", port);
    side->engine_count = side->options.engines + 1;
    for (uint32_t i = 0; i < side->engine_count; i++)
        side->engines[i] = create(side);
    for (uint32_t i = 0; i <= side->options.peers; i++) {
        struct lh_attr attr;
        lh_attr_init(&attr);
        attr.engine =
            side->engines[i < side->options.peers ? i % side->options.engines : side->options.engines];
        must(lh_connect(where, &attr, PATIENCE, &side->connections[i]), "lh_connect");
    }
}

/* ---- small messages ---------------------------------------------------------------------------------- */

static void start_send(struct pings *pings)
{
    must(lh_send(pings->connection, pings->out, SMALL, NULL, &pings->send), "lh_send");
}

static void start(struct pings *pings)
{
    must(lh_recv(pings->connection, pings->in, SMALL, NULL, &pings->recv), "lh_recv");
    if (!pings->hub)
        return;
    uint32_t next = pings->count + 1;
    pings->out[0] = next == PINGS_MAX || next == pings->wanted || atomic_load(&pings->stop);
    pings->began_ns = lh_now(pings->connection);
    start_send(pings);
}

static void end(struct pings *pings)
{
    if (pings->hub)
        pings->us[pings->count++] = (double)(lh_now(pings->connection) - pings->began_ns) / 2e3;
    lh_request_free(pings->send);
    lh_request_free(pings->recv);
    pings->send = pings->recv = NULL;
    pings->over = pings->in[0] != 0;
}

/* What is due, without a wait. Returns what to wait for, or NULL. */
static struct lh_request *step(struct pings *pings)
{
    struct lh_result result;
    if (pings->over || !pings->connection)
        return NULL;
    if (!pings->recv)
        start(pings);
    if (!lh_test(pings->recv, &result))
        return pings->recv;
    must(result.error, "receive");
    if (!pings->send) {
        memcpy(pings->out, pings->in, SMALL);
        start_send(pings);
    }
    if (!lh_test(pings->send, &result))
        return pings->send;
    must(result.error, "send");
    end(pings);
    return NULL;
}

/* ---- progress ---------------------------------------------------------------------------------------- */

/* Without workers: a round of each engine; of the one for small messages after each other one. */
static void progress(struct side *side)
{
    uint32_t last = side->engine_count - 1;
    if (side->options.workers)
        return;
    for (uint32_t i = 0; i < side->engine_count; i++) {
        if (i > 0)
            must(lh_engine_progress(side->engines[last], NULL), "lh_engine_progress");
        if (i == 0 || i < last)
            must(lh_engine_progress(side->engines[i], NULL), "lh_engine_progress");
        step(&side->pings);
    }
}

static void wait_for(struct side *side, struct lh_request *request, struct lh_result *result)
{
    if (side->options.workers)
        must(lh_wait(request, PATIENCE, result), "lh_wait");
    else
        while (!lh_test(request, result))
            progress(side);
}

/* With workers. */
static void *exchange(void *argument)
{
    struct pings *pings = argument;
    while (!pings->over) {
        struct lh_request *request = step(pings);
        if (request)
            must(lh_wait(request, PATIENCE, NULL), "lh_wait");
    }
    return NULL;
}

/* Both processes are here. */
static void meet(struct side *side)
{
    char byte = 0;
    ssize_t got;
    if (write(side->to, &byte, 1) != 1)
        exit(1);
    while ((got = read(side->from, &byte, 1)) < 0 && errno == EAGAIN)
        progress(side);
    if (got != 1)
        exit(1);
}

/* ---- bulk -------------------------------------------------------------------------------------------- */

struct figures {
    double gbit;
    double jain;
    double p50_us;
    double p99_us;
};

static uint8_t *bytes_of(const struct side *side, uint32_t peer)
{
    return side->bytes + peer * MESSAGE;
}

/* A message of every peer, at once; or as many of the first one. Seconds that each took, where it arrives. */
static void move(struct side *side, uint32_t peers, size_t bytes, bool receives, double *seconds)
{
    uint32_t count = side->options.peers;
    lh_time began = lh_now(side->connections[0]);
    for (uint32_t i = 0; i < count; i++) {
        struct lh_connection *connection = side->connections[i % peers];
        must(receives ? lh_recv(connection, bytes_of(side, i), bytes, NULL, &side->requests[i])
                      : lh_send(connection, bytes_of(side, i), bytes, NULL, &side->requests[i]),
             "lh_send or lh_recv");
    }
    for (uint32_t i = 0; i < count; i++) {
        struct lh_result result;
        wait_for(side, side->requests[i], &result);
        must(result.error, "message");
        seconds[i] = (double)(result.ended_ns - began) * 1e-9;
        lh_request_free(side->requests[i]);
    }
}

static double jain_of(const double *seconds, uint32_t count)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += 1 / seconds[i];
        squares += 1 / (seconds[i] * seconds[i]);
    }
    return sum * sum / (count * squares);
}

static double longest(const double *seconds, uint32_t count)
{
    double maximum = 0;
    for (uint32_t i = 0; i < count; i++)
        maximum = seconds[i] > maximum ? seconds[i] : maximum;
    return maximum;
}

static void begin_pings(struct side *side, uint32_t wanted, pthread_t *thread)
{
    struct pings *pings = &side->pings;
    pings->hub = side->hub;
    pings->over = false;
    pings->wanted = wanted;
    pings->count = 0;
    atomic_store(&pings->stop, false);
    pings->connection = side->connections[side->options.peers];
    if (side->options.workers)
        pthread_create(thread, NULL, exchange, pings);
}

static void end_pings(struct side *side, pthread_t thread)
{
    if (side->options.workers)
        pthread_join(thread, NULL);
    while (!side->pings.over)
        progress(side);
}

/* Bulk between the engine and so many peers (0: none), and small messages meanwhile. */
static struct figures run(struct side *side, uint32_t peers, bool to_hub)
{
    double seconds[PEERS_MAX] = {1};
    pthread_t thread = 0;
    meet(side);
    begin_pings(side, peers == 0 ? IDLE_PINGS : 0, &thread);
    if (peers > 0)
        move(side, peers, MESSAGE, to_hub == side->hub, seconds);
    atomic_store(&side->pings.stop, peers > 0);
    end_pings(side, thread);
    struct figures figures = {0};
    if (side->hub) {
        uint32_t count = side->options.peers;
        figures.gbit = (double)(count * MESSAGE) * 8e-9 / longest(seconds, count);
        figures.jain = jain_of(seconds, count);
        figures.p50_us = report_quantile(side->pings.us, side->pings.count, 0.5);
        figures.p99_us = report_quantile(side->pings.us, side->pings.count, 0.99);
    }
    return figures;
}

/* ---- figures ----------------------------------------------------------------------------------------- */

static void compare(FILE *json, const char *what, struct figures many, struct figures one,
                    struct figures idle)
{
    char name[96];
    printf("%-12s %6.2f Gbit/s, one peer %6.2f, ratio %.3f; Jain %.4f; 64 B: %.0f us, p99 %.0f us\n", what,
           many.gbit, one.gbit, many.gbit / one.gbit, many.jain, many.p50_us, many.p99_us);
    snprintf(name, sizeof name, "engine_peers_%s_goodput", what);
    report_line(json, name, many.gbit, "Gbit/s", "one peer", one.gbit, 1);
    snprintf(name, sizeof name, "engine_peers_%s_jain", what);
    report_line(json, name, many.jain, "", "even", 1, 1);
    snprintf(name, sizeof name, "engine_peers_%s_64B_p50", what);
    report_line(json, name, many.p50_us, "us", "idle", idle.p50_us, 1);
    snprintf(name, sizeof name, "engine_peers_%s_64B_p99", what);
    report_line(json, name, many.p99_us, "us", "idle", idle.p99_us, 1);
}

/* Each connection has been used before: its round trip as it was connected is that of two busy threads. */
static void warm_up(struct side *side)
{
    double seconds[PEERS_MAX];
    for (int to_hub = 1; to_hub >= 0; to_hub--) {
        meet(side);
        move(side, side->options.peers, WARM_UP, to_hub == side->hub, seconds);
    }
}

static void measure(struct side *side, FILE *json)
{
    warm_up(side);
    struct figures idle = run(side, 0, false);
    if (side->hub)
        printf("64 B beside nothing: %.0f us, p99 %.0f us\n", idle.p50_us, idle.p99_us);
    for (uint32_t i = 0; i < side->options.repeats; i++)
        for (int to_hub = 1; to_hub >= 0; to_hub--) {
            struct figures one = run(side, 1, to_hub);
            struct figures many = run(side, side->options.peers, to_hub);
            if (side->hub)
                compare(json, to_hub ? "all_to_one" : "one_to_all", many, one, idle);
        }
}

static void begin(struct side *side)
{
    side->bytes = malloc(side->options.peers * MESSAGE);
    if (!side->bytes)
        abort();
    memset(side->bytes, 1, side->options.peers * MESSAGE);
    pin(side->hub ? 0 : 1);
    if (side->hub)
        accept_all(side);
    else
        connect_all(side);
}

int main(int argc, char **argv)
{
    static struct side side;
    int there[2], back[2];
    side.options = (struct options){
        .peers = option(argc, argv, "--peers", 64),
        .engines = option(argc, argv, "--engines", 8),
        .repeats = option(argc, argv, "--repeats", 3),
        .workers = option(argc, argv, "--workers", 0),
        .rate_bps = option(argc, argv, "--mbit", 0) * UINT64_C(1000000),
    };
    if (side.options.peers == 0 || side.options.peers > PEERS_MAX || side.options.engines == 0 ||
        side.options.engines > PEERS_MAX || pipe(there) != 0 || pipe(back) != 0)
        return 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    fflush(stdout);
    pid_t child = fork();
    side.hub = child != 0;
    side.to = side.hub ? there[1] : back[1];
    side.from = side.hub ? back[0] : there[0];
    close(side.hub ? there[0] : there[1]);
    close(side.hub ? back[1] : back[0]);
    begin(&side);
    fcntl(side.from, F_SETFL, O_NONBLOCK);
    measure(&side, side.hub ? report_open(argc, argv) : NULL);
    meet(&side); /* nothing is closed while the other side is at work; the end of the processes does it */
    if (side.hub)
        waitpid(child, NULL, 0);
    return 0;
}
