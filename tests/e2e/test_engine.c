/*
 * test_engine.c - connections and listeners of one engine over real sockets: opened, used and closed by many
 * threads at once, for the thread sanitizer above all; peers that die, fork(), CPUs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>
#include <longhaul/engine.h>
#include <longhaul/queue.h>

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/loopback_engine.h"
#define DEVICE   "udp:127.0.0.1"
#define THREADS  4u
#define LIVES    6u /* connections of each thread, one after the other */
#define MESSAGE  300000u
#define PATIENCE (60 * LH_NS_PER_S) /* only a hang reaches it */

/* Threads may not end a cmocka test, so they count what went wrong. */
static _Atomic uint32_t wrong;

static void must(int code, const char *what)
{
    if (code != 0)
        fail_msg("%s: %d, %s", what, code, lh_last_error());
}

static bool fine(int code, const char *what)
{
    if (code == 0)
        return true;
    fprintf(stderr, "%s: %d, %s\n", what, code, lh_last_error());
    atomic_fetch_add(&wrong, 1);
    return false;
}

/* An engine with a listener, and where that is. */
struct host {
    struct lh_engine *engine;
    struct lh_listener *listener;
    struct lh_connection *accepted; /* the last */
    char where[32];
};

static struct lh_attr attr_on(struct lh_engine *engine)
{
    struct lh_attr attr;
    lh_attr_init(&attr);
    attr.engine = engine;
    attr.slot_bytes = 65536;
    return attr;
}

static void listen_on(struct host *host, struct lh_engine *engine)
{
    struct lh_attr attr = attr_on(engine);
    host->engine = engine;
    must(lh_listen("127.0.0.1:0", &attr, &host->listener), "lh_listen");
    snprintf(host->where, sizeof host->where, "127.0.0.1:%u", lh_listener_port(host->listener));
}

static void close_host(struct host *host)
{
    lh_listener_close(host->listener);
    must(lh_engine_destroy(host->engine), "lh_engine_destroy");
}

/* Waits for a request and frees it. */
static bool finish(struct lh_request *request)
{
    struct lh_result result = {0};
    bool good = fine(lh_wait(request, PATIENCE, &result), "lh_wait") && fine(result.error, "request");
    lh_request_free(request);
    return good;
}

/* One message each way, side by side; every byte of it is `mark`. */
static bool exchange(struct lh_connection *connection, uint8_t mark, uint8_t expected)
{
    uint8_t *out = malloc(MESSAGE), *in = calloc(1, MESSAGE);
    struct lh_request *send, *recv;
    memset(out, mark, MESSAGE);
    bool good = fine(lh_recv(connection, in, MESSAGE, NULL, &recv), "lh_recv");
    good = good && fine(lh_send(connection, out, MESSAGE, NULL, &send), "lh_send");
    good = good && finish(send) && finish(recv);
    for (size_t i = 0; good && i < MESSAGE; i++)
        good = in[i] == expected;
    free(out);
    free(in);
    return good;
}

/* ---- many threads ------------------------------------------------------------------------------------ */

static void *accepts(void *argument)
{
    const struct host *host = argument;
    for (uint32_t i = 0; i < LIVES; i++) {
        struct lh_connection *connection;
        if (!fine(lh_accept(host->listener, PATIENCE, &connection), "lh_accept"))
            return NULL;
        if (!exchange(connection, 1, 2))
            atomic_fetch_add(&wrong, 1);
        lh_close(connection);
    }
    return NULL;
}

static void *connects(void *argument)
{
    const struct host *host = argument;
    for (uint32_t i = 0; i < LIVES; i++) {
        struct lh_attr attr = attr_on(host->engine);
        struct lh_connection *connection;
        attr.reliability = i % 2 ? "ec:mds" : "sr-nack";
        if (!fine(lh_connect(host->where, &attr, PATIENCE, &connection), "lh_connect"))
            return NULL;
        if (!exchange(connection, 2, 1))
            atomic_fetch_add(&wrong, 1);
        lh_close(connection);
    }
    return NULL;
}

/* Both ends of every connection are on one engine. */
static void test_threads_connect_and_close(void **state)
{
    (void)state;
    struct host host;
    pthread_t threads[2 * THREADS];
    listen_on(&host, loopback_engine(2, 2));
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[2 * i], NULL, accepts, &host), 0);
        assert_int_equal(pthread_create(&threads[2 * i + 1], NULL, connects, &host), 0);
    }
    for (uint32_t i = 0; i < 2 * THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(wrong, 0);
    close_host(&host);
}

struct driver {
    struct lh_engine *engine;
    _Atomic bool stop;
};

static void *drives(void *argument)
{
    struct driver *driver = argument;
    while (!atomic_load(&driver->stop)) {
        if (!fine(lh_engine_progress(driver->engine, NULL), "lh_engine_progress"))
            return NULL;
        sched_yield();
    }
    return NULL;
}

static void *accepts_one(void *argument)
{
    struct host *host = argument;
    fine(lh_accept(host->listener, PATIENCE, &host->accepted), "lh_accept");
    return NULL;
}

/* Connects with attributes `attr` to the host; the other end is host->accepted. */
static struct lh_connection *connect_to(struct host *host, const struct lh_attr *attr)
{
    pthread_t acceptor;
    struct lh_connection *connection;
    assert_int_equal(pthread_create(&acceptor, NULL, accepts_one, host), 0);
    must(lh_connect(host->where, attr, PATIENCE, &connection), "lh_connect");
    pthread_join(acceptor, NULL);
    assert_int_equal(wrong, 0);
    return connection;
}

/* A message each way, waited for by polling. */
static void exchange_both(struct lh_connection *one, struct lh_connection *other)
{
    static uint8_t out[2][MESSAGE], in[2][MESSAGE];
    struct lh_connection *ends[2] = {one, other};
    struct lh_request *request[4];
    for (int i = 0; i < 2; i++) {
        memset(out[i], out[i][0] + 1 + i, MESSAGE);
        must(lh_recv(ends[i], in[i], MESSAGE, NULL, &request[2 * i]), "lh_recv");
        must(lh_send(ends[i], out[i], MESSAGE, NULL, &request[2 * i + 1]), "lh_send");
    }
    for (int i = 0; i < 4; i++) {
        struct lh_result result;
        while (!lh_test(request[i], &result))
            sched_yield();
        must(result.error, "request");
        lh_request_free(request[i]);
    }
    assert_memory_equal(in[0], out[1], MESSAGE);
    assert_memory_equal(in[1], out[0], MESSAGE);
}

/* Two threads of the caller make the progress of a listener and of both ends; so do the rendezvous. */
static void test_progress_of_the_caller(void **state)
{
    (void)state;
    struct host host;
    struct driver driver = {.engine = loopback_engine(1, LH_NO_WORKERS)};
    pthread_t threads[2];
    listen_on(&host, driver.engine);
    struct lh_attr attr = attr_on(driver.engine);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, drives, &driver), 0);
    struct lh_connection *connection = connect_to(&host, &attr);
    exchange_both(connection, host.accepted);
    assert_int_equal(lh_engine_destroy(host.engine), -LH_ESTATE);
    assert_non_null(strstr(lh_last_error(), "open connections: 2, listeners: 1"));
    lh_close(connection);
    lh_close(host.accepted);
    atomic_store(&driver.stop, true);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(wrong, 0);
    close_host(&host);
}

/* ---- many at once ------------------------------------------------------------------------------------ */

#define PEERS 12u
#define BULK  ((size_t)2 << 20)

/* Long messages of all connections at once, and small ones of the last meanwhile; to the listener's end, and
 * back. All arrive as they are. */
static void exchange_at_once(struct lh_connection *from[PEERS], struct lh_connection *to[PEERS])
{
    struct lh_request *send[PEERS], *recv[PEERS];
    uint8_t *out = malloc(BULK), *in[PEERS];
    for (size_t i = 0; i < BULK; i++)
        out[i] = (uint8_t)(i * 7 + i / 4096);
    for (uint32_t i = 0; i + 1 < PEERS; i++) {
        in[i] = calloc(1, BULK);
        must(lh_recv(to[i], in[i], BULK, NULL, &recv[i]), "lh_recv");
        must(lh_send(from[i], out, BULK, NULL, &send[i]), "lh_send");
    }
    for (uint32_t k = 0; k < 50; k++) {
        uint8_t small[64] = {0};
        struct lh_request *request[2];
        must(lh_recv(to[PEERS - 1], small, sizeof small, NULL, &request[0]), "lh_recv");
        must(lh_send(from[PEERS - 1], out + k, sizeof small, NULL, &request[1]), "lh_send");
        assert_true(finish(request[0]) && finish(request[1]));
        assert_memory_equal(small, out + k, sizeof small);
    }
    for (uint32_t i = 0; i + 1 < PEERS; i++) {
        assert_true(finish(recv[i]) && finish(send[i]));
        assert_memory_equal(in[i], out, BULK);
        free(in[i]);
    }
    free(out);
}

/* Twelve connections between two engines, of which one has a rate. */
static void test_all_at_once(void **state)
{
    (void)state;
    struct host host;
    struct lh_engine_attr attr;
    struct lh_engine *other;
    struct lh_connection *ends[2][PEERS];
    lh_engine_attr_init(&attr);
    attr.device = DEVICE;
    attr.rate_bps = UINT64_C(2000000000);
    must(lh_engine_create(&attr, &other), "lh_engine_create");
    listen_on(&host, loopback_engine(1, 1));
    for (uint32_t i = 0; i < PEERS; i++) {
        struct lh_attr own = attr_on(other);
        ends[0][i] = connect_to(&host, &own);
        ends[1][i] = host.accepted;
    }
    exchange_at_once(ends[0], ends[1]);
    exchange_at_once(ends[1], ends[0]);
    for (uint32_t i = 0; i < PEERS; i++) {
        lh_close(ends[0][i]);
        lh_close(ends[1][i]);
    }
    must(lh_engine_destroy(other), "lh_engine_destroy");
    close_host(&host);
}

/* ---- what is each connection's ----------------------------------------------------------------------- */

static void test_each_client_proposes_its_link_and_channels(void **state)
{
    (void)state;
    static const char *const links[] = {"rtt=40ms", "rtt=4ms", NULL};
    struct host host;
    struct lh_connection *ends[3][2];
    struct lh_engine *clients = loopback_engine(2, 2);
    listen_on(&host, loopback_engine(2, 1));
    for (uint32_t i = 0; i < 3; i++) {
        struct lh_attr attr = attr_on(clients), agreed;
        struct lh_path_view path;
        attr.channels = 1 + i % 2;
        if (links[i])
            must(lh_link_parse(links[i], &attr.link), "lh_link_parse");
        ends[i][0] = connect_to(&host, &attr);
        ends[i][1] = host.accepted;
        must(lh_connection_attr(ends[i][1], &agreed), "lh_connection_attr");
        assert_int_equal(agreed.link.delay_ns, attr.link.delay_ns);
        assert_int_equal(agreed.channels, attr.channels);
        must(lh_connection_path(ends[i][1], &path), "lh_connection_path");
        assert_true(path.rtt_ns >= 2 * attr.link.delay_ns);
    }
    for (uint32_t i = 0; i < 3; i++)
        exchange_both(ends[i][0], ends[i][1]);
    for (uint32_t i = 0; i < 3; i++) {
        lh_close(ends[i][0]);
        lh_close(ends[i][1]);
    }
    must(lh_engine_destroy(clients), "lh_engine_destroy");
    close_host(&host);
}

/* Texts of the attributes need not live on: a listener has copies, and so has an engine. */
static void test_texts_are_copied(void **state)
{
    (void)state;
    char device[] = DEVICE, reliability[] = "ec:mds", congestion[] = "swift";
    struct lh_engine_attr engine_attr;
    struct host host;
    struct lh_congestion_report report;
    struct lh_scheme_report scheme;
    lh_engine_attr_init(&engine_attr);
    engine_attr.device = device;
    must(lh_engine_create(&engine_attr, &host.engine), "lh_engine_create");
    struct lh_attr attr = attr_on(host.engine);
    attr.reliability = reliability;
    attr.congestion = congestion;
    must(lh_listen("127.0.0.1:0", &attr, &host.listener), "lh_listen");
    snprintf(host.where, sizeof host.where, "127.0.0.1:%u", lh_listener_port(host.listener));
    memset(device, 'x', sizeof device - 1);
    memset(reliability, 'x', sizeof reliability - 1);
    memset(congestion, 'x', sizeof congestion - 1);
    attr = attr_on(host.engine);
    struct lh_connection *connection = connect_to(&host, &attr);
    must(lh_connection_congestion(host.accepted, &report), "lh_connection_congestion");
    must(lh_connection_scheme(host.accepted, &scheme), "lh_connection_scheme");
    assert_string_equal(report.controller, "swift");
    assert_string_equal(scheme.scheme, "ec:mds");
    lh_close(connection);
    lh_close(host.accepted);
    close_host(&host);
}

/* ---- threads and CPUs -------------------------------------------------------------------------------- */

/* Threads of that name; where they may run goes to *set, if it is not NULL. */
static uint32_t count_threads(const char *name, cpu_set_t *set)
{
    uint32_t count = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        char path[300], comm[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *file = fopen(path, "r");
        if (!file)
            continue;
        if (fgets(comm, sizeof comm, file))
            comm[strcspn(comm, "\n")] = '\0';
        fclose(file);
        if (strcmp(comm, name) != 0)
            continue;
        count++;
        if (set)
            must(sched_getaffinity(atoi(task->d_name), sizeof *set, set), "sched_getaffinity");
    }
    closedir(tasks);
    return count;
}

/* A thread that has been joined may be listed for a moment yet: the kernel wakes who joins it first. */
static bool are_gone(const char *name)
{
    for (uint32_t i = 0; count_threads(name, NULL) > 0; i++) {
        if (i == PATIENCE / LH_NS_PER_MS)
            return false;
        usleep(1000);
    }
    return true;
}

#define MANY 12u

static void test_threads_are_the_engine_s(void **state)
{
    (void)state;
    cpu_set_t allowed, worker, coder;
    int cpu = 0;
    must(sched_getaffinity(0, sizeof allowed, &allowed), "sched_getaffinity");
    while (!CPU_ISSET((unsigned)cpu, &allowed))
        cpu++;
    struct lh_engine_attr engine_attr;
    struct lh_engine *engine;
    lh_engine_attr_init(&engine_attr);
    engine_attr.device = DEVICE;
    engine_attr.worker_cpus = &cpu;
    engine_attr.coders = 2;
    must(lh_engine_create(&engine_attr, &engine), "lh_engine_create");
    struct lh_attr attr = attr_on(engine);
    attr.reliability = "ec:mds";
    struct host host;
    struct lh_connection *ends[MANY][2];
    listen_on(&host, engine);
    for (uint32_t i = 0; i < MANY; i++) {
        ends[i][0] = connect_to(&host, &attr);
        ends[i][1] = host.accepted;
        exchange_both(ends[i][0], ends[i][1]);
    }
    assert_int_equal(count_threads("lh-worker", &worker), 1);
    assert_int_equal(count_threads("lh-work", &coder), 2);
    assert_int_equal(CPU_COUNT(&worker), 1);
    assert_true(CPU_ISSET((unsigned)cpu, &worker));
    assert_true(CPU_EQUAL(&coder, &allowed));
    for (uint32_t i = 0; i < MANY; i++) {
        lh_close(ends[i][0]);
        lh_close(ends[i][1]);
    }
    close_host(&host);
    assert_true(are_gone("lh-worker"));
    assert_true(are_gone("lh-work"));
}

/* ---- other processes --------------------------------------------------------------------------------- */

/* Connects to what it reads from the pipe, and sends until it is killed. */
static void be_killed(int commands)
{
    static uint8_t data[MESSAGE];
    struct lh_connection *connection;
    struct lh_request *request;
    char where[32];
    if (read(commands, where, sizeof where) <= 0 || lh_connect(where, NULL, PATIENCE, &connection))
        _exit(1);
    for (;;) { /* until it is killed, or the parent is gone */
        if (lh_send(connection, data, sizeof data, NULL, &request) || lh_wait(request, PATIENCE, NULL))
            _exit(1);
        lh_request_free(request);
    }
}

/* A test forks it while it has no threads. */
static pid_t fork_peer(int *commands)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[1]);
        be_killed(ends[0]);
    }
    close(ends[0]);
    *commands = ends[1];
    return child;
}

/* One peer is killed while it sends; the connection beside it does not notice. */
static void test_a_killed_peer_takes_nothing_with_it(void **state)
{
    (void)state;
    int commands;
    pid_t child = fork_peer(&commands);
    struct host host;
    struct lh_request *request;
    struct lh_result result;
    uint8_t *buffer = malloc(MESSAGE);
    listen_on(&host, loopback_engine(1, 1));
    struct lh_attr attr = attr_on(host.engine);
    struct lh_connection *ends[2];
    ends[0] = connect_to(&host, &attr);
    ends[1] = host.accepted;
    assert_int_equal(write(commands, host.where, sizeof host.where), sizeof host.where);
    struct lh_connection *victim;
    must(lh_accept(host.listener, PATIENCE, &victim), "lh_accept");
    must(lh_recv(victim, buffer, MESSAGE, NULL, &request), "lh_recv");
    assert_true(finish(request));
    must(lh_recv(victim, buffer, MESSAGE, NULL, &request), "lh_recv");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    while (lh_connection_error(victim) == 0) { /* the next message may have arrived whole */
        must(lh_wait(request, PATIENCE, &result), "lh_wait");
        lh_request_free(request);
        exchange_both(ends[0], ends[1]);
        if (lh_recv(victim, buffer, MESSAGE, NULL, &request) != 0)
            request = NULL;
    }
    assert_true(lh_connection_error(victim) == -LH_EPEER || lh_connection_error(victim) == -LH_ECLOSED);
    exchange_both(ends[0], ends[1]);
    lh_close(victim);
    lh_request_free(request);
    exchange_both(ends[0], ends[1]);
    lh_close(ends[0]);
    lh_close(ends[1]);
    close(commands);
    free(buffer);
    close_host(&host);
}

/* What a child may do with what it inherits. Returns the number of the first call that did something else. */
static int use_inherited(struct host *host, struct lh_connection *connection,
                         struct lh_completion_queue *queue)
{
    struct lh_attr attr = attr_on(host->engine);
    struct lh_connection *made;
    struct lh_completion_queue *other;
    struct lh_listener *listener;
    struct lh_request *request;
    uint8_t byte = 1, blob[LH_BLOB_MAX] = {0};
    const int codes[] = {
        lh_send(connection, &byte, 1, NULL, &request),
        lh_recv(connection, &byte, 1, NULL, &request),
        lh_post_send(connection, &byte, 1, NULL, queue, 0, NULL),
        lh_post_recv(connection, &byte, 1, NULL, queue, 0, NULL),
        lh_completion_queue_create(host->engine, 1, &other),
        lh_completion_queue_destroy(queue),
        lh_open(&attr, &made),
        lh_listen("127.0.0.1:0", &attr, &listener),
        lh_connect(host->where, &attr, 0, &made),
        lh_accept(host->listener, 0, &made),
        lh_attach(connection, blob, sizeof blob),
        lh_engine_progress(host->engine, NULL),
        lh_engine_destroy(host->engine),
    };
    for (int i = 0; i < (int)(sizeof codes / sizeof codes[0]); i++)
        if (codes[i] != -LH_ESTATE)
            return i + 1;
    lh_close(connection);
    lh_listener_close(host->listener);
    return 0;
}

/* An engine of the child's own works. The thread sanitizer allows no thread there. */
static int use_own(void)
{
    struct lh_engine_attr attr;
    struct lh_engine *engine;
    lh_engine_attr_init(&attr);
    attr.device = DEVICE;
    attr.workers = LH_NO_WORKERS;
    return lh_engine_create(&attr, &engine) || lh_engine_progress(engine, NULL) ||
           lh_engine_destroy(engine);
}

static void test_a_child_leaves_its_parent_s_alone(void **state)
{
    (void)state;
    struct host host;
    listen_on(&host, loopback_engine(1, 1));
    struct lh_attr attr = attr_on(host.engine);
    struct lh_connection *connection = connect_to(&host, &attr);
    struct lh_completion_queue *queue;
    must(lh_completion_queue_create(host.engine, 2, &queue), "lh_completion_queue_create");
    exchange_both(connection, host.accepted);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int failed = use_inherited(&host, connection, queue);
        _exit(failed ? failed : use_own() ? 100 : 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    exchange_both(connection, host.accepted);
    lh_close(connection);
    lh_close(host.accepted);
    must(lh_completion_queue_destroy(queue), "lh_completion_queue_destroy");
    close_host(&host);
}

/* Nor does it use a listener that has no engine, which works on in its parent. */
static void test_a_child_leaves_a_lone_listener_alone(void **state)
{
    (void)state;
    struct host host;
    struct lh_connection *made;
    listen_on(&host, NULL);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int error = lh_accept(host.listener, 0, &made);
        lh_listener_close(host.listener);
        _exit(error == -LH_ESTATE ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    struct lh_connection *connection = connect_to(&host, NULL);
    lh_close(connection);
    lh_close(host.accepted);
    lh_listener_close(host.listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_killed_peer_takes_nothing_with_it), /* first: it forks */
        cmocka_unit_test(test_threads_connect_and_close),
        cmocka_unit_test(test_progress_of_the_caller),
        cmocka_unit_test(test_all_at_once),
        cmocka_unit_test(test_each_client_proposes_its_link_and_channels),
        cmocka_unit_test(test_texts_are_copied),
        cmocka_unit_test(test_threads_are_the_engine_s),
        cmocka_unit_test(test_a_child_leaves_its_parent_s_alone),
        cmocka_unit_test(test_a_child_leaves_a_lone_listener_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
