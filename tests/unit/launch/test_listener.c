/*
 * test_listener.c - a listener and the clients that it accepts, in one process; what it refuses at once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "launch/handshake.h"
#include "launch/tcp.h"

/* Far beyond what any of these takes. */
#define PATIENCE_NS (60 * LH_NS_PER_S)
#define TEXT_MAX    256u /* of the attributes that a listener keeps, with its end */

struct client {
    char where[32];
    struct lh_attr attr;
    int error;
    struct lh_connection *connection;
    pthread_t thread;
};

static void *run(void *argument)
{
    struct client *client = argument;
    client->error = lh_connect(client->where, &client->attr, PATIENCE_NS, &client->connection);
    return NULL;
}

static void start(struct client *client, const struct lh_listener *listener)
{
    memset(client, 0, sizeof *client);
    lh_attr_init(&client->attr);
    client->attr.slots = 2;
    client->attr.slot_bytes = 16384;
    snprintf(client->where, sizeof client->where, "127.0.0.1:%u", lh_listener_port(listener));
    assert_int_equal(pthread_create(&client->thread, NULL, run, client), 0);
}

static void end(struct client *client)
{
    pthread_join(client->thread, NULL);
    assert_int_equal(client->error, 0);
    lh_close(client->connection);
}

static void listen_with(const struct lh_attr *attr, struct lh_listener **listener)
{
    if (lh_listen("127.0.0.1:0", attr, listener) != 0)
        fail_msg("%s", lh_last_error());
}

/* The listener keeps the texts of its attributes: the caller's may go. */
static void texts_are_the_listeners_own(void **state)
{
    (void)state;
    char device[] = "udp:127.0.0.1", reliability[] = "sr-nack", congestion[] = "fixed";
    struct lh_attr attr;
    struct lh_listener *listener;
    struct lh_connection *connection;
    struct client client;
    lh_attr_init(&attr);
    attr.device = device;
    attr.reliability = reliability;
    attr.congestion = congestion;
    listen_with(&attr, &listener);
    memset(device, 'x', strlen(device));
    memset(reliability, 'x', strlen(reliability));
    memset(congestion, 'x', strlen(congestion));
    start(&client, listener);
    assert_int_equal(lh_accept(listener, PATIENCE_NS, &connection), 0);
    end(&client);
    lh_close(connection);
    lh_listener_close(listener);
}

static void the_longest_texts(void **state)
{
    (void)state;
    struct lh_attr attr;
    struct lh_listener *listener;
    char device[TEXT_MAX + 1];
    lh_attr_init(&attr);
    memset(device, 'x', sizeof device);
    device[TEXT_MAX] = '\0';
    attr.device = device;
    assert_int_equal(lh_listen("127.0.0.1:0", &attr, &listener), -LH_EINVAL);
    assert_string_equal(lh_last_error(), "device is longer than 255 bytes");
    device[TEXT_MAX - 1] = '\0'; /* whether there is such a device shows when a client comes */
    listen_with(&attr, &listener);
    lh_listener_close(listener);
}

static void several_clients(void **state)
{
    (void)state;
    struct client clients[3];
    struct lh_listener *listener;
    struct lh_connection *connections[3];
    listen_with(NULL, &listener);
    for (int i = 0; i < 3; i++)
        start(&clients[i], listener);
    for (int i = 0; i < 3; i++)
        assert_int_equal(lh_accept(listener, PATIENCE_NS, &connections[i]), 0);
    for (int i = 0; i < 3; i++)
        end(&clients[i]);
    for (int i = 0; i < 3; i++)
        lh_close(connections[i]);
    assert_int_equal(lh_accept(listener, 0, &connections[0]), -LH_ETIMEDOUT); /* no fourth */
    lh_listener_close(listener);
}

static void say(int fd, enum handshake_type type, const void *body, uint32_t bytes)
{
    uint8_t frame[HANDSHAKE_HEADER_BYTES + HANDSHAKE_BODY_MAX];
    handshake_header_encode(&(struct handshake_header){HANDSHAKE_VERSION, type, 0, bytes}, frame);
    memcpy(frame + HANDSHAKE_HEADER_BYTES, body, bytes);
    tcp_write(fd, frame, HANDSHAKE_HEADER_BYTES + bytes, tcp_deadline(PATIENCE_NS));
}

static void refuse(int fd, const char *reason)
{
    say(fd, HANDSHAKE_REFUSE, reason, (uint32_t)strlen(reason));
}

static void propose(int fd)
{
    const struct handshake_proposal proposal = {
        .mtu_bytes = 1024, .slots = 2, .channels = 1, .generations = 1, .slot_bytes = 16384};
    uint8_t body[HANDSHAKE_BODY_MAX];
    say(fd, HANDSHAKE_PROPOSAL, body, handshake_proposal_encode(&proposal, body));
}

/* Strangers are refused with a reason, and no client waits for them. */
static void strangers(void **state)
{
    (void)state;
    struct lh_listener *listener;
    struct lh_connection *connection;
    struct handshake_header header;
    struct client client;
    char where[32], body[HANDSHAKE_BODY_MAX + 1] = "";
    uint8_t raw[HANDSHAKE_HEADER_BYTES];
    int talks, silent;
    listen_with(NULL, &listener);
    snprintf(where, sizeof where, "127.0.0.1:%u", lh_listener_port(listener));
    assert_int_equal(tcp_connect(where, tcp_deadline(PATIENCE_NS), &silent), 0);
    assert_int_equal(tcp_connect(where, tcp_deadline(PATIENCE_NS), &talks), 0);
    assert_int_equal(tcp_write(talks, "GET / HTTP/1.1\r\n", 16, tcp_deadline(PATIENCE_NS)), 0);
    assert_int_equal(tcp_read(talks, raw, sizeof raw, tcp_deadline(PATIENCE_NS)), 0);
    assert_int_equal(handshake_header_decode(raw, &header), 0);
    assert_int_equal(header.type, HANDSHAKE_REFUSE);
    assert_int_equal(tcp_read(talks, body, header.body_bytes, tcp_deadline(PATIENCE_NS)), 0);
    assert_non_null(strstr(body, "is not Longhaul"));
    start(&client, listener);
    assert_int_equal(lh_accept(listener, PATIENCE_NS, &connection), 0);
    end(&client);
    lh_close(connection);
    lh_listener_close(listener);
    assert_int_equal(tcp_read(silent, raw, sizeof raw, tcp_deadline(PATIENCE_NS)), 0);
    assert_int_equal(handshake_header_decode(raw, &header), 0);
    assert_int_equal(header.type, HANDSHAKE_REFUSE);
    memset(body, 0, sizeof body);
    assert_int_equal(tcp_read(silent, body, header.body_bytes, tcp_deadline(PATIENCE_NS)), 0);
    assert_string_equal(body, HANDSHAKE_CLOSED);
    close(talks);
    close(silent);
}

static void expect_full(int fd)
{
    uint8_t raw[HANDSHAKE_HEADER_BYTES];
    char body[HANDSHAKE_BODY_MAX + 1] = "";
    struct handshake_header header;
    assert_int_equal(tcp_read(fd, raw, sizeof raw, tcp_deadline(PATIENCE_NS)), 0);
    assert_int_equal(handshake_header_decode(raw, &header), 0);
    assert_int_equal(header.type, HANDSHAKE_REFUSE);
    assert_int_equal(tcp_read(fd, body, header.body_bytes, tcp_deadline(PATIENCE_NS)), 0);
    assert_string_equal(body, HANDSHAKE_FULL);
}

/* A client that comes takes the descriptor of a stranger; it is heard itself before it may have to leave. */
static void no_descriptor_left(void **state)
{
    (void)state;
    struct lh_listener *listener;
    struct handshake_header header;
    struct rlimit before;
    uint8_t raw[HANDSHAKE_HEADER_BYTES];
    char where[32];
    int silent, talks, client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    listen_with(NULL, &listener);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    to.sin_port = htons(lh_listener_port(listener));
    snprintf(where, sizeof where, "127.0.0.1:%u", lh_listener_port(listener));
    assert_int_equal(tcp_connect(where, tcp_deadline(PATIENCE_NS), &silent), 0);
    assert_int_equal(tcp_connect(where, tcp_deadline(PATIENCE_NS), &talks), 0);
    propose(talks);
    assert_int_equal(tcp_read(talks, raw, sizeof raw, tcp_deadline(PATIENCE_NS)), 0); /* both are taken */
    int lowest = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit none = {.rlim_cur = (rlim_t)lowest, .rlim_max = before.rlim_max};
    close(lowest);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&to, sizeof to), 0);
    expect_full(silent);
    propose(client);
    assert_int_equal(tcp_read(client, raw, sizeof raw, tcp_deadline(PATIENCE_NS)), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(handshake_header_decode(raw, &header), 0);
    assert_int_equal(header.type, HANDSHAKE_PROPOSAL);
    lh_listener_close(listener);
    close(silent);
    close(talks);
    close(client);
}

static void what_is_refused_at_once(void **state)
{
    (void)state;
    struct lh_attr attr;
    struct lh_listener *listener;
    struct lh_connection *connection;
    char where[32];
    uint16_t port;
    int fd;
    lh_attr_init(&attr);
    assert_int_equal(lh_link_parse("rate=100Gbit,rtt=10s", &attr.link), 0);
    assert_int_equal(lh_listen("127.0.0.1:0", &attr, &listener), -LH_ERANGE);
    assert_int_equal(lh_listen("127.0.0.1", NULL, &listener), -LH_EINVAL);
    assert_int_equal(tcp_listen("127.0.0.1:0", &fd, &port), 0);
    snprintf(where, sizeof where, "127.0.0.1:%u", port);
    assert_int_equal(lh_listen(where, NULL, &listener), -LH_EADDR);
    close(fd);
    assert_int_equal(lh_connect(where, NULL, PATIENCE_NS, &connection), -LH_EPEER);
    lh_listener_close(NULL);
}

/* ---- a listener that the test plays ------------------------------------------------------------------ */

struct played {
    int fd;
    char where[32];
    void (*answer)(int fd, struct played *played);
    unsigned clients, notices;
    enum lh_notice notice;
    bool wait_longer; /* what the client says to a notice */
    uint8_t first[2]; /* type of the first frame of the first two clients */
    pthread_t thread;
};

/* Each client makes its proposal, gets that answer, and closes. */
static void *play(void *argument)
{
    struct played *played = argument;
    uint8_t raw[HANDSHAKE_HEADER_BYTES], rest[HANDSHAKE_BODY_MAX];
    struct handshake_header header;
    int fd;
    while ((fd = accept(played->fd, NULL, NULL)) >= 0) { /* until the test shuts it down */
        do {
            assert_int_equal(tcp_read(fd, raw, sizeof raw, tcp_deadline(PATIENCE_NS)), 0);
            assert_int_equal(handshake_header_decode(raw, &header), 0);
            assert_int_equal(tcp_read(fd, rest, header.body_bytes, tcp_deadline(PATIENCE_NS)), 0);
            if (played->clients < 2 && !played->first[played->clients])
                played->first[played->clients] = (uint8_t)header.type;
        } while (header.type != HANDSHAKE_PROPOSAL);
        played->answer(fd, played);
        played->clients++;
        shutdown(fd, SHUT_WR);
        while (recv(fd, rest, sizeof rest, 0) > 0)
            continue;
        close(fd);
    }
    return NULL;
}

static bool on_notice(void *context, enum lh_notice notice, const char *text)
{
    struct played *played = context;
    assert_string_equal(text, played->where);
    played->notice = notice;
    played->notices++;
    return played->wait_longer;
}

/* What lh_connect() says to a listener that answers so. */
static int connect_to(struct played *played, lh_time timeout_ns)
{
    struct lh_attr attr;
    struct lh_connection *connection;
    uint16_t port;
    lh_attr_init(&attr);
    attr.workers = LH_NO_WORKERS;
    attr.slots = 2;
    attr.slot_bytes = 16384;
    attr.on_notice = on_notice;
    attr.notice_context = played;
    assert_int_equal(tcp_listen("127.0.0.1:0", &played->fd, &port), 0);
    fcntl(played->fd, F_SETFL, 0); /* accept() waits */
    snprintf(played->where, sizeof played->where, "127.0.0.1:%u", port);
    assert_int_equal(pthread_create(&played->thread, NULL, play, played), 0);
    int error = lh_connect(played->where, &attr, timeout_ns, &connection);
    shutdown(played->fd, SHUT_RDWR);
    pthread_join(played->thread, NULL);
    close(played->fd);
    return error;
}

static void expect_error(int error, int wanted, const char *words)
{
    assert_int_equal(error, wanted);
    if (!strstr(lh_last_error(), words))
        fail_msg("\"%s\" is not in: %s", words, lh_last_error());
}

/* Full for the first client, which gets a cookie with its word: it returns with that. */
static void full_at_first(int fd, struct played *played)
{
    if (played->clients > 0) {
        refuse(fd, "no way");
        return;
    }
    propose(fd);
    say(fd, HANDSHAKE_COOKIE, "0123456789abcdef", 16);
    refuse(fd, HANDSHAKE_FULL);
}

static void a_full_listener_is_tried_again(void **state)
{
    (void)state;
    struct played played = {.answer = full_at_first};
    expect_error(connect_to(&played, PATIENCE_NS), -LH_EHANDSHAKE, "no way");
    assert_int_equal(played.clients, 2);
    assert_int_equal(played.first[0], HANDSHAKE_PROPOSAL);
    assert_int_equal(played.first[1], HANDSHAKE_COOKIE);
    assert_int_equal(played.notices, 1);
    assert_int_equal(played.notice, LH_NOTICE_BUSY);
}

static void full_for_ever(int fd, struct played *played)
{
    (void)played;
    refuse(fd, HANDSHAKE_FULL);
}

/* As long as there is time for a pause and another try; the client may make more of it, by its word. */
static void full_until_the_deadline(void **state)
{
    (void)state;
    for (int longer = 0; longer < 2; longer++) {
        struct played played = {.answer = full_for_ever, .wait_longer = longer};
        expect_error(connect_to(&played, 2 * LH_NS_PER_S / 5), -LH_EHANDSHAKE, HANDSHAKE_FULL);
        /* Pauses of 62, 125 and 250 ms; one of 500 ms would be too long from any notice on. Fewer where the
         * processor was busy. */
        assert_in_range(played.clients, 1, longer ? 4 : 3);
        assert_int_equal(played.notices, played.clients);
    }
}

static void busy_twice(int fd, struct played *played)
{
    (void)played;
    propose(fd);
    say(fd, HANDSHAKE_BUSY, "", 0);
    say(fd, HANDSHAKE_BUSY, "", 0);
    refuse(fd, "no way");
}

/* Each word of a listener that is busy is reported. */
static void a_busy_listener(void **state)
{
    (void)state;
    struct played played = {.answer = busy_twice};
    expect_error(connect_to(&played, PATIENCE_NS), -LH_EHANDSHAKE, "no way");
    assert_int_equal(played.notices, 2);
    assert_int_equal(played.notice, LH_NOTICE_BUSY);
}

static void busy_then_silent(int fd, struct played *played)
{
    (void)played;
    propose(fd);
    say(fd, HANDSHAKE_BUSY, "", 0);
    char byte;
    while (recv(fd, &byte, 1, 0) > 0) /* until the client gives up */
        continue;
}

static void silent(int fd, struct played *played)
{
    (void)played;
    char byte;
    while (recv(fd, &byte, 1, 0) > 0)
        continue;
}

static void no_answer_in_time(void **state)
{
    (void)state;
    char words[128];
    struct played played = {.answer = busy_then_silent};
    int error = connect_to(&played, LH_NS_PER_S);
    snprintf(words, sizeof words, "%s is busy with another connection (wait longer)", played.where);
    expect_error(error, -LH_ETIMEDOUT, words);
    played = (struct played){.answer = silent};
    error = connect_to(&played, LH_NS_PER_S / 5);
    snprintf(words, sizeof words, "%s did not answer in time", played.where);
    assert_int_equal(error, -LH_ETIMEDOUT);
    assert_string_equal(lh_last_error(), words);
}

static void closes(int fd, struct played *played)
{
    (void)fd, (void)played;
}

/* It took the connection, and not the client. */
static void a_listener_that_closes(void **state)
{
    (void)state;
    struct played played = {.answer = closes};
    expect_error(connect_to(&played, PATIENCE_NS), -LH_EPEER,
                 "connection refused: the listener closed before it answered (start it again)");
    assert_int_equal(played.clients, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_the_listeners_own),
        cmocka_unit_test(the_longest_texts),
        cmocka_unit_test(several_clients),
        cmocka_unit_test(strangers),
        cmocka_unit_test(no_descriptor_left),
        cmocka_unit_test(what_is_refused_at_once),
        cmocka_unit_test(a_full_listener_is_tried_again),
        cmocka_unit_test(full_until_the_deadline),
        cmocka_unit_test(a_busy_listener),
        cmocka_unit_test(no_answer_in_time),
        cmocka_unit_test(a_listener_that_closes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
