/*
 * test_listener.c - a listener among many clients: some are silent, some wait, some are of an older release.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "launch/admission.h"
#include "launch/handshake.h"
#include "launch/tcp.h"

#define PATIENCE_NS (60 * LH_NS_PER_S)
#define STALLED_MAX 16u
#define FULL_HOUSE  32u

static struct lh_listener *listener;
static char where[32];

static int open_listener(void **state)
{
    (void)state;
    if (lh_listen("[::1]:0", NULL, &listener))
        return -1;
    snprintf(where, sizeof where, "[::1]:%u", lh_listener_port(listener));
    return 0;
}

static int close_listener(void **state)
{
    (void)state;
    lh_listener_close(listener);
    return 0;
}

/* ---- clients by hand --------------------------------------------------------------------------------- */

static void write_frame(int fd, uint8_t version, enum handshake_type type, const void *body, uint32_t bytes)
{
    uint8_t raw[HANDSHAKE_HEADER_BYTES];
    const struct handshake_header header = {version, type, 0, bytes};
    handshake_header_encode(&header, raw);
    assert_int_equal(tcp_write(fd, raw, sizeof raw, tcp_deadline(PATIENCE_NS)), 0);
    assert_int_equal(tcp_write(fd, body, bytes, tcp_deadline(PATIENCE_NS)), 0);
}

static enum handshake_type read_frame(int fd, uint8_t *version, uint8_t *body, uint32_t *bytes)
{
    uint8_t raw[HANDSHAKE_HEADER_BYTES];
    struct handshake_header header;
    assert_int_equal(tcp_read(fd, raw, sizeof raw, tcp_deadline(PATIENCE_NS)), 0);
    assert_int_equal(handshake_header_decode(raw, &header), 0);
    assert_int_equal(tcp_read(fd, body, header.body_bytes, tcp_deadline(PATIENCE_NS)), 0);
    *version = header.version;
    *bytes = header.body_bytes;
    return header.type;
}

static void send_proposal(int fd, uint8_t version, const char *link)
{
    struct handshake_proposal usual = {
        .mtu_bytes = 4096, .slots = 64, .channels = 1, .generations = 4, .slot_bytes = 4 << 20};
    uint8_t body[HANDSHAKE_BODY_MAX];
    assert_int_equal(lh_link_parse(link, &usual.link), 0);
    write_frame(fd, version, HANDSHAKE_PROPOSAL, body, handshake_proposal_encode(&usual, body));
}

/* What says a right proposal and, with a deaf endpoint, a right blob; and no more. */
static int stalled_client(uint8_t version, struct lh_connection *deaf, const char *link)
{
    int fd;
    uint8_t blob[LH_BLOB_MAX];
    size_t bytes = sizeof blob;
    assert_int_equal(tcp_connect(where, tcp_deadline(PATIENCE_NS), &fd), 0);
    send_proposal(fd, version, link);
    if (deaf) {
        assert_int_equal(lh_blob(deaf, blob, &bytes), 0);
        write_frame(fd, version, HANDSHAKE_BLOB, blob, (uint32_t)bytes);
    }
    return fd;
}

static struct lh_connection *deaf_endpoint(void)
{
    struct lh_attr attr;
    struct lh_connection *deaf;
    lh_attr_init(&attr);
    attr.device = "udp:[::1]";
    attr.workers = LH_NO_WORKERS;
    attr.mtu_bytes = 4096;
    assert_int_equal(lh_open(&attr, &deaf), 0);
    return deaf;
}

/* ---- clients of the library -------------------------------------------------------------------------- */

struct visit {
    lh_time timeout_ns;
    uint32_t notices; /* that came */
    uint32_t patient; /* it waits on for that many of them */
    sem_t *noticed;   /* posted at each, or NULL */
    int error;
    char text[256]; /* of the error */
    struct lh_connection *connection;
    pthread_t thread;
};

static bool on_notice(void *context, enum lh_notice notice, const char *text)
{
    struct visit *visit = context;
    assert_int_equal(notice, LH_NOTICE_BUSY);
    assert_string_equal(text, where);
    visit->notices++;
    if (visit->noticed)
        sem_post(visit->noticed);
    return visit->notices <= visit->patient;
}

static void *visit_main(void *argument)
{
    struct visit *visit = argument;
    struct lh_attr attr;
    lh_attr_init(&attr);
    attr.on_notice = on_notice;
    attr.notice_context = visit;
    visit->error = lh_connect(where, &attr, visit->timeout_ns, &visit->connection);
    if (visit->error)
        snprintf(visit->text, sizeof visit->text, "%s", lh_last_error());
    return NULL;
}

static void visit_start(struct visit *visit)
{
    assert_int_equal(pthread_create(&visit->thread, NULL, visit_main, visit), 0);
}

static void visit_end(struct visit *visit, int expected)
{
    pthread_join(visit->thread, NULL);
    if (visit->error != expected)
        fail_msg("lh_connect: %d: %s", visit->error, visit->text);
    lh_close(visit->connection);
}

/* ---- the tests --------------------------------------------------------------------------------------- */

/* Served one after the other, each of them would take seconds, and the right one gives up. */
static void stalled_clients_hold_nobody(uint32_t count, bool with_blob)
{
    int fds[STALLED_MAX];
    struct lh_connection *accepted, *deaf = deaf_endpoint();
    struct visit visit = {.timeout_ns = PATIENCE_NS};
    for (uint32_t i = 0; i < count; i++)
        fds[i] = stalled_client(1, with_blob ? deaf : NULL, "none");
    visit_start(&visit);
    assert_int_equal(lh_accept(listener, 3 * PATIENCE_NS, &accepted), 0);
    visit_end(&visit, 0);
    lh_close(accepted);
    for (uint32_t i = 0; i < count; i++)
        close(fds[i]);
    lh_close(deaf);
}

static void eight_stalled_after_their_proposal(void **state)
{
    (void)state;
    stalled_clients_hold_nobody(8, false);
}

static void eight_stalled_after_their_blob(void **state)
{
    (void)state;
    stalled_clients_hold_nobody(8, true);
}

/* More than have an endpoint at once: all of them are sent away in time. */
static void a_crowd_is_stalled(void **state)
{
    (void)state;
    stalled_clients_hold_nobody(STALLED_MAX, true);
}

static void *accept_main(void *argument)
{
    assert_int_equal(lh_accept(listener, 3 * PATIENCE_NS, argument), 0);
    return NULL;
}

/* A client without an answer to a ping has READY, and the one call of lh_accept(). One that has answered is
 * served ahead of it, long before the other is sent away: its link makes that as late as can be. */
static void a_proven_client_goes_first(void **state)
{
    (void)state;
    pthread_t thread;
    lh_time next;
    uint8_t body[HANDSHAKE_BODY_MAX], version;
    uint32_t bytes;
    struct lh_connection *accepted, *deaf = deaf_endpoint();
    struct visit visit = {.timeout_ns = PATIENCE_NS, .patient = UINT32_MAX};
    assert_int_equal(pthread_create(&thread, NULL, accept_main, &accepted), 0);
    int fd = stalled_client(HANDSHAKE_VERSION, deaf, "rtt=1s,rate=1Mbit");
    while (read_frame(fd, &version, body, &bytes) != HANDSHAKE_BLOB)
        continue;
    assert_int_equal(lh_attach(deaf, body, bytes), 0);
    assert_int_equal(lh_progress(deaf, &next), 0); /* a ping */
    while (read_frame(fd, &version, body, &bytes) != HANDSHAKE_READY)
        continue;
    visit_start(&visit);
    pthread_join(thread, NULL);
    assert_int_equal(recv(fd, body, sizeof body, MSG_DONTWAIT), -1);
    visit_end(&visit, 0);
    lh_close(accepted);
    close(fd);
    lh_close(deaf);
}

/* Nobody calls lh_accept() until the client was told often enough that it has to wait, which takes longer
 * than it would have waited without. */
static void a_client_that_is_told_waits(void **state)
{
    (void)state;
    sem_t noticed;
    struct lh_connection *accepted;
    struct visit visit = {.timeout_ns = 3 * LH_NS_PER_S, .patient = UINT32_MAX, .noticed = &noticed};
    sem_init(&noticed, 0, 0);
    visit_start(&visit);
    for (uint32_t i = 0; i < 5; i++) /* one a second */
        sem_wait(&noticed);
    assert_int_equal(lh_accept(listener, PATIENCE_NS, &accepted), 0);
    visit_end(&visit, 0);
    assert_true(visit.notices >= 5);
    lh_close(accepted);
    sem_destroy(&noticed);
}

static void await_notices(sem_t *noticed, uint32_t count)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 3 * count;
    while (count-- > 0)
        assert_int_equal(sem_timedwait(noticed, &until), 0);
}

/* As many as a listener hears have said their part, and stay: who comes then is no worse off than who waits
 * among them. */
static void a_client_of_a_full_house_waits(void **state)
{
    (void)state;
    int fds[FULL_HOUSE];
    sem_t noticed;
    struct lh_connection *accepted, *deaf = deaf_endpoint();
    struct visit visit = {.timeout_ns = 2 * LH_NS_PER_S, .patient = UINT32_MAX, .noticed = &noticed};
    struct visit hurried = {.timeout_ns = 2 * LH_NS_PER_S};
    sem_init(&noticed, 0, 0);
    for (uint32_t i = 0; i < FULL_HOUSE; i++)
        fds[i] = stalled_client(1, deaf, "none");
    visit_start(&visit);
    visit_start(&hurried);
    visit_end(&hurried, -LH_EHANDSHAKE);
    assert_non_null(strstr(hurried.text, "too many clients"));
    await_notices(&noticed, 5); /* for longer than its timeout */
    for (uint32_t i = 0; i < FULL_HOUSE; i++)
        close(fds[i]);
    assert_int_equal(lh_accept(listener, PATIENCE_NS, &accepted), 0);
    visit_end(&visit, 0);
    lh_close(accepted);
    lh_close(deaf);
    sem_destroy(&noticed);
}

/* The timeout of a caller that does not wait on stays what it is. */
static void a_client_in_a_hurry_goes(void **state)
{
    (void)state;
    struct visit visit = {.timeout_ns = 2 * LH_NS_PER_S};
    visit_start(&visit);
    visit_end(&visit, -LH_ETIMEDOUT);
    assert_true(visit.notices > 0);
    assert_non_null(strstr(visit.text, "is busy"));
}

/* All wait while one is served, none longer than it takes: each accept takes one of them. */
static void several_wait_their_turn(void **state)
{
    (void)state;
    struct visit visits[4];
    struct lh_connection *accepted;
    for (uint32_t i = 0; i < 4; i++) {
        visits[i] = (struct visit){.timeout_ns = PATIENCE_NS, .patient = UINT32_MAX};
        visit_start(&visits[i]);
    }
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(lh_accept(listener, PATIENCE_NS, &accepted), 0);
        lh_close(accepted);
    }
    assert_int_equal(lh_accept(listener, 0, &accepted), -LH_ETIMEDOUT);
    for (uint32_t i = 0; i < 4; i++)
        visit_end(&visits[i], 0);
}

static uint64_t address_space(void)
{
    unsigned long long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%llu", &pages), 1);
    fclose(statm);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* A client without a link gets in past those whose links hold as much as all may together; and many of
 * those cost no more than one. */
static void long_links_share_a_bound(void **state)
{
    (void)state;
    int fds[8];
    struct lh_connection *accepted, *deaf = deaf_endpoint();
    struct visit visit = {.timeout_ns = PATIENCE_NS};
    uint64_t before = address_space();
    for (uint32_t i = 0; i < 8; i++)
        fds[i] = stalled_client(1, deaf, "rtt=100ms,rate=100Gbit");
    visit_start(&visit);
    assert_int_equal(lh_accept(listener, PATIENCE_NS, &accepted), 0);
    /* The one that is open still is: it has seconds. */
    assert_in_range(address_space() - before, 0, 2 * HANDSHAKE_LINK_HELD_MAX);
    visit_end(&visit, 0);
    lh_close(accepted);
    for (uint32_t i = 0; i < 8; i++)
        close(fds[i]);
    lh_close(deaf);
}

/* One of version 1 would take BUSY for garbage. */
static void older_clients_are_told_nothing(void **state)
{
    (void)state;
    uint8_t body[HANDSHAKE_BODY_MAX], version;
    uint32_t bytes;
    struct lh_connection *deaf = deaf_endpoint();
    int older = stalled_client(1, deaf, "none"), newer = stalled_client(2, deaf, "none");
    assert_int_equal(read_frame(older, &version, body, &bytes), HANDSHAKE_PROPOSAL);
    assert_int_equal(version, 1);
    assert_int_equal(read_frame(newer, &version, body, &bytes), HANDSHAKE_PROPOSAL);
    assert_int_equal(version, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(read_frame(newer, &version, body, &bytes), HANDSHAKE_BUSY);
        assert_int_equal(bytes, 0);
    }
    assert_int_equal(recv(older, body, sizeof body, MSG_DONTWAIT), -1);
    close(older);
    close(newer);
    lh_close(deaf);
}

/* ---- strangers without end --------------------------------------------------------------------------- */

/* Each has its answer before the next comes, so the listener has seen all of them. */
static void strangers_that_greet(int *fds, uint32_t count)
{
    uint8_t body[HANDSHAKE_BODY_MAX], version;
    uint32_t bytes;
    for (uint32_t i = 0; i < count; i++) {
        fds[i] = stalled_client(HANDSHAKE_VERSION, NULL, "none");
        assert_int_equal(read_frame(fds[i], &version, body, &bytes), HANDSHAKE_PROPOSAL);
    }
}

static void close_all(const int *fds, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        close(fds[i]);
}

static int greeted_client(void)
{
    int fd;
    strangers_that_greet(&fd, 1);
    return fd;
}

static void send_blob(int fd, struct lh_connection *deaf)
{
    uint8_t blob[LH_BLOB_MAX];
    size_t bytes = sizeof blob;
    assert_int_equal(lh_blob(deaf, blob, &bytes), 0);
    write_frame(fd, HANDSHAKE_VERSION, HANDSHAKE_BLOB, blob, (uint32_t)bytes);
}

static void *accept_until_served(void *argument)
{
    const atomic_bool *served = argument;
    struct lh_connection *accepted;
    while (!*served)
        if (!lh_accept(listener, LH_NS_PER_S / 10, &accepted))
            lh_close(accepted);
    return NULL;
}

/* An endpoint was opened for it: it has kept its place. */
static void expect_served(int fd, struct lh_connection *deaf)
{
    pthread_t thread;
    atomic_bool served = false;
    uint8_t body[HANDSHAKE_BODY_MAX], version;
    uint32_t bytes;
    assert_int_equal(pthread_create(&thread, NULL, accept_until_served, &served), 0);
    send_blob(fd, deaf);
    enum handshake_type type = read_frame(fd, &version, body, &bytes);
    while (type == HANDSHAKE_BUSY)
        type = read_frame(fd, &version, body, &bytes);
    assert_int_equal(type, HANDSHAKE_BLOB);
    served = true;
    pthread_join(thread, NULL);
}

/* Who has greeted keeps its place, however many connect behind it and send nothing. */
static void idle_strangers(void **state)
{
    (void)state;
    int fds[4 * FULL_HOUSE];
    struct lh_connection *deaf = deaf_endpoint();
    int honest = greeted_client();
    for (uint32_t i = 0; i < 4 * FULL_HOUSE; i++)
        assert_int_equal(tcp_connect(where, tcp_deadline(PATIENCE_NS), &fds[i]), 0);
    int last = greeted_client(); /* so the listener has seen all of them */
    expect_served(honest, deaf);
    close_all(fds, 4 * FULL_HOUSE);
    close(last);
    close(honest);
    lh_close(deaf);
}

/* Who has to leave since others greet as well is known by its cookie when it returns, and stays then. */
static void a_cookie_keeps_a_place(void **state)
{
    (void)state;
    int fds[3 * FULL_HOUSE];
    uint8_t body[HANDSHAKE_BODY_MAX], cookie[ADMISSION_COOKIE_BYTES], version;
    uint32_t bytes;
    struct lh_connection *deaf = deaf_endpoint();
    int honest = greeted_client();
    strangers_that_greet(fds, FULL_HOUSE);
    assert_int_equal(read_frame(honest, &version, cookie, &bytes), HANDSHAKE_COOKIE);
    assert_int_equal(bytes, sizeof cookie);
    assert_int_equal(read_frame(honest, &version, body, &bytes), HANDSHAKE_REFUSE);
    assert_memory_equal(body, HANDSHAKE_FULL, strlen(HANDSHAKE_FULL));
    close(honest);
    assert_int_equal(tcp_connect(where, tcp_deadline(PATIENCE_NS), &honest), 0);
    write_frame(honest, HANDSHAKE_VERSION, HANDSHAKE_COOKIE, cookie, sizeof cookie);
    send_proposal(honest, HANDSHAKE_VERSION, "none");
    assert_int_equal(read_frame(honest, &version, body, &bytes), HANDSHAKE_PROPOSAL);
    strangers_that_greet(fds + FULL_HOUSE, 2 * FULL_HOUSE);
    expect_served(honest, deaf);
    close_all(fds, 3 * FULL_HOUSE);
    close(honest);
    lh_close(deaf);
}

/* One more than once is nonsense, and ends that client: a flood of them would hold up all others. */
static void cookies_without_end(void **state)
{
    (void)state;
    static const uint8_t wrong[ADMISSION_COOKIE_BYTES] = "none of this one";
    uint8_t body[HANDSHAKE_BODY_MAX], version;
    uint32_t bytes;
    int fd;
    assert_int_equal(tcp_connect(where, tcp_deadline(PATIENCE_NS), &fd), 0);
    write_frame(fd, HANDSHAKE_VERSION, HANDSHAKE_COOKIE, wrong, sizeof wrong);
    write_frame(fd, HANDSHAKE_VERSION, HANDSHAKE_COOKIE, wrong, sizeof wrong);
    assert_int_equal(read_frame(fd, &version, body, &bytes), HANDSHAKE_REFUSE);
    close(fd);
}

/* ---- against peers that listen ----------------------------------------------------------------------- */

struct host {
    int listener;
    const uint8_t *frames; /* type, type, … 0: what it says after it has heard the proposal */
    uint8_t version;
    uint8_t heard_version[HANDSHAKE_VERSION];
    pthread_t thread;
};

/* What a release of version 1 does with a proposal of a newer one: refuses it, and takes the next. */
static void *older_host(void *argument)
{
    static const char reason[] =
        "the other side speaks another handshake version, this side 1: use the same release";
    struct host *host = argument;
    uint8_t body[HANDSHAKE_BODY_MAX];
    uint32_t bytes;
    for (uint32_t i = 0; i < HANDSHAKE_VERSION; i++) {
        assert_int_equal(tcp_wait(host->listener, false, tcp_deadline(PATIENCE_NS)), 0);
        int fd = accept(host->listener, NULL, NULL);
        read_frame(fd, &host->heard_version[i], body, &bytes);
        if (host->heard_version[i] > 1)
            write_frame(fd, 1, HANDSHAKE_REFUSE, reason, sizeof reason - 1);
        else
            write_frame(fd, 1, HANDSHAKE_REFUSE, "not today", 9);
        shutdown(fd, SHUT_WR);
        while (recv(fd, body, sizeof body, 0) > 0)
            continue;
        close(fd);
    }
    return NULL;
}

static void *odd_host(void *argument)
{
    struct host *host = argument;
    uint8_t body[HANDSHAKE_BODY_MAX];
    uint32_t bytes;
    assert_int_equal(tcp_wait(host->listener, false, tcp_deadline(PATIENCE_NS)), 0);
    int fd = accept(host->listener, NULL, NULL);
    read_frame(fd, &host->heard_version[0], body, &bytes);
    for (const uint8_t *type = host->frames; *type; type++) {
        uint8_t raw[HANDSHAKE_HEADER_BYTES + HANDSHAKE_BODY_MAX];
        const struct handshake_header header = {HANDSHAKE_VERSION, (enum handshake_type) * type, 0,
                                                *type == HANDSHAKE_PROPOSAL ? bytes : 0};
        handshake_header_encode(&header, raw);
        raw[4] = host->version;
        memcpy(raw + HANDSHAKE_HEADER_BYTES, body, header.body_bytes);
        /* Whoever refuses it may be gone already. */
        send(fd, raw, HANDSHAKE_HEADER_BYTES + header.body_bytes, MSG_NOSIGNAL);
    }
    while (recv(fd, body, sizeof body, 0) > 0)
        continue;
    close(fd);
    return NULL;
}

/* Full for the first client, which returns with its cookie. */
static void *full_host(void *argument)
{
    static const uint8_t cookie[ADMISSION_COOKIE_BYTES] = "a cookie of ours";
    struct host *host = argument;
    uint8_t body[HANDSHAKE_BODY_MAX], version;
    uint32_t bytes;
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(tcp_wait(host->listener, false, tcp_deadline(PATIENCE_NS)), 0);
        int fd = accept(host->listener, NULL, NULL);
        if (i == 1) {
            assert_int_equal(read_frame(fd, &version, body, &bytes), HANDSHAKE_COOKIE);
            assert_int_equal(bytes, sizeof cookie);
            assert_memory_equal(body, cookie, sizeof cookie);
        }
        assert_int_equal(read_frame(fd, &version, body, &bytes), HANDSHAKE_PROPOSAL);
        write_frame(fd, version, HANDSHAKE_PROPOSAL, body, bytes);
        if (i == 0)
            write_frame(fd, version, HANDSHAKE_COOKIE, cookie, sizeof cookie);
        const char *reason = i == 0 ? HANDSHAKE_FULL : "not today";
        write_frame(fd, version, HANDSHAKE_REFUSE, reason, (uint32_t)strlen(reason));
        shutdown(fd, SHUT_WR);
        while (recv(fd, body, sizeof body, 0) > 0)
            continue;
        close(fd);
    }
    return NULL;
}

/* Full for the first client; refuses the second before it has read a byte. */
static void *hasty_host(void *argument)
{
    static const uint8_t cookie[ADMISSION_COOKIE_BYTES] = "a cookie of ours";
    struct host *host = argument;
    uint8_t body[HANDSHAKE_BODY_MAX], version;
    uint32_t bytes;
    for (uint32_t i = 0; i < 3; i++) {
        const char *reason = i < 2 ? HANDSHAKE_FULL : "not today";
        assert_int_equal(tcp_wait(host->listener, false, tcp_deadline(PATIENCE_NS)), 0);
        int fd = accept(host->listener, NULL, NULL);
        if (i == 0) {
            assert_int_equal(read_frame(fd, &version, body, &bytes), HANDSHAKE_PROPOSAL);
            write_frame(fd, version, HANDSHAKE_PROPOSAL, body, bytes);
            write_frame(fd, version, HANDSHAKE_COOKIE, cookie, sizeof cookie);
        }
        write_frame(fd, HANDSHAKE_VERSION, HANDSHAKE_REFUSE, reason, (uint32_t)strlen(reason));
        if (i != 1) {
            shutdown(fd, SHUT_WR);
            while (recv(fd, body, sizeof body, 0) > 0)
                continue;
        }
        close(fd);
    }
    return NULL;
}

/* It is ready at once, and goes; no packet comes from it. */
static void *host_that_leaves(void *argument)
{
    struct host *host = argument;
    struct lh_connection *deaf = deaf_endpoint();
    uint8_t body[HANDSHAKE_BODY_MAX], version;
    uint32_t bytes;
    assert_int_equal(tcp_wait(host->listener, false, tcp_deadline(PATIENCE_NS)), 0);
    int fd = accept(host->listener, NULL, NULL);
    assert_int_equal(read_frame(fd, &version, body, &bytes), HANDSHAKE_PROPOSAL);
    send_proposal(fd, version, "none");
    send_blob(fd, deaf);
    write_frame(fd, version, HANDSHAKE_READY, NULL, 0);
    shutdown(fd, SHUT_WR);
    while (recv(fd, body, sizeof body, 0) > 0)
        continue;
    close(fd);
    lh_close(deaf);
    return NULL;
}

static int visit_host(struct host *host, void *(*run)(void *), lh_time timeout_ns)
{
    char at[32];
    uint16_t port;
    struct lh_connection *connection = NULL;
    assert_int_equal(tcp_listen("[::1]:0", &host->listener, &port), 0);
    snprintf(at, sizeof at, "[::1]:%u", port);
    assert_int_equal(pthread_create(&host->thread, NULL, run, host), 0);
    int error = lh_connect(at, NULL, timeout_ns, &connection);
    pthread_join(host->thread, NULL);
    close(host->listener);
    assert_null(connection);
    return error;
}

static void an_older_host_is_asked_in_its_version(void **state)
{
    (void)state;
    struct host host = {0};
    assert_int_equal(visit_host(&host, older_host, PATIENCE_NS), -LH_EHANDSHAKE);
    assert_non_null(strstr(lh_last_error(), "not today"));
    for (uint32_t i = 0; i < HANDSHAKE_VERSION; i++)
        assert_int_equal(host.heard_version[i], HANDSHAKE_VERSION - i);
}

static void a_client_returns_with_its_cookie(void **state)
{
    (void)state;
    struct host host = {0};
    assert_int_equal(visit_host(&host, full_host, PATIENCE_NS), -LH_EHANDSHAKE);
    assert_non_null(strstr(lh_last_error(), "not today"));
}

static lh_time thread_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (lh_time)time.tv_sec * LH_NS_PER_S + (lh_time)time.tv_nsec;
}

/* What comes behind READY is not of the handshake: a client that waits for packets does not run in circles
 * around it. */
static void a_host_that_is_ready_and_leaves(void **state)
{
    (void)state;
    struct host host = {0};
    lh_time before = thread_time();
    assert_int_equal(visit_host(&host, host_that_leaves, LH_NS_PER_S), -LH_ETIMEDOUT);
    assert_in_range(thread_time() - before, 0, LH_NS_PER_S / 4);
}

/* Its cookie, or its proposal, may meet a reset: what was received before that counts. */
static void a_client_that_is_refused_at_once(void **state)
{
    (void)state;
    struct host host = {0};
    int error = visit_host(&host, hasty_host, PATIENCE_NS);
    if (error != -LH_EHANDSHAKE || !strstr(lh_last_error(), "not today"))
        fail_msg("%d: %s", error, lh_last_error());
}

/* Frames where they do not belong end the handshake; BUSY without end does not outlast the timeout. */
static void hosts_that_talk_nonsense(void **state)
{
    (void)state;
    enum {
        P = HANDSHAKE_PROPOSAL,
        B = HANDSHAKE_BUSY,
        R = HANDSHAKE_READY,
        M = HANDSHAKE_MORE,
        C = HANDSHAKE_COOKIE
    };
    static const struct {
        uint8_t version;
        uint8_t frames[8];
        int error;
    } cases[] = {
        {2, {B, 0}, -LH_EHANDSHAKE},       /* before the proposal */
        {1, {P, B, 0}, -LH_EHANDSHAKE},    /* version 1 has none */
        {2, {P, P, 0}, -LH_EHANDSHAKE},    /* twice */
        {2, {P, B, R, 0}, -LH_EHANDSHAKE}, /* ready without a blob */
        {2, {P, B, B, B, B, B, B, 0}, -LH_ETIMEDOUT},
        {3, {P, M, 0}, -LH_EHANDSHAKE}, /* before the blob */
        {2, {P, M, 0}, -LH_EHANDSHAKE}, /* version 2 has none */
        {3, {P, C, 0}, -LH_EHANDSHAKE}, /* version 3 has none */
        {4, {P, C, 0}, -LH_EHANDSHAKE}, /* of no bytes */
        {HANDSHAKE_VERSION + 1, {P, 0}, -LH_EVERSION},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct host host = {.frames = cases[i].frames, .version = cases[i].version};
        /* Only who waits for the timeout has a short one. */
        lh_time timeout_ns = cases[i].error == -LH_ETIMEDOUT ? LH_NS_PER_S : PATIENCE_NS;
        int error = visit_host(&host, odd_host, timeout_ns);
        if (error != cases[i].error)
            fail_msg("case %zu: %d: %s", i, error, lh_last_error());
    }
}

/* What was asked for does not go with the path of a client: it learns that, and the next one is heard. */
static void a_listener_that_cannot_propose(void **state)
{
    (void)state;
    struct lh_attr attr;
    struct lh_connection *connection = NULL;
    lh_attr_init(&attr);
    attr.mtu_bytes = 4096;
    attr.window_bytes = 2048; /* no packet fits it */
    assert_int_equal(lh_listen("[::1]:0", &attr, &listener), 0);
    snprintf(where, sizeof where, "[::1]:%u", lh_listener_port(listener));
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(lh_connect(where, NULL, PATIENCE_NS, &connection), -LH_EHANDSHAKE);
        assert_non_null(strstr(lh_last_error(), "window_bytes 2048: below one chunk (use at least 4096)"));
    }
    lh_listener_close(listener);
}

struct word {
    sem_t said;
    char text[256];
};

static bool keep_word(void *context, enum lh_notice notice, const char *text)
{
    struct word *word = context;
    assert_int_equal(notice, LH_NOTICE_REFUSED);
    snprintf(word->text, sizeof word->text, "%s", text);
    sem_post(&word->said);
    return true;
}

/* Nothing but the notice says who it was. */
static void a_client_that_resets_is_named(void **state)
{
    struct word word;
    struct lh_attr attr;
    struct lh_connection *accepted, *connected, *deaf = deaf_endpoint();
    pthread_t thread;
    char name[TCP_NAME_MAX];
    uint8_t version, body[HANDSHAKE_BODY_MAX];
    uint32_t bytes;
    (void)state;
    sem_init(&word.said, 0, 0);
    lh_attr_init(&attr);
    attr.on_notice = keep_word;
    attr.notice_context = &word;
    assert_int_equal(lh_listen("[::1]:0", &attr, &listener), 0);
    snprintf(where, sizeof where, "[::1]:%u", lh_listener_port(listener));
    assert_int_equal(pthread_create(&thread, NULL, accept_main, &accepted), 0);
    int fd = stalled_client(1, deaf, "none");
    assert_int_equal(tcp_local_name(fd, name, sizeof name), 0);
    while (read_frame(fd, &version, body, &bytes) != HANDSHAKE_BLOB) /* an endpoint was opened for it */
        continue;
    assert_int_equal(
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger)), 0);
    close(fd);
    await_notices(&word.said, 1);
    if (strncmp(word.text, name, strlen(name)) != 0)
        fail_msg("\"%s\" does not begin with %s", word.text, name);
    assert_int_equal(lh_connect(where, NULL, PATIENCE_NS, &connected), 0);
    pthread_join(thread, NULL);
    lh_close(connected);
    lh_close(accepted);
    lh_close(deaf);
    lh_listener_close(listener);
    sem_destroy(&word.said);
}

#define WITH_LISTENER(test) cmocka_unit_test_setup_teardown(test, open_listener, close_listener)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_LISTENER(eight_stalled_after_their_proposal),
        WITH_LISTENER(eight_stalled_after_their_blob),
        WITH_LISTENER(a_crowd_is_stalled),
        WITH_LISTENER(long_links_share_a_bound),
        WITH_LISTENER(a_proven_client_goes_first),
        WITH_LISTENER(a_client_that_is_told_waits),
        WITH_LISTENER(a_client_of_a_full_house_waits),
        WITH_LISTENER(a_client_in_a_hurry_goes),
        WITH_LISTENER(several_wait_their_turn),
        WITH_LISTENER(older_clients_are_told_nothing),
        WITH_LISTENER(idle_strangers),
        WITH_LISTENER(a_cookie_keeps_a_place),
        WITH_LISTENER(cookies_without_end),
        cmocka_unit_test(a_client_that_is_refused_at_once),
        cmocka_unit_test(a_client_returns_with_its_cookie),
        cmocka_unit_test(a_host_that_is_ready_and_leaves),
        cmocka_unit_test(an_older_host_is_asked_in_its_version),
        cmocka_unit_test(hosts_that_talk_nonsense),
        cmocka_unit_test(a_listener_that_cannot_propose),
        cmocka_unit_test(a_client_that_resets_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
