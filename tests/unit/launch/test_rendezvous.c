/*
 * test_rendezvous.c - both sides of a handshake in one thread, step by step, and one side against frames
 * that a peer should not send. The time of each step is the test's.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "launch/rendezvous.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/engine.h>

#include "base/error.h"
#include "launch/control_connection.h"
#include "launch/tcp.h"
#include "support/loopback_engine.h"
#include "support/rendezvous_flights.h"

/* Far beyond what any of these takes. */
#define PATIENCE_NS (60 * LH_NS_PER_S)

static const struct rendezvous_permit all = {
    .open = true, .open_early = true, .link_room = UINT64_MAX, .finish = true, .promise = true};
static const struct rendezvous_permit none = {.open = false};

static struct lh_attr attr;
static struct admission_key key;

static int set_up(void **state)
{
    (void)state;
    lh_attr_init(&attr);
    attr.workers = LH_NO_WORKERS;
    attr.slots = 2;
    attr.slot_bytes = 16384;
    memset(&key, 7, sizeof key);
    return 0;
}

/* A TCP connection of the loopback interface: the client's end, the server's. */
static void connect_ends(int ends[2])
{
    char where[32];
    uint16_t port;
    int listener;
    assert_int_equal(tcp_listen("127.0.0.1:0", &listener, &port), 0);
    snprintf(where, sizeof where, "127.0.0.1:%u", port);
    assert_int_equal(tcp_connect(where, tcp_deadline(PATIENCE_NS), &ends[0]), 0);
    assert_int_equal(tcp_wait(listener, false, tcp_deadline(PATIENCE_NS)), 0);
    ends[1] = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_true(ends[1] >= 0);
    close(listener);
}

/* ---- a peer that the test plays ---------------------------------------------------------------------- */

static void format_in(int fd, uint8_t version, enum handshake_type type, const void *body, size_t bytes)
{
    uint8_t frame[HANDSHAKE_HEADER_BYTES + HANDSHAKE_BODY_MAX];
    handshake_header_encode(&(struct handshake_header){version, type, 0, (uint32_t)bytes}, frame);
    memcpy(frame + HANDSHAKE_HEADER_BYTES, body, bytes);
    assert_int_equal(tcp_write(fd, frame, HANDSHAKE_HEADER_BYTES + bytes, tcp_deadline(PATIENCE_NS)), 0);
}

static void say(int fd, enum handshake_type type, const char *text)
{
    format_in(fd, HANDSHAKE_VERSION, type, text, strlen(text));
}

static struct handshake_header hear(int fd, char body[HANDSHAKE_BODY_MAX + 1])
{
    uint8_t raw[HANDSHAKE_HEADER_BYTES];
    struct handshake_header header;
    assert_int_equal(tcp_read(fd, raw, sizeof raw, tcp_deadline(PATIENCE_NS)), 0);
    assert_int_equal(handshake_header_decode(raw, &header), 0);
    assert_int_equal(tcp_read(fd, body, header.body_bytes, tcp_deadline(PATIENCE_NS)), 0);
    body[header.body_bytes] = '\0';
    return header;
}

static void expect_heard(int fd, enum handshake_type type, const char *words)
{
    char body[HANDSHAKE_BODY_MAX + 1];
    assert_int_equal(hear(fd, body).type, type);
    if (words && !strstr(body, words))
        fail_msg("\"%s\" is not in: %s", words, body);
}

/* A proposal of usual numbers. */
static void propose_in(int fd, uint8_t version)
{
    const struct handshake_proposal proposal = {
        .mtu_bytes = 1024, .slots = 2, .channels = 1, .generations = 1, .slot_bytes = 16384};
    uint8_t body[HANDSHAKE_BODY_MAX];
    format_in(fd, version, HANDSHAKE_PROPOSAL, body, handshake_proposal_encode(&proposal, body));
}

/* What was sent has arrived: the step sees all of it. */
static int step(struct rendezvous *r, struct rendezvous_permit permit, lh_time now)
{
    assert_int_equal(tcp_wait(r->fd, false, tcp_deadline(PATIENCE_NS)), 0);
    return rendezvous_step(r, permit, now);
}

static void expect_error(int error, int wanted, const char *words)
{
    assert_int_equal(error, wanted);
    if (!strstr(lh_last_error(), words))
        fail_msg("\"%s\" is not in: %s", words, lh_last_error());
}

static void drop(struct rendezvous *r)
{
    lh_fail(LH_EHANDSHAKE, "over");
    rendezvous_drop(r);
}

/* ---- both sides -------------------------------------------------------------------------------------- */

struct two {
    struct rendezvous client, server;
};

static void begin(struct two *two, const uint8_t *cookie)
{
    int ends[2];
    connect_ends(ends);
    rendezvous_accept(&two->server, ends[1], &attr, &key, NULL);
    assert_int_equal(
        rendezvous_connect(&two->client, ends[0], &attr, HANDSHAKE_VERSION, cookie, NULL, NULL), 0);
}

static void run_both(struct two *two)
{
    int client = 0, server = 0;
    for (lh_time until = tcp_deadline(PATIENCE_NS); !client || !server;) {
        assert_true(tcp_now() < until);
        client = client ? client : rendezvous_step(&two->client, all, tcp_now());
        server = server ? server : rendezvous_step(&two->server, all, tcp_now());
        assert_true(client >= 0 && server >= 0);
    }
}

static void finish(struct two *two)
{
    run_both(two);
    lh_close(rendezvous_done(&two->client));
    lh_close(rendezvous_done(&two->server));
}

static void both_are_done(void **state)
{
    (void)state;
    struct two two;
    begin(&two, NULL);
    assert_int_equal(rendezvous_standing(&two.server), ADMISSION_NEW);
    finish(&two);
}

static void two_round_trips(void **state)
{
    (void)state;
    struct two two;
    attr.workers = 1;
    begin(&two, NULL);
    run_in_two_round_trips(&two.client, &two.server, all);
    lh_close(rendezvous_done(&two.client));
    lh_close(rendezvous_done(&two.server));
    attr.workers = LH_NO_WORKERS;
}

/* The accepting side goes as far as it is permitted, and no further. */
static void as_far_as_is_permitted(void **state)
{
    (void)state;
    struct two two;
    char body[HANDSHAKE_BODY_MAX + 1];
    begin(&two, NULL);
    assert_int_equal(step(&two.server, none, 0), 0);
    assert_int_equal(two.server.state, RENDEZVOUS_BLOB);
    assert_int_equal(rendezvous_standing(&two.server), ADMISSION_GREETED);
    assert_int_equal(step(&two.client, all, 0), 0);
    assert_int_equal(step(&two.server, none, 0), 0);
    assert_int_equal(two.server.state, RENDEZVOUS_QUEUED);
    assert_int_equal(rendezvous_standing(&two.server), ADMISSION_QUEUED);
    assert_int_equal(rendezvous_next_ns(&two.server, 0), LH_TIME_NEVER);
    assert_int_equal(rendezvous_link_bytes(&two.server), 0);
    assert_null(two.server.connection);
    assert_int_equal(rendezvous_send_busy(&two.server), 0);
    assert_int_equal(step(&two.client, all, 0), 0);
    assert_int_equal(two.client.busy, 1);
    assert_int_equal(recv(two.client.fd, body, 1, MSG_DONTWAIT), -1);
    const struct rendezvous_permit open = {.open = true};
    assert_int_equal(rendezvous_step(&two.server, open, tcp_now()), 0);
    assert_int_equal(two.server.state, RENDEZVOUS_PATH);
    assert_int_equal(rendezvous_standing(&two.server), ADMISSION_SERVED);
    for (lh_time until = tcp_deadline(PATIENCE_NS); two.server.state != RENDEZVOUS_PENDING;) {
        assert_true(tcp_now() < until);
        assert_int_equal(rendezvous_step(&two.client, all, tcp_now()), 0);
        assert_int_equal(rendezvous_step(&two.server, open, tcp_now()), 0);
    }
    assert_int_equal(rendezvous_step(&two.client, all, tcp_now()), 0); /* this side's READY is to come */
    finish(&two);
}

/* The link of the connecting side is emulated by both, if what it holds has room. */
static void a_link_needs_room(void **state)
{
    (void)state;
    struct two two;
    assert_int_equal(lh_link_parse("rtt=1ms,rate=1Gbit", &attr.link), 0);
    uint64_t held = handshake_link_bytes(&attr.link);
    assert_true(held > 0);
    begin(&two, NULL);
    lh_link_parse("", &attr.link);
    struct lh_attr plain = attr;
    lh_attr_init(&plain);
    plain.workers = LH_NO_WORKERS;
    two.server.attr = &plain;
    assert_int_equal(step(&two.server, none, 0), 0);
    assert_int_equal(step(&two.client, all, 0), 0);
    const struct rendezvous_permit tight = {.open = true, .link_room = held - 1};
    assert_int_equal(step(&two.server, tight, 0), 0);
    assert_int_equal(two.server.state, RENDEZVOUS_QUEUED);
    assert_int_equal(rendezvous_link_bytes(&two.server), held);
    const struct rendezvous_permit fits = {.open = true, .link_room = held};
    assert_int_equal(rendezvous_step(&two.server, fits, tcp_now()), 0);
    assert_int_equal(two.server.state, RENDEZVOUS_PATH);
    drop(&two.server);
    drop(&two.client);
}

/* ---- the accepting side, against anybody ------------------------------------------------------------- */

/* Returns the client's end. */
static int accept_one(struct rendezvous *r)
{
    int ends[2];
    connect_ends(ends);
    rendezvous_accept(r, ends[1], &attr, &key, NULL);
    return ends[0];
}

static void expect_refused(struct rendezvous *r, int fd, int error, const char *words)
{
    expect_error(step(r, all, 0), error, words);
    rendezvous_drop(r);
    expect_error(0, 0, words); /* stays */
    expect_heard(fd, HANDSHAKE_REFUSE, words);
    close(fd);
}

static void what_is_no_handshake(void **state)
{
    (void)state;
    struct rendezvous r;
    int fd = accept_one(&r);
    assert_int_equal(tcp_write(fd, "GET / HTTP/1.1\r\n", 16, tcp_deadline(PATIENCE_NS)), 0);
    expect_refused(&r, fd, -LH_EHANDSHAKE, "is not Longhaul");
    fd = accept_one(&r);
    say(fd, HANDSHAKE_READY, "");
    expect_refused(&r, fd, -LH_EHANDSHAKE, "unexpected handshake frame 3");
    fd = accept_one(&r);
    say(fd, HANDSHAKE_BUSY, ""); /* the accepting side's alone */
    expect_refused(&r, fd, -LH_EHANDSHAKE, "unexpected handshake frame 6");
    fd = accept_one(&r);
    say(fd, HANDSHAKE_PROPOSAL, "");
    expect_refused(&r, fd, -LH_EHANDSHAKE, "invalid proposal length 0");
    fd = accept_one(&r);
    close(fd);
    expect_error(step(&r, all, 0), -LH_EPEER, "closed the connection during the handshake");
    rendezvous_drop(&r);
}

static void a_frame_of_a_stream(void **state)
{
    (void)state;
    struct rendezvous r;
    uint8_t frame[HANDSHAKE_HEADER_BYTES];
    int fd = accept_one(&r);
    handshake_header_encode(&(struct handshake_header){HANDSHAKE_VERSION, HANDSHAKE_PROPOSAL, 1, 0}, frame);
    assert_int_equal(tcp_write(fd, frame, sizeof frame, tcp_deadline(PATIENCE_NS)), 0);
    expect_refused(&r, fd, -LH_EHANDSHAKE, "stream 1, which is not open");
}

static void frames_in_their_order(void **state)
{
    (void)state;
    struct rendezvous r;
    static const char longest[LH_BLOB_MAX + 1];
    int fd = accept_one(&r);
    propose_in(fd, HANDSHAKE_VERSION);
    propose_in(fd, HANDSHAKE_VERSION);
    expect_error(step(&r, all, 0), -LH_EHANDSHAKE, "unexpected handshake frame 1");
    drop(&r);
    close(fd);
    fd = accept_one(&r);
    propose_in(fd, HANDSHAKE_VERSION);
    assert_int_equal(step(&r, none, 0), 0);
    format_in(fd, HANDSHAKE_VERSION, HANDSHAKE_BLOB, longest, sizeof longest);
    expect_error(step(&r, none, 0), -LH_EHANDSHAKE, "malformed connection blob");
    drop(&r);
    close(fd);
    fd = accept_one(&r);
    propose_in(fd, HANDSHAKE_VERSION);
    format_in(fd, HANDSHAKE_VERSION, HANDSHAKE_BLOB, longest, sizeof longest - 1);
    assert_int_equal(step(&r, none, 0), 0);
    assert_int_equal(r.blob_bytes, LH_BLOB_MAX);
    say(fd, HANDSHAKE_READY, ""); /* before anything is open */
    expect_error(step(&r, none, 0), -LH_EHANDSHAKE, "unexpected handshake frame 3");
    drop(&r);
    close(fd);
}

/* Byte by byte: nothing is done before a frame is whole, and nothing of it is lost. */
static void a_frame_in_parts(void **state)
{
    (void)state;
    const struct handshake_proposal proposal = {
        .mtu_bytes = 1024, .slots = 2, .channels = 1, .generations = 1, .slot_bytes = 16384};
    struct rendezvous r;
    uint8_t frame[HANDSHAKE_HEADER_BYTES + HANDSHAKE_BODY_MAX];
    int fd = accept_one(&r);
    uint32_t bytes = handshake_proposal_encode(&proposal, frame + HANDSHAKE_HEADER_BYTES);
    handshake_header_encode(&(struct handshake_header){2, HANDSHAKE_PROPOSAL, 0, bytes}, frame);
    for (uint32_t i = 0; i < HANDSHAKE_HEADER_BYTES + bytes; i++) {
        assert_int_equal(r.state, RENDEZVOUS_PROPOSAL);
        assert_int_equal(tcp_write(fd, frame + i, 1, tcp_deadline(PATIENCE_NS)), 0);
        assert_int_equal(step(&r, none, 0), 0);
    }
    assert_int_equal(r.state, RENDEZVOUS_BLOB);
    assert_int_equal(r.version, 2); /* the smaller of both */
    assert_int_equal(r.agreed.mtu_bytes, 1024);
    expect_heard(fd, HANDSHAKE_PROPOSAL, NULL);
    drop(&r);
    expect_heard(fd, HANDSHAKE_REFUSE, "over");
    close(fd);
}

static void no_busy_in_version_1(void **state)
{
    (void)state;
    for (uint8_t version = 1; version <= HANDSHAKE_VERSION_BUSY; version++) {
        struct rendezvous r;
        int fd = accept_one(&r);
        propose_in(fd, version);
        assert_int_equal(step(&r, none, 0), 0);
        assert_int_equal(rendezvous_send_busy(&r), 0);
        drop(&r);
        expect_heard(fd, HANDSHAKE_PROPOSAL, NULL);
        if (version >= HANDSHAKE_VERSION_BUSY)
            expect_heard(fd, HANDSHAKE_BUSY, NULL);
        expect_heard(fd, HANDSHAKE_REFUSE, "over");
        close(fd);
    }
}

/* An endpoint that makes no progress by itself; bytes: of blob, which holds LH_BLOB_MAX. */
static struct lh_connection *open_deaf(const char *device, uint8_t *blob, size_t *bytes)
{
    struct lh_attr own = attr;
    struct lh_connection *deaf;
    own.workers = LH_NO_WORKERS;
    own.device = device;
    own.mtu_bytes = 1024; /* as propose_in() */
    own.chunk_bytes = 1024;
    own.channels = 1;
    own.generations = 1;
    *bytes = LH_BLOB_MAX;
    assert_int_equal(lh_open(&own, &deaf), 0);
    assert_int_equal(lh_blob(deaf, blob, bytes), 0);
    return deaf;
}

/* A client that has the listener's blob, of an endpoint that answers nothing; as after NAT its address is
 * another than that of the TCP connection. */
static struct lh_connection *client_behind_a_blob(struct rendezvous *r, int ends[2])
{
    uint8_t blob[LH_BLOB_MAX];
    size_t bytes;
    struct lh_connection *deaf = open_deaf("udp:127.0.0.2", blob, &bytes);
    attr.workers = 1;
    connect_ends(ends);
    assert_int_equal(rendezvous_connect(r, ends[0], &attr, HANDSHAKE_VERSION, NULL, NULL, NULL), 0);
    expect_heard(ends[1], HANDSHAKE_PROPOSAL, NULL);
    propose_in(ends[1], HANDSHAKE_VERSION);
    format_in(ends[1], HANDSHAKE_VERSION, HANDSHAKE_BLOB, blob, bytes);
    RUN_UNTIL(r, all, r->state == RENDEZVOUS_PATH);
    return deaf;
}

/* The listener may send a client away until it has the client's blob, though its own has left before. */
static void full_behind_an_early_blob(void **state)
{
    (void)state;
    struct rendezvous r;
    int ends[2];
    struct lh_connection *deaf = client_behind_a_blob(&r, ends);
    say(ends[1], HANDSHAKE_COOKIE, "0123456789abcdef");
    RUN_UNTIL(&r, all, r.has_cookie);
    say(ends[1], HANDSHAKE_REFUSE, HANDSHAKE_FULL);
    expect_error(step(&r, all, tcp_now()), -LH_EHANDSHAKE, HANDSHAKE_FULL);
    assert_true(r.full); /* it returns */
    drop(&r);
    close(ends[1]);
    lh_close(deaf);
    attr.workers = LH_NO_WORKERS;
}

/* Other reasons are told as they are, though there may be NAT. */
static void another_reason_behind_an_early_blob(void **state)
{
    (void)state;
    struct rendezvous r;
    int ends[2];
    struct lh_connection *deaf = client_behind_a_blob(&r, ends);
    say(ends[1], HANDSHAKE_REFUSE, "not today");
    expect_error(step(&r, all, tcp_now()), -LH_EHANDSHAKE, "not today");
    assert_false(r.full);
    drop(&r);
    close(ends[1]);
    lh_close(deaf);
    attr.workers = LH_NO_WORKERS;
}

/* No ping comes back from the endpoint of this blob. */
static void no_packet_passes(void **state)
{
    (void)state;
    struct rendezvous r;
    uint8_t blob[LH_BLOB_MAX];
    size_t bytes;
    struct lh_connection *deaf = open_deaf("udp:127.0.0.1", blob, &bytes);
    int fd = accept_one(&r);
    propose_in(fd, HANDSHAKE_VERSION);
    format_in(fd, HANDSHAKE_VERSION, HANDSHAKE_BLOB, blob, bytes);
    assert_int_equal(step(&r, all, 1000 * LH_NS_PER_S), 0);
    assert_int_equal(r.state, RENDEZVOUS_PATH);
    assert_in_range(r.path_until_ns, 1002 * LH_NS_PER_S, 1003 * LH_NS_PER_S); /* loopback is fast */
    assert_int_equal(rendezvous_step(&r, all, r.path_until_ns - 1), 0);
    expect_error(rendezvous_step(&r, all, r.path_until_ns), -LH_ETIMEDOUT, "UDP packets do not pass");
    drop(&r);
    close(fd);
    lh_close(deaf);
}

/* A client that sends a ping, gets READY for it, and answers no ping: its place is for the next one, as if
 * nothing had passed. What it sends behind READY is not of the handshake. */
static void a_promise_without_an_answer(void **state)
{
    (void)state;
    struct rendezvous r;
    uint8_t blob[LH_BLOB_MAX];
    char theirs[HANDSHAKE_BODY_MAX + 1];
    size_t bytes;
    lh_time next;
    struct lh_connection *deaf = open_deaf("udp:127.0.0.1", blob, &bytes);
    attr.workers = 1;
    int fd = accept_one(&r);
    propose_in(fd, HANDSHAKE_VERSION);
    assert_int_equal(step(&r, none, 0), 0);
    assert_false(rendezvous_is_open(&r));
    assert_int_equal(rendezvous_step(&r, all, 0), 0);
    assert_true(rendezvous_is_open(&r));
    assert_int_equal(rendezvous_standing(&r), ADMISSION_GREETED);
    expect_heard(fd, HANDSHAKE_PROPOSAL, NULL);
    const struct handshake_header header = hear(fd, theirs);
    assert_int_equal(header.type, HANDSHAKE_BLOB);
    assert_int_equal(lh_attach(deaf, theirs, header.body_bytes), 0);
    assert_int_equal(lh_progress(deaf, &next), 0); /* a ping; later ones find nothing that answers them */
    format_in(fd, HANDSHAKE_VERSION, HANDSHAKE_BLOB, blob, bytes);
    assert_int_equal(step(&r, none, 1000 * LH_NS_PER_S), 0);
    for (lh_time until = tcp_deadline(PATIENCE_NS); r.state != RENDEZVOUS_PENDING;) {
        assert_true(tcp_now() < until);
        assert_int_equal(rendezvous_step(&r, none, r.opened_ns), 0);
    }
    const struct rendezvous_permit proven = {.finish = true};
    assert_int_equal(rendezvous_step(&r, proven, r.opened_ns), 0);
    assert_false(r.promised);
    assert_int_equal(rendezvous_step(&r, all, r.opened_ns), 0);
    assert_true(r.promised);
    expect_heard(fd, HANDSHAKE_READY, "127.0.0.1");
    say(fd, HANDSHAKE_FIN, "");
    assert_int_equal(step(&r, all, r.path_until_ns - 1), 0);
    assert_int_equal(rendezvous_next_ns(&r, r.path_until_ns - 1), r.path_until_ns - 1 + 10 * LH_NS_PER_MS);
    expect_error(rendezvous_step(&r, all, r.path_until_ns), -LH_ETIMEDOUT, "UDP packets do not pass");
    drop(&r);
    close(fd);
    lh_close(deaf);
    attr.workers = LH_NO_WORKERS;
}

/* From 200 us up to 10 ms, or as often as at first where this side makes the progress. */
static void polls_of_the_path(void **state)
{
    (void)state;
    struct lh_attr threaded = attr;
    struct rendezvous r = {.state = RENDEZVOUS_PATH, .opened_ns = 0, .attr = &threaded};
    threaded.workers = 1;
    assert_int_equal(rendezvous_next_ns(&r, 0), 200 * LH_NS_PER_US);
    assert_int_equal(rendezvous_next_ns(&r, 64 * LH_NS_PER_MS), 66 * LH_NS_PER_MS);
    assert_int_equal(rendezvous_next_ns(&r, LH_NS_PER_S), LH_NS_PER_S + 10 * LH_NS_PER_MS);
    r.attr = &attr;
    assert_int_equal(rendezvous_next_ns(&r, LH_NS_PER_S), LH_NS_PER_S + 200 * LH_NS_PER_US);
    r.path = true;
    assert_int_equal(rendezvous_next_ns(&r, LH_NS_PER_S), LH_NS_PER_S + 200 * LH_NS_PER_US);
    r.attr = &threaded;
    assert_int_equal(rendezvous_next_ns(&r, LH_NS_PER_S), LH_TIME_NEVER);
}

/* ---- cookies ----------------------------------------------------------------------------------------- */

/* The cookie that a listener gives; false: none, in that version. */
static bool get_cookie(uint8_t version, char cookie[HANDSHAKE_BODY_MAX + 1])
{
    struct rendezvous r;
    int fd = accept_one(&r);
    rendezvous_send_cookie(&r); /* to nobody whose proposal has not come */
    propose_in(fd, version);
    assert_int_equal(step(&r, none, 0), 0);
    rendezvous_send_cookie(&r);
    drop(&r);
    expect_heard(fd, HANDSHAKE_PROPOSAL, NULL);
    struct handshake_header header = hear(fd, cookie);
    if (header.type == HANDSHAKE_COOKIE)
        assert_int_equal(header.body_bytes, ADMISSION_COOKIE_BYTES);
    close(fd);
    return header.type == HANDSHAKE_COOKIE;
}

static void a_client_returns(void **state)
{
    (void)state;
    struct rendezvous r;
    char cookie[HANDSHAKE_BODY_MAX + 1];
    assert_false(get_cookie(HANDSHAKE_VERSION_COOKIE - 1, cookie));
    assert_true(get_cookie(HANDSHAKE_VERSION, cookie));
    int fd = accept_one(&r);
    format_in(fd, HANDSHAKE_VERSION, HANDSHAKE_COOKIE, cookie, ADMISSION_COOKIE_BYTES);
    assert_int_equal(step(&r, none, 0), 0);
    assert_int_equal(rendezvous_standing(&r), ADMISSION_RETURNED);
    propose_in(fd, HANDSHAKE_VERSION);
    assert_int_equal(step(&r, none, 0), 0);
    assert_int_equal(rendezvous_standing(&r), ADMISSION_RETURNED);
    drop(&r);
    close(fd);
}

static void cookies_that_are_none(void **state)
{
    (void)state;
    struct rendezvous r;
    char cookie[HANDSHAKE_BODY_MAX + 1];
    assert_true(get_cookie(HANDSHAKE_VERSION, cookie));
    cookie[ADMISSION_COOKIE_BYTES - 1] ^= 1;
    int fd = accept_one(&r);
    format_in(fd, HANDSHAKE_VERSION, HANDSHAKE_COOKIE, cookie, ADMISSION_COOKIE_BYTES);
    assert_int_equal(step(&r, none, 0), 0); /* of another listener, say */
    assert_int_equal(rendezvous_standing(&r), ADMISSION_NEW);
    format_in(fd, HANDSHAKE_VERSION, HANDSHAKE_COOKIE, cookie, ADMISSION_COOKIE_BYTES);
    expect_error(step(&r, none, 0), -LH_EHANDSHAKE, "unexpected handshake frame 8");
    drop(&r);
    close(fd);
    fd = accept_one(&r);
    format_in(fd, HANDSHAKE_VERSION, HANDSHAKE_COOKIE, cookie, ADMISSION_COOKIE_BYTES - 1);
    expect_error(step(&r, none, 0), -LH_EHANDSHAKE, "malformed cookie");
    drop(&r);
    close(fd);
    fd = accept_one(&r);
    propose_in(fd, HANDSHAKE_VERSION);
    format_in(fd, HANDSHAKE_VERSION, HANDSHAKE_COOKIE, cookie, ADMISSION_COOKIE_BYTES); /* too late */
    expect_error(step(&r, none, 0), -LH_EHANDSHAKE, "unexpected handshake frame 8");
    drop(&r);
    close(fd);
}

/* ---- the connecting side ----------------------------------------------------------------------------- */

/* Returns the listener's end, where the proposal was heard. */
static int connect_one(struct rendezvous *r, uint8_t version)
{
    int ends[2];
    connect_ends(ends);
    assert_int_equal(rendezvous_connect(r, ends[0], &attr, version, NULL, NULL, NULL), 0);
    expect_heard(ends[1], HANDSHAKE_PROPOSAL, NULL);
    return ends[1];
}

static void a_cookie_comes_first(void **state)
{
    (void)state;
    static const uint8_t cookie[ADMISSION_COOKIE_BYTES + 1] = "0123456789abcdef";
    for (uint8_t version = HANDSHAKE_VERSION_COOKIE - 1; version <= HANDSHAKE_VERSION_COOKIE; version++) {
        struct rendezvous r;
        int ends[2];
        connect_ends(ends);
        assert_int_equal(rendezvous_connect(&r, ends[0], &attr, version, cookie, NULL, NULL), 0);
        if (version >= HANDSHAKE_VERSION_COOKIE)
            expect_heard(ends[1], HANDSHAKE_COOKIE, (const char *)cookie);
        expect_heard(ends[1], HANDSHAKE_PROPOSAL, NULL);
        drop(&r);
        close(ends[1]);
    }
}

static void reasons_of_a_refusal(void **state)
{
    (void)state;
    static const struct {
        uint8_t version;
        const char *reason, *shown;
        bool older, full;
    } cases[] = {
        {HANDSHAKE_VERSION, "no \x1b[2J~ way\x7f", "the remote side refused: no ?[2J~ way?", false, false},
        {HANDSHAKE_VERSION, HANDSHAKE_FULL, HANDSHAKE_FULL, false, true},
        {HANDSHAKE_VERSION, HANDSHAKE_FULL "!", HANDSHAKE_FULL, false, false},
        {1, "the remote side speaks " HANDSHAKE_VERSION_TEXT " 4", "speaks", true, false},
        {1, "no way", "no way", false, false},
        {HANDSHAKE_VERSION, "speaks " HANDSHAKE_VERSION_TEXT " 4", "speaks", false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rendezvous r;
        int fd = connect_one(&r, HANDSHAKE_VERSION);
        format_in(fd, cases[i].version, HANDSHAKE_REFUSE, cases[i].reason, strlen(cases[i].reason));
        expect_error(step(&r, all, 0), -LH_EHANDSHAKE, cases[i].shown);
        assert_int_equal(r.older, cases[i].older);
        assert_int_equal(r.full, cases[i].full);
        assert_false(r.closed);
        drop(&r);
        close(fd);
    }
}

/* Cut at HANDSHAKE_REASON_MAX bytes. */
static void a_long_reason(void **state)
{
    (void)state;
    struct rendezvous r;
    char reason[HANDSHAKE_REASON_MAX + 2];
    memset(reason, 'x', sizeof reason - 1);
    reason[sizeof reason - 1] = '\0';
    int fd = connect_one(&r, HANDSHAKE_VERSION);
    say(fd, HANDSHAKE_REFUSE, reason);
    assert_int_equal(step(&r, all, 0), -LH_EHANDSHAKE);
    reason[HANDSHAKE_REASON_MAX] = '\0';
    assert_string_equal(strchr(lh_last_error(), 'x'), reason);
    drop(&r);
    close(fd);
}

static void a_cookie_is_kept(void **state)
{
    (void)state;
    struct rendezvous r;
    int fd = connect_one(&r, HANDSHAKE_VERSION);
    propose_in(fd, HANDSHAKE_VERSION);
    say(fd, HANDSHAKE_COOKIE, "0123456789abcdef");
    assert_int_equal(step(&r, all, 0), 0);
    assert_true(r.has_cookie);
    assert_memory_equal(r.cookie, "0123456789abcdef", ADMISSION_COOKIE_BYTES);
    say(fd, HANDSHAKE_REFUSE, HANDSHAKE_FULL);
    assert_int_equal(step(&r, all, 0), -LH_EHANDSHAKE);
    assert_true(r.full);
    drop(&r);
    close(fd);
}

static void frames_of_a_listener_in_their_order(void **state)
{
    (void)state;
    static const enum handshake_type early[] = {HANDSHAKE_BUSY, HANDSHAKE_READY, HANDSHAKE_MORE,
                                                HANDSHAKE_BLOB, HANDSHAKE_FIN};
    for (size_t i = 0; i < sizeof early / sizeof *early; i++) {
        struct rendezvous r;
        int fd = connect_one(&r, HANDSHAKE_VERSION);
        say(fd, early[i], "");
        expect_error(step(&r, all, 0), -LH_EHANDSHAKE, "unexpected handshake frame");
        drop(&r);
        close(fd);
    }
}

static void a_listener_that_leaves(void **state)
{
    (void)state;
    struct rendezvous r;
    int fd = connect_one(&r, HANDSHAKE_VERSION);
    assert_int_equal(rendezvous_next_ns(&r, 5), LH_TIME_NEVER); /* the caller's timeout alone */
    shutdown(fd, SHUT_WR);
    expect_error(step(&r, all, 0), -LH_EPEER, "closed the connection during the handshake");
    drop(&r);
    close(fd);
}

/* ---- both sides, with a stream ----------------------------------------------------------------------- */

/* The stream that the other side opens comes out of its acceptor, with the progress of its engine. */
static struct control_stream *take_stream(struct lh_engine *engine, struct control_acceptor *acceptor)
{
    struct control_stream *stream = NULL;
    for (lh_time until = tcp_deadline(PATIENCE_NS); !stream;) {
        assert_true(tcp_now() < until);
        assert_int_equal(lh_engine_progress(engine, NULL), 0);
        stream = control_acceptor_take(acceptor);
    }
    return stream;
}

/* A second connection between two engines runs its handshake over a stream of the first one's TCP connection.
 * */
static void a_second_connection_by_a_stream(void **state)
{
    (void)state;
    struct lh_attr ours = attr, theirs = attr;
    struct two first, second;
    int ends[2], wake_fd = eventfd(0, EFD_NONBLOCK);
    struct control_acceptor *acceptor = control_acceptor_create(wake_fd);
    ours.engine = loopback_engine(1, LH_NO_WORKERS);
    theirs.engine = loopback_engine(1, LH_NO_WORKERS);
    connect_ends(ends);
    rendezvous_accept(&first.server, ends[1], &theirs, &key, acceptor);
    assert_int_equal(
        rendezvous_connect(&first.client, ends[0], &ours, HANDSHAKE_VERSION, NULL, "x:1", NULL), 0);
    run_both(&first);
    struct control_stream *stream = control_stream_open(ours.engine, "x:1", "", wake_fd);
    assert_non_null(stream);
    assert_int_equal(rendezvous_connect_stream(&second.client, stream, &ours, LH_ENCRYPTION_OFF, tcp_now()),
                     0);
    rendezvous_accept_stream(&second.server, take_stream(theirs.engine, acceptor), &theirs,
                             LH_ENCRYPTION_OFF, 7);
    assert_true(second.server.accepting);
    assert_int_equal(second.server.opened_ns, 7);
    assert_int_equal(second.server.fd, ends[1]);
    assert_int_equal(rendezvous_standing(&second.server), ADMISSION_NEW);
    run_both(&second);
    lh_close(rendezvous_done(&second.client));
    lh_close(rendezvous_done(&second.server));
    lh_close(rendezvous_done(&first.client));
    lh_close(rendezvous_done(&first.server));
    control_acceptor_close(acceptor);
    control_acceptor_release(acceptor);
    close(wake_fd);
    assert_int_equal(lh_engine_destroy(ours.engine), 0);
    assert_int_equal(lh_engine_destroy(theirs.engine), 0);
}

/* ---- the connecting side, with a stream -------------------------------------------------------------- */

/* A firewall may have forgotten the TCP connection of the stream: it has a while for the answer. */
static void a_stream_without_an_answer(void **state)
{
    (void)state;
    struct lh_attr own = attr;
    struct lh_connection *first;
    uint8_t blob[LH_BLOB_MAX];
    size_t bytes = sizeof blob;
    int ends[2];
    own.engine = loopback_engine(1, LH_NO_WORKERS);
    assert_int_equal(lh_open(&own, &first), 0);
    assert_int_equal(lh_blob(first, blob, &bytes), 0);
    assert_int_equal(lh_attach(first, blob, bytes), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const struct control_origin origin = {
        .channel = {.fd = ends[0]}, .version = HANDSHAKE_VERSION, .where = "x:1", .peer_name = "x"};
    assert_int_equal(control_connection_begin(first, &origin), 0);

    struct rendezvous r;
    int wake_fd = eventfd(0, EFD_NONBLOCK);
    assert_int_equal(lh_link_parse("delay=100ms", &own.link), 0); /* another 4 round trips */
    struct control_stream *stream = control_stream_open(own.engine, "x:1", "", wake_fd);
    assert_non_null(stream);
    const lh_time began = 1000 * LH_NS_PER_S, timeout = 2 * LH_NS_PER_S + 800 * LH_NS_PER_MS;
    assert_int_equal(rendezvous_connect_stream(&r, stream, &own, LH_ENCRYPTION_OFF, began), 0);
    assert_int_equal(rendezvous_step(&r, all, began + timeout - 1), 0);
    expect_error(rendezvous_step(&r, all, began + timeout), -LH_EPEER, "earlier connections is stuck");
    /* An answer came: from then on the caller's timeout counts. */
    format_in(ends[1], HANDSHAKE_VERSION, HANDSHAKE_REFUSE, "", 0);
    r.state = RENDEZVOUS_BLOB;
    assert_int_equal(rendezvous_step(&r, all, began + 10 * timeout), 0);
    drop(&r);
    close(wake_fd);
    lh_close(first);
    close(ends[1]);
    assert_int_equal(lh_engine_destroy(own.engine), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(both_are_done, set_up),
        cmocka_unit_test_setup(two_round_trips, set_up),
        cmocka_unit_test_setup(as_far_as_is_permitted, set_up),
        cmocka_unit_test_setup(a_link_needs_room, set_up),
        cmocka_unit_test_setup(what_is_no_handshake, set_up),
        cmocka_unit_test_setup(a_frame_of_a_stream, set_up),
        cmocka_unit_test_setup(frames_in_their_order, set_up),
        cmocka_unit_test_setup(a_frame_in_parts, set_up),
        cmocka_unit_test_setup(no_busy_in_version_1, set_up),
        cmocka_unit_test_setup(full_behind_an_early_blob, set_up),
        cmocka_unit_test_setup(another_reason_behind_an_early_blob, set_up),
        cmocka_unit_test_setup(no_packet_passes, set_up),
        cmocka_unit_test_setup(a_promise_without_an_answer, set_up),
        cmocka_unit_test_setup(polls_of_the_path, set_up),
        cmocka_unit_test_setup(a_client_returns, set_up),
        cmocka_unit_test_setup(cookies_that_are_none, set_up),
        cmocka_unit_test_setup(a_cookie_comes_first, set_up),
        cmocka_unit_test_setup(reasons_of_a_refusal, set_up),
        cmocka_unit_test_setup(a_long_reason, set_up),
        cmocka_unit_test_setup(a_cookie_is_kept, set_up),
        cmocka_unit_test_setup(frames_of_a_listener_in_their_order, set_up),
        cmocka_unit_test_setup(a_listener_that_leaves, set_up),
        cmocka_unit_test_setup(a_second_connection_by_a_stream, set_up),
        cmocka_unit_test_setup(a_stream_without_an_answer, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
