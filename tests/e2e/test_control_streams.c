/*
 * test_control_streams.c - two engines have one TCP connection, however many connections lie between
 * them; each of those opens, works and ends by itself.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>
#include <longhaul/engine.h>

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "launch/control_connection.h"
#include "launch/handshake.h"
#include "launch/tcp.h"
#include "support/loopback_engine.h"

#define PATIENCE (60 * LH_NS_PER_S) /* only a hang reaches it */
#define MANY     40u
#define THREADS  4u
#define HOUSE    32u /* clients that a listener hears at once */

static _Atomic uint32_t wrong; /* threads may not end a cmocka test */

static void must(int code, const char *what)
{
    if (code != 0)
        fail_msg("%s: %d, %s", what, code, lh_last_error());
}

static struct lh_attr attr_on(struct lh_engine *engine)
{
    struct lh_attr attr;
    lh_attr_init(&attr);
    attr.engine = engine;
    attr.slot_bytes = 65536;
    attr.slots = 4;
    return attr;
}

struct host {
    struct lh_engine *engine;
    struct lh_listener *listener;
    char where[32];
};

static void listen_on(struct host *host, struct lh_engine *engine)
{
    struct lh_attr attr = attr_on(engine);
    host->engine = engine;
    must(lh_listen("127.0.0.1:0", &attr, &host->listener), "lh_listen");
    snprintf(host->where, sizeof host->where, "127.0.0.1:%u", lh_listener_port(host->listener));
}

struct meeting {
    struct host *host;
    struct lh_engine *engine;
    struct lh_connection *ends[2];
};

static void *accepts(void *argument)
{
    struct meeting *meeting = argument;
    if (lh_accept(meeting->host->listener, PATIENCE, &meeting->ends[1]))
        atomic_fetch_add(&wrong, 1);
    return NULL;
}

static void meet(struct meeting *meeting)
{
    struct lh_attr attr = attr_on(meeting->engine);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, accepts, meeting), 0);
    must(lh_connect(meeting->host->where, &attr, PATIENCE, &meeting->ends[0]), "lh_connect");
    pthread_join(thread, NULL);
    assert_int_equal(wrong, 0);
}

static void transfer(struct lh_connection *from, struct lh_connection *to, uint8_t byte)
{
    struct lh_request *request[2];
    uint8_t in = 0;
    must(lh_recv(to, &in, 1, NULL, &request[0]), "lh_recv");
    must(lh_send(from, &byte, 1, NULL, &request[1]), "lh_send");
    for (int i = 0; i < 2; i++) {
        struct lh_result result;
        while (!lh_test(request[i], &result))
            sched_yield();
        must(result.error, "request");
        lh_request_free(request[i]);
    }
    assert_int_equal(in, byte);
}

static void expect_end(struct lh_connection *connection, int error)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    while (lh_connection_error(connection) == 0) /* only a hang goes on */
        nanosleep(&pause, NULL);
    assert_int_equal(lh_connection_error(connection), error);
}

/* TCP sockets of this process that are connected. */
static uint32_t count_tcp(void)
{
    uint32_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        struct sockaddr_storage address;
        socklen_t size = sizeof address;
        int type = 0, fd = atoi(entry->d_name);
        socklen_t type_size = sizeof type;
        count += getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) == 0 && type == SOCK_STREAM &&
                 getpeername(fd, (struct sockaddr *)&address, &size) == 0 && address.ss_family == AF_INET;
    }
    closedir(folder);
    return count;
}

/* ---- one TCP connection ------------------------------------------------------------------------------ */

static void test_one_for_all(void **state)
{
    (void)state;
    struct host host;
    struct meeting meetings[MANY];
    struct lh_engine *clients = loopback_engine(1, 1);
    listen_on(&host, loopback_engine(1, 1));
    for (uint32_t i = 0; i < MANY; i++) {
        meetings[i] = (struct meeting){.host = &host, .engine = clients};
        meet(&meetings[i]);
        assert_int_equal(count_tcp(), 2); /* both ends are here */
    }
    for (uint32_t i = 0; i < MANY; i++) {
        transfer(meetings[i].ends[0], meetings[i].ends[1], (uint8_t)(i + 1));
        transfer(meetings[i].ends[1], meetings[i].ends[0], (uint8_t)(i + 2));
    }
    /* The first one ends before the others, by either side: nothing else changes. */
    for (uint32_t i = 0; i < MANY - 1; i++) {
        int first = (int)(i % 2);
        lh_close(meetings[i].ends[first]);
        expect_end(meetings[i].ends[1 - first], -LH_ECLOSED);
        lh_close(meetings[i].ends[1 - first]);
        transfer(meetings[MANY - 1].ends[0], meetings[MANY - 1].ends[1], 7);
        assert_int_equal(count_tcp(), 2);
        meet(&meetings[i]); /* numbers are used again */
        transfer(meetings[i].ends[0], meetings[i].ends[1], 8);
    }
    assert_int_equal(count_tcp(), 2);
    for (uint32_t i = 0; i < MANY; i++)
        for (int end = 0; end < 2; end++)
            lh_close(meetings[i].ends[end]);
    assert_int_equal(count_tcp(), 0);
    lh_listener_close(host.listener);
    must(lh_engine_destroy(host.engine), "lh_engine_destroy");
    must(lh_engine_destroy(clients), "lh_engine_destroy");
}

/* The accepting side closes the last one, and with it the TCP connection; whoever connects just then may take
 * that for open, and connects anew. */
static void test_the_last_one_closes_it(void **state)
{
    (void)state;
    struct host host;
    struct lh_engine *clients = loopback_engine(1, 1);
    listen_on(&host, loopback_engine(1, 1));
    struct meeting before = {.host = &host, .engine = clients};
    meet(&before);
    for (uint32_t i = 0; i < 30; i++) {
        struct meeting next = {.host = &host, .engine = clients};
        lh_close(before.ends[1]);
        meet(&next);
        transfer(next.ends[0], next.ends[1], 9);
        expect_end(before.ends[0], -LH_ECLOSED);
        lh_close(before.ends[0]);
        before = next;
    }
    lh_close(before.ends[0]);
    lh_close(before.ends[1]);
    lh_listener_close(host.listener);
    must(lh_engine_destroy(host.engine), "lh_engine_destroy");
    must(lh_engine_destroy(clients), "lh_engine_destroy");
}

/* A connection without an engine has a TCP connection of its own, on either side. */
static void test_without_an_engine(void **state)
{
    (void)state;
    struct host host;
    struct meeting meetings[3];
    listen_on(&host, loopback_engine(1, 1));
    for (uint32_t i = 0; i < 3; i++) {
        meetings[i] = (struct meeting){.host = &host};
        meet(&meetings[i]);
        assert_int_equal(count_tcp(), 2 * (i + 1));
        transfer(meetings[i].ends[0], meetings[i].ends[1], 3);
    }
    for (uint32_t i = 0; i < 3; i++)
        for (int end = 0; end < 2; end++)
            lh_close(meetings[i].ends[end]);
    lh_listener_close(host.listener);
    must(lh_engine_destroy(host.engine), "lh_engine_destroy");
    struct lh_engine *clients = loopback_engine(1, 1);
    listen_on(&host, NULL);
    for (uint32_t i = 0; i < 3; i++) {
        meetings[i] = (struct meeting){.host = &host, .engine = clients};
        meet(&meetings[i]);
        assert_int_equal(count_tcp(), 2 * (i + 1));
    }
    for (uint32_t i = 0; i < 3; i++)
        for (int end = 0; end < 2; end++)
            lh_close(meetings[i].ends[end]);
    lh_listener_close(host.listener);
    must(lh_engine_destroy(clients), "lh_engine_destroy");
}

/* ---- progress of the caller -------------------------------------------------------------------------- */

struct driver {
    struct lh_engine *engine;
    _Atomic bool stop;
};

static void *drives(void *argument)
{
    struct driver *driver = argument;
    while (!atomic_load(&driver->stop)) {
        if (lh_engine_progress(driver->engine, NULL))
            atomic_fetch_add(&wrong, 1);
        sched_yield();
    }
    return NULL;
}

/* Nobody else makes progress while the two connect. */
static void test_progress_of_the_caller(void **state)
{
    (void)state;
    struct host host;
    struct meeting meetings[4];
    struct lh_engine *clients = loopback_engine(1, LH_NO_WORKERS);
    listen_on(&host, loopback_engine(1, LH_NO_WORKERS));
    for (uint32_t i = 0; i < 4; i++) {
        meetings[i] = (struct meeting){.host = &host, .engine = clients};
        meet(&meetings[i]);
        assert_int_equal(count_tcp(), 2);
    }
    struct driver drivers[2] = {{.engine = clients}, {.engine = host.engine}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, drives, &drivers[i]), 0);
    for (uint32_t i = 0; i < 4; i++)
        transfer(meetings[i].ends[0], meetings[i].ends[1], 5);
    lh_close(meetings[0].ends[0]);
    expect_end(meetings[0].ends[1], -LH_ECLOSED);
    for (int i = 0; i < 2; i++) {
        atomic_store(&drivers[i].stop, true);
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(wrong, 0);
    meetings[0].ends[0] = NULL;
    for (uint32_t i = 0; i < 4; i++)
        for (int end = 0; end < 2; end++)
            lh_close(meetings[i].ends[end]);
    lh_listener_close(host.listener);
    must(lh_engine_destroy(host.engine), "lh_engine_destroy");
    must(lh_engine_destroy(clients), "lh_engine_destroy");
}

/* ---- threads ----------------------------------------------------------------------------------------- */

static void *connects_and_closes(void *argument)
{
    const struct meeting *meeting = argument;
    for (uint32_t i = 0; i < 10; i++) {
        struct lh_attr attr = attr_on(meeting->engine);
        struct lh_connection *connection;
        if (lh_connect(meeting->host->where, &attr, PATIENCE, &connection))
            atomic_fetch_add(&wrong, 1);
        else
            lh_close(connection);
    }
    return NULL;
}

static void test_many_at_once(void **state)
{
    (void)state;
    struct host host;
    struct lh_engine *clients = loopback_engine(1, 1);
    pthread_t threads[THREADS];
    listen_on(&host, loopback_engine(1, 1));
    struct meeting meeting = {.host = &host, .engine = clients};
    for (uint32_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, connects_and_closes, &meeting), 0);
    for (uint32_t i = 0; i < 10 * THREADS; i++) {
        struct lh_connection *accepted;
        must(lh_accept(host.listener, PATIENCE, &accepted), "lh_accept");
        lh_close(accepted);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(wrong, 0);
    lh_listener_close(host.listener);
    must(lh_engine_destroy(host.engine), "lh_engine_destroy");
    must(lh_engine_destroy(clients), "lh_engine_destroy");
    assert_int_equal(count_tcp(), 0);
}

/* The listener goes, its connections stay, and no more come. */
static void test_connections_outlive_the_listener(void **state)
{
    (void)state;
    struct host host;
    struct lh_engine *clients = loopback_engine(1, 1);
    struct lh_connection *refused;
    listen_on(&host, loopback_engine(1, 1));
    struct meeting meeting = {.host = &host, .engine = clients};
    meet(&meeting);
    lh_listener_close(host.listener);
    struct lh_attr attr = attr_on(clients);
    assert_int_equal(lh_connect(host.where, &attr, PATIENCE, &refused), -LH_EPEER);
    assert_non_null(strstr(lh_last_error(), "Connection refused"));
    transfer(meeting.ends[0], meeting.ends[1], 5);
    lh_close(meeting.ends[0]);
    expect_end(meeting.ends[1], -LH_ECLOSED);
    lh_close(meeting.ends[1]);
    must(lh_engine_destroy(host.engine), "lh_engine_destroy");
    must(lh_engine_destroy(clients), "lh_engine_destroy");
}

/* Another listener at the same address, while a connection of the first one lives: it has a TCP connection
 * of its own, which serves all that follow. */
static void test_another_listener(void **state)
{
    (void)state;
    struct host host;
    struct lh_engine *clients = loopback_engine(1, 1);
    listen_on(&host, loopback_engine(1, 1));
    struct meeting meetings[4];
    for (uint32_t i = 0; i < 4; i++) {
        meetings[i] = (struct meeting){.host = &host, .engine = clients};
        meet(&meetings[i]);
        assert_int_equal(count_tcp(), i == 0 ? 2 : 4);
        if (i > 0)
            continue;
        struct lh_attr attr = attr_on(host.engine);
        lh_listener_close(host.listener);
        must(lh_listen(host.where, &attr, &host.listener), "lh_listen");
    }
    for (uint32_t i = 0; i < 4; i++) {
        transfer(meetings[i].ends[0], meetings[i].ends[1], 5);
        lh_close(meetings[i].ends[0]);
        expect_end(meetings[i].ends[1], -LH_ECLOSED);
        lh_close(meetings[i].ends[1]);
    }
    lh_listener_close(host.listener);
    must(lh_engine_destroy(host.engine), "lh_engine_destroy");
    must(lh_engine_destroy(clients), "lh_engine_destroy");
}

/* ---- a TCP connection that passes nothing any more --------------------------------------------------- */

#define RELAYED_MAX 4u

/* Between clients and a host, as a firewall is, which forgets the first of their TCP connections, or resets
 * it. */
struct relay {
    const struct host *host;
    int listener;
    uint32_t count;
    int pairs[RELAYED_MAX][2];
    _Atomic uint32_t forgotten;
    _Atomic bool resets;
    _Atomic bool stop;
};

static void take_one(struct relay *relay)
{
    struct pollfd wait = {.fd = relay->listener, .events = POLLIN};
    if (relay->count == RELAYED_MAX || poll(&wait, 1, 1) != 1)
        return;
    int *pair = relay->pairs[relay->count];
    pair[0] = accept(relay->listener, NULL, NULL);
    if (pair[0] < 0 || tcp_connect(relay->host->where, tcp_deadline(PATIENCE), &pair[1]))
        atomic_fetch_add(&wrong, 1);
    else
        relay->count++;
}

static void pass_on(int from, int to)
{
    uint8_t bytes[4096];
    ssize_t got = recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got > 0) /* to one that has closed: lost, as on any path */
        (void)tcp_write(to, bytes, (size_t)got, tcp_deadline(PATIENCE));
}

static void reset_first(struct relay *relay)
{
    for (int end = 0; end < 2; end++) {
        struct linger none = {.l_onoff = 1};
        setsockopt(relay->pairs[0][end], SOL_SOCKET, SO_LINGER, &none, sizeof none);
        close(relay->pairs[0][end]);
    }
    atomic_store(&relay->forgotten, 1);
}

static void *relays(void *argument)
{
    struct relay *relay = argument;
    while (!atomic_load(&relay->stop)) {
        if (atomic_exchange(&relay->resets, false))
            reset_first(relay);
        take_one(relay);
        for (uint32_t i = atomic_load(&relay->forgotten); i < relay->count; i++)
            for (int end = 0; end < 2; end++)
                pass_on(relay->pairs[i][end], relay->pairs[i][1 - end]);
    }
    return NULL;
}

/* A host, and clients of an engine that see it through a relay. */
struct relayed {
    struct host host, seen;
    struct relay relay;
    struct lh_engine *clients;
    struct meeting meetings[3];
    pthread_t thread;
};

static void begin_relayed(struct relayed *relayed)
{
    uint16_t port;
    relayed->clients = loopback_engine(1, 1);
    listen_on(&relayed->host, loopback_engine(1, 1));
    relayed->relay = (struct relay){.host = &relayed->host};
    must(tcp_listen("127.0.0.1:0", &relayed->relay.listener, &port), "tcp_listen");
    assert_int_equal(pthread_create(&relayed->thread, NULL, relays, &relayed->relay), 0);
    relayed->seen = relayed->host;
    snprintf(relayed->seen.where, sizeof relayed->seen.where, "127.0.0.1:%u", port);
}

static void meet_relayed(struct relayed *relayed, uint32_t i)
{
    relayed->meetings[i] = (struct meeting){.host = &relayed->seen, .engine = relayed->clients};
    meet(&relayed->meetings[i]);
}

/* All three work, and close; they have used two TCP connections. */
static void end_relayed(struct relayed *relayed, bool first_is_closed)
{
    for (uint32_t i = 0; i < 3; i++) {
        struct lh_connection **ends = relayed->meetings[i].ends;
        transfer(ends[0], ends[1], 5);
        lh_close(ends[0]);
        expect_end(ends[1], -LH_ECLOSED);
        lh_close(ends[1]);
    }
    atomic_store(&relayed->relay.stop, true);
    pthread_join(relayed->thread, NULL);
    assert_int_equal(relayed->relay.count, 2);
    for (uint32_t i = first_is_closed; i < 2; i++)
        for (int end = 0; end < 2; end++)
            close(relayed->relay.pairs[i][end]);
    close(relayed->relay.listener);
    assert_int_equal(wrong, 0);
    lh_listener_close(relayed->host.listener);
    must(lh_engine_destroy(relayed->host.engine), "lh_engine_destroy");
    must(lh_engine_destroy(relayed->clients), "lh_engine_destroy");
}

/* It costs who connects next some time, and no one else: the next ones use the new TCP connection. */
static void test_a_forgotten_connection(void **state)
{
    (void)state;
    struct relayed relayed;
    begin_relayed(&relayed);
    for (uint32_t i = 0; i < 3; i++) {
        meet_relayed(&relayed, i);
        atomic_store(&relayed.relay.forgotten, 1);
    }
    end_relayed(&relayed, false);
}

static void expect_lost(struct lh_connection *connection)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (bool lost = false; !lost; nanosleep(&pause, NULL)) {
        pthread_mutex_lock(&connection->requests->lock);
        lost = connection->keepalive.lost;
        pthread_mutex_unlock(&connection->requests->lock);
    }
}

/* It ends no connection: packets show that the peer lives. The next one has a new TCP connection. */
static void test_a_connection_that_was_reset(void **state)
{
    (void)state;
    struct relayed relayed;
    begin_relayed(&relayed);
    meet_relayed(&relayed, 0);
    meet_relayed(&relayed, 1);
    atomic_store(&relayed.relay.resets, true);
    for (uint32_t i = 0; i < 4; i++)
        expect_lost(relayed.meetings[i / 2].ends[i % 2]);
    meet_relayed(&relayed, 2);
    end_relayed(&relayed, true);
}

/* ---- a full listener --------------------------------------------------------------------------------- */

static uint32_t propose(uint8_t body[HANDSHAKE_BODY_MAX])
{
    const struct handshake_proposal usual = {
        .mtu_bytes = 1024, .slots = 4, .channels = 1, .generations = 1, .slot_bytes = 65536};
    return handshake_proposal_encode(&usual, body);
}

/* One that says no more than its proposal, which the listener has answered. */
static int stall_alone(const struct host *host)
{
    int fd;
    uint8_t frame[HANDSHAKE_HEADER_BYTES + HANDSHAKE_BODY_MAX];
    uint32_t bytes = propose(frame + HANDSHAKE_HEADER_BYTES);
    const struct handshake_header header = {HANDSHAKE_VERSION, HANDSHAKE_PROPOSAL, 0, bytes};
    must(tcp_connect(host->where, tcp_deadline(PATIENCE), &fd), "tcp_connect");
    handshake_header_encode(&header, frame);
    must(tcp_write(fd, frame, HANDSHAKE_HEADER_BYTES + bytes, tcp_deadline(PATIENCE)), "tcp_write");
    must(tcp_wait(fd, false, tcp_deadline(PATIENCE)), "tcp_wait");
    return fd;
}

static enum handshake_type hear(struct control_stream *stream, uint8_t body[HANDSHAKE_BODY_MAX])
{
    struct handshake_header header;
    int got;
    while ((got = control_stream_receive(stream, &header, body)) == 0) /* only a hang goes on */
        sched_yield();
    assert_int_equal(got, 1);
    return header.type;
}

/* The same, over the TCP connection of another. */
static struct control_stream *stall_beside(const struct host *host, struct lh_engine *clients, int wake_fd)
{
    uint8_t body[HANDSHAKE_BODY_MAX];
    struct control_stream *stream = control_stream_open(clients, host->where, "", wake_fd);
    assert_non_null(stream);
    must(control_stream_send(stream, HANDSHAKE_PROPOSAL, body, propose(body)), "control_stream_send");
    assert_int_equal(hear(stream, body), HANDSHAKE_PROPOSAL);
    return stream;
}

/* Who has most places gives one back, not who came first. */
static void test_places_are_shared(void **state)
{
    (void)state;
    struct host host;
    struct lh_engine *clients = loopback_engine(1, 1);
    struct control_stream *streams[CONTROL_OPENING_MAX];
    int fds[HOUSE - CONTROL_OPENING_MAX + 1];
    uint8_t body[HANDSHAKE_BODY_MAX];
    int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    uint32_t alone = sizeof fds / sizeof fds[0] - 1;
    listen_on(&host, loopback_engine(1, 1));
    struct meeting meeting = {.host = &host, .engine = clients};
    meet(&meeting);
    for (uint32_t i = 0; i < alone; i++)
        fds[i] = stall_alone(&host);
    for (uint32_t i = 0; i < CONTROL_OPENING_MAX; i++)
        streams[i] = stall_beside(&host, clients, wake_fd);
    fds[alone] = stall_alone(&host);
    assert_int_equal(hear(streams[0], body), HANDSHAKE_REFUSE);
    assert_memory_equal(body, HANDSHAKE_FULL, strlen(HANDSHAKE_FULL));
    for (uint32_t i = 0; i <= alone; i++)
        close(fds[i]);
    for (uint32_t i = 0; i < CONTROL_OPENING_MAX; i++)
        control_stream_refuse(streams[i], "over");
    lh_close(meeting.ends[0]);
    lh_close(meeting.ends[1]);
    close(wake_fd);
    lh_listener_close(host.listener);
    must(lh_engine_destroy(host.engine), "lh_engine_destroy");
    must(lh_engine_destroy(clients), "lh_engine_destroy");
}

/* Threads open streams in one order, and their proposals leave in another. One fails before its own. */
static void test_proposals_in_another_order(void **state)
{
    (void)state;
    struct host host;
    struct lh_engine *clients = loopback_engine(1, 1);
    struct control_stream *streams[3];
    uint8_t body[HANDSHAKE_BODY_MAX];
    int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    listen_on(&host, loopback_engine(1, 1));
    struct meeting meeting = {.host = &host, .engine = clients};
    meet(&meeting);
    for (uint32_t i = 0; i < 3; i++) {
        streams[i] = control_stream_open(clients, host.where, "", wake_fd);
        assert_non_null(streams[i]);
    }
    control_stream_refuse(streams[0], "failed");
    for (uint32_t i = 3; i-- > 1;)
        must(control_stream_send(streams[i], HANDSHAKE_PROPOSAL, body, propose(body)),
             "control_stream_send");
    for (uint32_t i = 1; i < 3; i++) {
        assert_int_equal(hear(streams[i], body), HANDSHAKE_PROPOSAL);
        assert_int_equal(streams[i]->id, 3 - i);
        control_stream_refuse(streams[i], "over");
    }
    assert_int_equal(lh_connection_error(meeting.ends[0]), 0);
    assert_int_equal(lh_connection_error(meeting.ends[1]), 0);
    lh_close(meeting.ends[0]);
    lh_close(meeting.ends[1]);
    close(wake_fd);
    lh_listener_close(host.listener);
    must(lh_engine_destroy(host.engine), "lh_engine_destroy");
    must(lh_engine_destroy(clients), "lh_engine_destroy");
}

/* ---- a process that dies ----------------------------------------------------------------------------- */

static void be_killed(int commands)
{
    struct lh_connection *connection;
    struct lh_attr attr = attr_on(loopback_engine(1, 1));
    char where[32];
    if (read(commands, where, sizeof where) <= 0)
        _exit(1);
    for (uint32_t i = 0; i < 8; i++)
        if (lh_connect(where, &attr, PATIENCE, &connection))
            _exit(1);
    for (;;)
        pause();
}

/* All of its connections end, though nothing waits for it on any. */
static void test_a_process_that_dies(void **state)
{
    (void)state;
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
    struct host host;
    struct lh_connection *accepted[8];
    listen_on(&host, loopback_engine(1, 1));
    assert_int_equal(write(ends[1], host.where, sizeof host.where), sizeof host.where);
    for (uint32_t i = 0; i < 8; i++)
        must(lh_accept(host.listener, PATIENCE, &accepted[i]), "lh_accept");
    assert_int_equal(count_tcp(), 1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    for (uint32_t i = 0; i < 8; i++) {
        expect_end(accepted[i], -LH_EPEER);
        lh_close(accepted[i]);
    }
    close(ends[1]);
    lh_listener_close(host.listener);
    must(lh_engine_destroy(host.engine), "lh_engine_destroy");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_process_that_dies), /* first: it forks */
        cmocka_unit_test(test_one_for_all),
        cmocka_unit_test(test_the_last_one_closes_it),
        cmocka_unit_test(test_without_an_engine),
        cmocka_unit_test(test_progress_of_the_caller),
        cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_connections_outlive_the_listener),
        cmocka_unit_test(test_another_listener),
        cmocka_unit_test(test_places_are_shared),
        cmocka_unit_test(test_proposals_in_another_order),
        cmocka_unit_test(test_a_forgotten_connection),
        cmocka_unit_test(test_a_connection_that_was_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
