/*
 * test_control_connection.c - a control connection against peers that open streams without end, use
 * numbers twice, end half of everything, do not read, or talk nonsense. The test makes all progress:
 * nothing depends on time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "launch/control_connection.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/engine.h>

#define WHERE "somewhere:1"

struct host {
    struct lh_engine *engine;
    struct lh_connection *connection; /* of stream 0 */
    struct control_acceptor *acceptor;
    int wake_fd;
    int peer; /* the other end of the socket */
};

static void must(int code, const char *what)
{
    if (code != 0)
        fail_msg("%s: %d, %s", what, code, lh_last_error());
}

static struct lh_connection *open_on(struct lh_engine *engine)
{
    struct lh_attr attr;
    struct lh_connection *connection;
    lh_attr_init(&attr);
    attr.engine = engine;
    attr.mtu_bytes = 1024;
    attr.slot_bytes = 16384;
    attr.slots = 2;
    must(lh_open(&attr, &connection), "lh_open");
    return connection;
}

/* Both ends of a connection know each other; only one has a control connection. */
static void attach_to_itself(struct lh_connection *connection)
{
    uint8_t blob[LH_BLOB_MAX];
    size_t bytes = sizeof blob;
    must(lh_blob(connection, blob, &bytes), "lh_blob");
    must(lh_attach(connection, blob, bytes), "lh_attach");
}

static void begin_over(struct host *host, const int ends[2], uint8_t version)
{
    struct lh_engine_attr attr;
    lh_engine_attr_init(&attr);
    attr.device = "udp:127.0.0.1";
    attr.workers = LH_NO_WORKERS;
    must(lh_engine_create(&attr, &host->engine), "lh_engine_create");
    host->peer = ends[1];
    host->connection = open_on(host->engine);
    attach_to_itself(host->connection);
    const struct control_origin origin = {.channel = {.fd = ends[0]},
                                          .version = version,
                                          .acceptor = host->acceptor,
                                          .where = host->acceptor ? NULL : WHERE,
                                          .peer_name = "a peer"};
    must(control_connection_begin(host->connection, &origin), "control_connection_begin");
}

static void begin_with(struct host *host, struct control_acceptor *acceptor, uint8_t version)
{
    int ends[2];
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), "socketpair");
    host->acceptor = acceptor;
    begin_over(host, ends, version);
}

static void begin(struct host *host, bool accepting, uint8_t version)
{
    host->wake_fd = eventfd(0, EFD_NONBLOCK);
    begin_with(host, accepting ? control_acceptor_create(host->wake_fd) : NULL, version);
}

static void end(struct host *host)
{
    struct control_stream *stream;
    if (host->acceptor)
        control_acceptor_close(host->acceptor);
    while (host->acceptor && (stream = control_acceptor_take(host->acceptor)) != NULL)
        control_stream_refuse(stream, "over");
    control_acceptor_release(host->acceptor);
    lh_close(host->connection);
    close(host->peer);
    close(host->wake_fd);
    must(lh_engine_destroy(host->engine), "lh_engine_destroy");
}

/* What has been written is read, and what follows from it is done. */
static void progress(const struct host *host)
{
    for (uint32_t i = 0; i < 200; i++)
        must(lh_engine_progress(host->engine, NULL), "lh_engine_progress");
}

static void format_in(int fd, uint8_t version, uint16_t stream, enum handshake_type type, const char *body)
{
    uint8_t frame[HANDSHAKE_HEADER_BYTES + HANDSHAKE_BODY_MAX];
    size_t bytes = strlen(body);
    const struct handshake_header header = {version, type, stream, (uint32_t)bytes};
    handshake_header_encode(&header, frame);
    memcpy(frame + HANDSHAKE_HEADER_BYTES, body, bytes);
    assert_int_equal(send(fd, frame, HANDSHAKE_HEADER_BYTES + bytes, MSG_NOSIGNAL),
                     HANDSHAKE_HEADER_BYTES + bytes);
}

static void say(const struct host *host, uint16_t stream, enum handshake_type type, const char *body)
{
    format_in(host->peer, HANDSHAKE_VERSION, stream, type, body);
}

/* The next frame that it got; false: none, or not all of it. */
static bool hear(const struct host *host, struct handshake_header *header,
                 char body[HANDSHAKE_BODY_MAX + 1])
{
    uint8_t frame[HANDSHAKE_HEADER_BYTES + HANDSHAKE_BODY_MAX];
    ssize_t got = recv(host->peer, frame, sizeof frame, MSG_DONTWAIT | MSG_PEEK);
    if (got < (ssize_t)HANDSHAKE_HEADER_BYTES)
        return false;
    assert_int_equal(handshake_header_decode(frame, header), 0);
    ssize_t whole = (ssize_t)(HANDSHAKE_HEADER_BYTES + header->body_bytes);
    if (got < whole)
        return false;
    assert_int_equal(recv(host->peer, frame, (size_t)whole, MSG_DONTWAIT), whole);
    memcpy(body, frame + HANDSHAKE_HEADER_BYTES, header->body_bytes);
    body[header->body_bytes] = '\0';
    return true;
}

static void expect_heard(const struct host *host, uint16_t stream, enum handshake_type type,
                         const char *words)
{
    struct handshake_header header;
    char body[HANDSHAKE_BODY_MAX + 1];
    assert_true(hear(host, &header, body));
    assert_int_equal(header.stream, stream);
    assert_int_equal(header.type, type);
    if (words)
        assert_string_equal(body, words);
}

static void expect_nothing_heard(const struct host *host)
{
    struct handshake_header header;
    char body[HANDSHAKE_BODY_MAX + 1];
    assert_false(hear(host, &header, body));
}

static struct control_stream *expect_opened(const struct host *host, const char *proposal)
{
    struct handshake_header header;
    uint8_t body[HANDSHAKE_BODY_MAX];
    struct control_stream *stream = control_acceptor_take(host->acceptor);
    assert_non_null(stream);
    assert_int_equal(control_stream_receive(stream, &header, body), 1);
    assert_int_equal(header.type, HANDSHAKE_PROPOSAL);
    assert_memory_equal(body, proposal, strlen(proposal));
    return stream;
}

/* ---- a peer that opens streams ----------------------------------------------------------------------- */

static void test_streams_are_opened_and_handed_over(void **state)
{
    (void)state;
    struct host host;
    begin(&host, true, HANDSHAKE_VERSION);
    struct lh_connection *second = open_on(host.engine);
    attach_to_itself(second);
    say(&host, 1, HANDSHAKE_PROPOSAL, "one");
    progress(&host);
    uint64_t woken;
    assert_int_equal(read(host.wake_fd, &woken, sizeof woken), sizeof woken); /* the listener */
    struct control_stream *stream = expect_opened(&host, "one");
    must(control_stream_send(stream, HANDSHAKE_READY, "x", 1), "control_stream_send");
    expect_heard(&host, 1, HANDSHAKE_READY, "x");
    say(&host, 1, HANDSHAKE_REFUSE, "no \x1b~\x7f way"); /* before it is handed over: nothing is lost */
    progress(&host);
    control_stream_hand_over(stream, second, "a peer");
    progress(&host);
    assert_int_equal(lh_connection_error(second), -LH_EPATH);
    assert_non_null(strstr(lh_last_error(), "no ?~? way"));
    assert_int_equal(lh_connection_error(host.connection), 0); /* only that one */
    lh_close(second);
    expect_heard(&host, 1, HANDSHAKE_FIN, NULL);
    say(&host, 0, HANDSHAKE_FIN, "");
    progress(&host);
    assert_int_equal(lh_connection_error(host.connection), -LH_ECLOSED);
    end(&host);
}

/* The TCP connection ends between the handshake and the hand-over: the connection learns of it at once. */
static void test_handed_over_when_it_has_ended(void **state)
{
    (void)state;
    struct host host;
    begin(&host, true, HANDSHAKE_VERSION);
    struct lh_connection *second = open_on(host.engine);
    attach_to_itself(second);
    say(&host, 1, HANDSHAKE_PROPOSAL, "one");
    progress(&host);
    struct control_stream *stream = expect_opened(&host, "one");
    shutdown(host.peer, SHUT_WR);
    progress(&host);
    control_stream_hand_over(stream, second, "a peer");
    progress(&host);
    assert_int_equal(lh_connection_error(second), -LH_EPEER);
    lh_close(second);
    end(&host);
}

static void test_users_of_an_acceptor(void **state)
{
    (void)state;
    struct host host;
    begin(&host, true, HANDSHAKE_VERSION);
    assert_int_equal(control_acceptor_users(host.acceptor), 1);
    control_acceptor_share(host.acceptor);
    assert_int_equal(control_acceptor_users(host.acceptor), 2);
    control_acceptor_release(host.acceptor);
    assert_int_equal(control_acceptor_users(host.acceptor), 1);
    end(&host);
}

static void test_streams_without_end(void **state)
{
    (void)state;
    struct host host;
    begin(&host, true, HANDSHAKE_VERSION);
    uint16_t id = 1;
    for (; id <= CONTROL_OPENING_MAX; id++)
        say(&host, id, HANDSHAKE_PROPOSAL, "me");
    progress(&host);
    expect_nothing_heard(&host);
    for (uint32_t i = 0; i < 1000; i++, id++) { /* each is refused, and costs a number */
        say(&host, id, HANDSHAKE_PROPOSAL, "me, too");
        progress(&host);
        expect_heard(&host, id, HANDSHAKE_REFUSE, HANDSHAKE_FULL);
    }
    control_stream_refuse(expect_opened(&host, "me"), "go");
    expect_heard(&host, 1, HANDSHAKE_REFUSE, "go");
    say(&host, id, HANDSHAKE_PROPOSAL, "now");
    progress(&host);
    expect_nothing_heard(&host); /* there is room for one again */
    assert_int_equal(lh_connection_error(host.connection), 0);
    end(&host);
}

/* One that is handed over leaves its place to the next; so does each that the listener has taken. */
static void test_places_of_a_listener(void **state)
{
    (void)state;
    struct host hosts[CONTROL_ACCEPTOR_MAX / CONTROL_OPENING_MAX + 1];
    uint32_t last = sizeof hosts / sizeof hosts[0] - 1;
    begin(&hosts[0], true, HANDSHAKE_VERSION);
    struct lh_connection *second = open_on(hosts[0].engine);
    attach_to_itself(second);
    for (uint16_t id = 1; id <= CONTROL_OPENING_MAX; id++)
        say(&hosts[0], id, HANDSHAKE_PROPOSAL, "me");
    progress(&hosts[0]);
    control_stream_hand_over(expect_opened(&hosts[0], "me"), second, "a peer");
    say(&hosts[0], CONTROL_OPENING_MAX + 1, HANDSHAKE_PROPOSAL, "me");
    progress(&hosts[0]);
    expect_nothing_heard(&hosts[0]);
    for (uint32_t i = 1; i <= last; i++) {
        begin_with(&hosts[i], control_acceptor_share(hosts[0].acceptor), HANDSHAKE_VERSION);
        for (uint16_t id = 1; i < last && id <= CONTROL_OPENING_MAX; id++)
            say(&hosts[i], id, HANDSHAKE_PROPOSAL, "me");
        progress(&hosts[i]);
        expect_nothing_heard(&hosts[i]);
    }
    say(&hosts[last], 1, HANDSHAKE_PROPOSAL, "too late");
    progress(&hosts[last]);
    expect_heard(&hosts[last], 1, HANDSHAKE_REFUSE, HANDSHAKE_FULL);
    struct control_stream *stream = expect_opened(&hosts[0], "me");
    say(&hosts[last], 2, HANDSHAKE_PROPOSAL, "me");
    progress(&hosts[last]);
    expect_nothing_heard(&hosts[last]);
    control_stream_refuse(stream, "over");
    while ((stream = control_acceptor_take(hosts[0].acceptor)) != NULL)
        control_stream_refuse(stream, "over");
    for (uint32_t i = 1; i <= last; i++) {
        hosts[i].wake_fd = eventfd(0, EFD_NONBLOCK);
        end(&hosts[i]);
    }
    lh_close(second);
    end(&hosts[0]);
}

static void test_all_numbers(void **state)
{
    (void)state;
    struct host host;
    begin(&host, true, HANDSHAKE_VERSION);
    control_acceptor_close(host.acceptor);
    for (uint32_t id = 1; id < CONTROL_STREAMS_MAX; id++) {
        say(&host, (uint16_t)id, HANDSHAKE_PROPOSAL, "");
        if (id % 64 == 0 || id == CONTROL_STREAMS_MAX - 1)
            for (uint32_t i = 0; i < 5; i++)
                must(lh_engine_progress(host.engine, NULL), "lh_engine_progress");
        struct handshake_header header;
        char body[HANDSHAKE_BODY_MAX + 1];
        while (hear(&host, &header, body))
            assert_string_equal(body, HANDSHAKE_CLOSED);
    }
    say(&host, 1, HANDSHAKE_PROPOSAL, ""); /* of one that it has not ended: ignored */
    progress(&host);
    expect_nothing_heard(&host);
    say(&host, 1, HANDSHAKE_FIN, "");
    say(&host, 1, HANDSHAKE_PROPOSAL, ""); /* now it is free */
    progress(&host);
    expect_heard(&host, 1, HANDSHAKE_REFUSE, HANDSHAKE_CLOSED);
    assert_int_equal(lh_connection_error(host.connection), 0);
    end(&host);
}

/* A second proposal is for whoever runs the handshake to refuse. */
static void test_a_number_twice(void **state)
{
    (void)state;
    struct host host;
    struct handshake_header header;
    uint8_t body[HANDSHAKE_BODY_MAX];
    begin(&host, true, HANDSHAKE_VERSION);
    say(&host, 1, HANDSHAKE_PROPOSAL, "one");
    say(&host, 1, HANDSHAKE_PROPOSAL, "two");
    progress(&host);
    struct control_stream *stream = expect_opened(&host, "one");
    assert_null(control_acceptor_take(host.acceptor));
    assert_int_equal(control_stream_receive(stream, &header, body), 1);
    assert_int_equal(header.type, HANDSHAKE_PROPOSAL);
    assert_int_equal(control_stream_receive(stream, &header, body), 0);
    for (uint32_t i = 0; i <= CONTROL_FRAMES_MAX; i++)
        say(&host, 1, HANDSHAKE_BUSY, "");
    progress(&host);
    for (uint32_t i = 0; i < CONTROL_FRAMES_MAX; i++)
        assert_int_equal(control_stream_receive(stream, &header, body), 1);
    assert_int_equal(control_stream_receive(stream, &header, body), -LH_EPEER);
    control_stream_refuse(stream, "enough");
    assert_int_equal(lh_connection_error(host.connection), 0); /* the others go on */
    /* One that is a connection's takes nothing but its end. */
    say(&host, 0, HANDSHAKE_PROPOSAL, "");
    progress(&host);
    assert_int_equal(lh_connection_error(host.connection), -LH_EPEER);
    end(&host);
}

/* A number is free when both sides have ended it, in either order. */
static void test_half_ended(void **state)
{
    (void)state;
    struct host host;
    begin(&host, true, HANDSHAKE_VERSION);
    for (uint32_t i = 0; i < 10; i++) {
        say(&host, 1, HANDSHAKE_PROPOSAL, "me");
        progress(&host);
        struct control_stream *stream = expect_opened(&host, "me");
        if (i % 2) {
            say(&host, 1, HANDSHAKE_FIN, "");
            progress(&host);
        }
        control_stream_refuse(stream, "go");
        expect_heard(&host, 1, HANDSHAKE_REFUSE, "go");
        if (i % 2 == 0) {
            say(&host, 1, HANDSHAKE_READY, ""); /* was under way */
            say(&host, 1, HANDSHAKE_FIN, "");
            progress(&host);
        }
    }
    assert_int_equal(lh_connection_error(host.connection), 0);
    end(&host);
}

/* The program may hold an end that is over for long: another has its number meanwhile. */
static void test_a_number_of_one_that_is_over(void **state)
{
    (void)state;
    struct host host;
    begin(&host, true, HANDSHAKE_VERSION);
    for (int peer_first = 0; peer_first < 2; peer_first++) {
        struct lh_connection *second = open_on(host.engine);
        attach_to_itself(second);
        say(&host, 1, HANDSHAKE_PROPOSAL, "one");
        progress(&host);
        control_stream_hand_over(expect_opened(&host, "one"), second, "a peer");
        if (peer_first)
            say(&host, 1, HANDSHAKE_FIN, "");
        progress(&host);
        second->keepalive.control_connection_ops->refuse(second->keepalive.control_connection, "no way");
        expect_heard(&host, 1, HANDSHAKE_REFUSE, "no way");
        if (!peer_first)
            say(&host, 1, HANDSHAKE_FIN, "");
        say(&host, 1, HANDSHAKE_PROPOSAL, "two");
        progress(&host);
        assert_int_equal(lh_connection_error(second), -LH_ECLOSED);
        struct control_stream *stream = expect_opened(&host, "two");
        lh_close(second);
        expect_nothing_heard(&host);
        must(control_stream_send(stream, HANDSHAKE_READY, "x", 1), "control_stream_send");
        expect_heard(&host, 1, HANDSHAKE_READY, "x");
        control_stream_refuse(stream, "go");
        expect_heard(&host, 1, HANDSHAKE_REFUSE, "go");
        say(&host, 1, HANDSHAKE_FIN, "");
        progress(&host);
    }
    assert_int_equal(lh_connection_error(host.connection), 0);
    end(&host);
}

/* ---- what ends all of it ----------------------------------------------------------------------------- */

static void expect_end(void (*talk)(const struct host *host), bool accepting, uint8_t version)
{
    struct host host;
    begin(&host, accepting, version);
    progress(&host);
    assert_int_equal(lh_connection_error(host.connection), 0);
    talk(&host);
    progress(&host);
    assert_int_equal(lh_connection_error(host.connection), -LH_EPEER);
    end(&host);
}

static void a_gap(const struct host *host)
{
    say(host, 2, HANDSHAKE_PROPOSAL, "");
}

static void not_a_proposal(const struct host *host)
{
    say(host, 1, HANDSHAKE_READY, "");
}

static void a_proposal(const struct host *host)
{
    say(host, 1, HANDSHAKE_PROPOSAL, "");
}

static void garbage(const struct host *host)
{
    assert_int_equal(send(host->peer, "GET / HTTP/1.1\r\n", 16, MSG_NOSIGNAL), 16);
}

static void silence(const struct host *host)
{
    shutdown(host->peer, SHUT_WR);
}

static void an_old_frame_of_a_stream(const struct host *host)
{
    uint8_t frame[HANDSHAKE_HEADER_BYTES];
    const struct handshake_header header = {HANDSHAKE_VERSION, HANDSHAKE_FIN, 0, 0};
    handshake_header_encode(&header, frame);
    frame[4] = 2;
    frame[7] = 1;
    assert_int_equal(send(host->peer, frame, sizeof frame, MSG_NOSIGNAL), sizeof frame);
}

static void test_nonsense_ends_it(void **state)
{
    (void)state;
    expect_end(a_gap, true, HANDSHAKE_VERSION);
    expect_end(not_a_proposal, true, HANDSHAKE_VERSION);
    expect_end(a_proposal, false, HANDSHAKE_VERSION); /* only the connecting side opens streams */
    expect_end(garbage, true, HANDSHAKE_VERSION);
    expect_end(garbage, false, 1);
    expect_end(silence, true, HANDSHAKE_VERSION);
    expect_end(silence, false, 1);
    expect_end(an_old_frame_of_a_stream, true, 2);
}

/* As when its TCP connection has timed out: the peer may live, and packets show it. */
static void test_a_lost_control_connection(void **state)
{
    (void)state;
    struct host host;
    begin(&host, true, HANDSHAKE_VERSION);
    struct lh_connection *second = open_on(host.engine);
    attach_to_itself(second);
    say(&host, 1, HANDSHAKE_PROPOSAL, "one");
    progress(&host);
    struct control_stream *stream = expect_opened(&host, "one");
    control_stream_hand_over(stream, second, "a peer");
    control_stream_end(stream, CONTROL_CONNECTION_LOST);
    progress(&host);
    assert_int_equal(lh_connection_error(second), 0);
    assert_true(second->keepalive.lost);
    lh_close(second);
    end(&host);
}

/* ---- the connecting side ----------------------------------------------------------------------------- */

static void test_the_connecting_side(void **state)
{
    (void)state;
    struct host host;
    struct control_stream *streams[5];
    struct handshake_header header;
    uint8_t body[HANDSHAKE_BODY_MAX];
    begin(&host, false, HANDSHAKE_VERSION);
    assert_null(control_stream_open(host.engine, "elsewhere:1", "", host.wake_fd));
    for (uint16_t i = 1; i < 5; i++) {
        streams[i] = control_stream_open(host.engine, WHERE, "", host.wake_fd);
        assert_non_null(streams[i]);
        must(control_stream_send(streams[i], HANDSHAKE_PROPOSAL, "p", 1), "control_stream_send");
        expect_heard(&host, i, HANDSHAKE_PROPOSAL, "p");
    }
    /* One that failed before its first frame: the peer knows nothing of it. */
    control_stream_refuse(control_stream_open(host.engine, WHERE, "", host.wake_fd), "failed");
    /* The lowest that both have ended is used again. */
    control_stream_refuse(streams[2], "a");
    control_stream_refuse(streams[3], "b");
    say(&host, 3, HANDSHAKE_FIN, "");
    progress(&host);
    expect_heard(&host, 2, HANDSHAKE_REFUSE, "a");
    expect_heard(&host, 3, HANDSHAKE_REFUSE, "b");
    streams[3] = control_stream_open(host.engine, WHERE, "", host.wake_fd);
    must(control_stream_send(streams[3], HANDSHAKE_PROPOSAL, "p", 1), "control_stream_send");
    expect_heard(&host, 3, HANDSHAKE_PROPOSAL, "p");
    assert_int_equal(control_stream_receive(streams[3], &header, body), 0);
    say(&host, 3, HANDSHAKE_PROPOSAL, "q");
    progress(&host);
    assert_int_equal(control_stream_receive(streams[3], &header, body), 1);
    assert_int_equal(body[0], 'q');
    /* The peer goes: none is opened over it any more. */
    shutdown(host.peer, SHUT_WR);
    progress(&host);
    assert_null(control_stream_open(host.engine, WHERE, "", host.wake_fd));
    for (uint16_t i = 1; i < 5; i++) {
        if (i == 2)
            continue;
        assert_int_equal(control_stream_receive(streams[i], &header, body), -LH_EPEER);
        control_stream_refuse(streams[i], "gone");
    }
    assert_int_equal(lh_connection_error(host.connection), -LH_EPEER);
    end(&host);
}

/* Found to be of no use: none is opened over it any more, while those that are go on. */
static void test_opened_no_more(void **state)
{
    (void)state;
    struct host host;
    struct handshake_header header;
    uint8_t body[HANDSHAKE_BODY_MAX];
    begin(&host, false, HANDSHAKE_VERSION);
    struct control_stream *stream = control_stream_open(host.engine, WHERE, "", host.wake_fd);
    assert_non_null(stream);
    must(control_stream_send(stream, HANDSHAKE_PROPOSAL, "p", 1), "control_stream_send");
    control_stream_open_no_more(stream);
    assert_null(control_stream_open(host.engine, WHERE, "", host.wake_fd));
    say(&host, 1, HANDSHAKE_READY, "");
    progress(&host);
    assert_int_equal(control_stream_receive(stream, &header, body), 1);
    assert_int_equal(lh_connection_error(host.connection), 0);
    control_stream_open_no_more(stream); /* as another caller may, who had a stream of it */
    control_stream_refuse(stream, "over");
    end(&host);
}

/* What does not leave at once leaves later, in its order; a peer that never reads is given up. */
static void test_a_peer_that_does_not_read(void **state)
{
    (void)state;
    struct host host;
    char text[HANDSHAKE_BODY_MAX];
    uint32_t sent = 0, received = 0;
    memset(text, 'x', sizeof text);
    for (int reads = 1; reads >= 0; reads--) {
        begin(&host, false, HANDSHAKE_VERSION);
        struct control_stream *stream = control_stream_open(host.engine, WHERE, "", host.wake_fd);
        uint32_t maximum = reads ? 1000 : 100000;
        for (sent = 0; sent < maximum; sent++) {
            memcpy(text, &sent, sizeof sent);
            if (control_stream_send(stream, HANDSHAKE_READY, text, sizeof text))
                break;
        }
        if (reads) {
            assert_int_equal(sent, maximum);
            for (received = 0; received < maximum;) {
                struct handshake_header header;
                char body[HANDSHAKE_BODY_MAX + 1];
                uint32_t number;
                if (!hear(&host, &header, body)) {
                    progress(&host);
                    continue;
                }
                memcpy(&number, body, sizeof number);
                assert_int_equal(number, received++);
            }
            expect_nothing_heard(&host);
        } else {
            assert_in_range(sent, 1000, 10000);
            progress(&host);
            assert_int_equal(lh_connection_error(host.connection), -LH_EPEER);
        }
        control_stream_refuse(stream, "over");
        end(&host);
    }
}

/* However many reads a turn of the worker has, a frame that is here is taken. */
static void test_bursts(void **state)
{
    struct handshake_header header;
    char body[HANDSHAKE_BODY_MAX + 1];
    (void)state;
    for (uint32_t burst = 18; burst < 48; burst++) {
        struct host host;
        uint32_t answers = 0;
        begin(&host, true, HANDSHAKE_VERSION);
        control_acceptor_close(host.acceptor); /* refuses all */
        say(&host, 0, HANDSHAKE_BUSY, "");     /* one read fewer than the others */
        for (uint32_t i = 1; i <= burst; i++)
            say(&host, (uint16_t)i, HANDSHAKE_PROPOSAL, "me");
        progress(&host);
        progress(&host);
        while (hear(&host, &header, body))
            answers++;
        assert_int_equal(answers, burst);
        end(&host);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bursts),
        cmocka_unit_test(test_streams_are_opened_and_handed_over),
        cmocka_unit_test(test_handed_over_when_it_has_ended),
        cmocka_unit_test(test_users_of_an_acceptor),
        cmocka_unit_test(test_streams_without_end),
        cmocka_unit_test(test_places_of_a_listener),
        cmocka_unit_test(test_all_numbers),
        cmocka_unit_test(test_a_number_twice),
        cmocka_unit_test(test_half_ended),
        cmocka_unit_test(test_a_number_of_one_that_is_over),
        cmocka_unit_test(test_nonsense_ends_it),
        cmocka_unit_test(test_a_lost_control_connection),
        cmocka_unit_test(test_the_connecting_side),
        cmocka_unit_test(test_opened_no_more),
        cmocka_unit_test(test_a_peer_that_does_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
