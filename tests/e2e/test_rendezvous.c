/* The rendezvous against peers that leave, stay silent or talk nonsense at each of its steps.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <longhaul/connection.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "launch/handshake.h"
#include "launch/tcp.h"

#define PATIENCE_NS (10 * LH_NS_PER_S)

static void read_frame(int fd, uint8_t *body, uint32_t *bytes)
{
    uint8_t raw[HANDSHAKE_HEADER_BYTES];
    struct handshake_header header;
    assert_int_equal(tcp_read(fd, raw, sizeof raw, tcp_deadline(PATIENCE_NS)), 0);
    assert_int_equal(handshake_header_decode(raw, &header), 0);
    *bytes = header.body_bytes;
    assert_int_equal(tcp_read(fd, body, *bytes, tcp_deadline(PATIENCE_NS)), 0);
}

static void write_frame(int fd, enum handshake_type type, const void *body, uint32_t bytes)
{
    uint8_t raw[HANDSHAKE_HEADER_BYTES];
    const struct handshake_header header = {HANDSHAKE_VERSION_MIN, type, 0, bytes};
    handshake_header_encode(&header, raw);
    assert_int_equal(tcp_write(fd, raw, sizeof raw, tcp_deadline(PATIENCE_NS)), 0);
    assert_int_equal(tcp_write(fd, body, bytes, tcp_deadline(PATIENCE_NS)), 0);
}

/* What the connecting side is told, by a peer that plays along as far as `steps` and then does `last`. */
struct play {
    int listener;
    unsigned steps;      /* 0: nothing; 1: proposal; 2: blob of an endpoint that answers no ping */
    const char *refusal; /* or NULL: hangs up */
    bool again;          /* hangs up on one more */
};

static void *peer(void *argument)
{
    const struct play *play = argument;
    uint8_t body[HANDSHAKE_BODY_MAX];
    uint32_t bytes;
    struct lh_attr attr;
    struct lh_connection *deaf;
    lh_attr_init(&attr);
    attr.device = "udp:[::1]";
    attr.mtu_bytes = 8896; /* as the connecting side finds the path */
    attr.workers = LH_NO_WORKERS;
    assert_int_equal(lh_open(&attr, &deaf), 0);
    assert_int_equal(tcp_wait(play->listener, false, tcp_deadline(PATIENCE_NS)), 0);
    int fd = accept(play->listener, NULL, NULL);
    assert_true(fd >= 0);
    if (play->steps >= 1) {
        read_frame(fd, body, &bytes);
        write_frame(fd, HANDSHAKE_PROPOSAL, body, bytes); /* agrees with everything */
    }
    if (play->steps >= 2) {
        size_t size = sizeof body;
        read_frame(fd, body, &bytes);
        assert_int_equal(lh_blob(deaf, body, &size), 0);
        write_frame(fd, HANDSHAKE_BLOB, body, (uint32_t)size);
    }
    if (play->refusal)
        write_frame(fd, HANDSHAKE_REFUSE, play->refusal, (uint32_t)strlen(play->refusal));
    shutdown(fd, SHUT_WR);
    while (recv(fd, body, sizeof body, 0) > 0)
        continue;
    close(fd);
    lh_close(deaf);
    if (play->again) {
        assert_int_equal(tcp_wait(play->listener, false, tcp_deadline(PATIENCE_NS)), 0);
        close(accept(play->listener, NULL, NULL));
    }
    return NULL;
}

static int connect_to_one(struct play play)
{
    char where[32];
    uint16_t port;
    pthread_t thread;
    struct lh_connection *connection = NULL;
    assert_int_equal(tcp_listen("[::1]:0", &play.listener, &port), 0);
    snprintf(where, sizeof where, "[::1]:%u", port);
    assert_int_equal(pthread_create(&thread, NULL, peer, &play), 0);
    int error = lh_connect(where, NULL, PATIENCE_NS, &connection);
    pthread_join(thread, NULL);
    close(play.listener);
    assert_null(connection);
    return error;
}

static int connect_to(unsigned steps, const char *refusal)
{
    return connect_to_one((struct play){.steps = steps, .refusal = refusal});
}

static void a_peer_that_hangs_up_is_gone(void **state)
{
    (void)state;
    for (unsigned steps = 0; steps <= 2; steps++)
        assert_int_equal(connect_to(steps, NULL), -LH_EPEER);
}

static void *close_when_somebody_came(void *argument)
{
    int listener = *(int *)argument;
    assert_int_equal(tcp_wait(listener, false, tcp_deadline(PATIENCE_NS)), 0);
    close(listener);
    return NULL;
}

/* Connected by the kernel, taken by nobody. */
static void a_listener_that_closes_refuses(void **state)
{
    (void)state;
    int listener;
    char where[32];
    uint16_t port;
    pthread_t thread;
    struct lh_connection *connection = NULL;
    assert_int_equal(tcp_listen("[::1]:0", &listener, &port), 0);
    snprintf(where, sizeof where, "[::1]:%u", port);
    assert_int_equal(pthread_create(&thread, NULL, close_when_somebody_came, &listener), 0);
    assert_int_equal(lh_connect(where, NULL, PATIENCE_NS, &connection), -LH_EPEER);
    assert_non_null(strstr(lh_last_error(), "onnection refused")); /* by whichever call saw it */
    pthread_join(thread, NULL);
}

static void a_refusal_is_passed_on(void **state)
{
    (void)state;
    for (unsigned steps = 0; steps <= 2; steps++) {
        assert_int_equal(connect_to(steps, "no room\x1b[2J today"), -LH_EHANDSHAKE);
        assert_non_null(strstr(lh_last_error(), "no room?[2J today")); /* harmless on a terminal */
    }
}

/* Also one that had a place, and lost it to another. */
static void a_full_listener_is_asked_again(void **state)
{
    (void)state;
    for (unsigned steps = 0; steps <= 1; steps++) {
        const struct play play = {.steps = steps, .refusal = HANDSHAKE_FULL, .again = true};
        assert_int_equal(connect_to_one(play), -LH_EPEER);
    }
}

static void *connect_properly(void *argument)
{
    struct lh_connection *connection = NULL;
    int error = lh_connect(argument, NULL, PATIENCE_NS, &connection);
    assert_int_equal(error, 0);
    lh_close(connection);
    return NULL;
}

/* Strangers come first and say nothing, or nonsense; a client of ours is served all the same. */
static void strangers_keep_nobody_waiting(void **state)
{
    (void)state;
    static const char *const words[] = {"", "GET / HTTP/1.1\r\n\r\n", "LHR1",
                                        "LHR1\x01\x01\0\0\0\0\x0f\xff"};
    static const size_t lengths[] = {0, 18, 4, 12};
    struct lh_listener *listener;
    struct lh_connection *connection;
    char where[32];
    int strangers[4];
    pthread_t thread;
    assert_int_equal(lh_listen("[::1]:0", NULL, &listener), 0);
    snprintf(where, sizeof where, "[::1]:%u", lh_listener_port(listener));
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(tcp_connect(where, tcp_deadline(PATIENCE_NS), &strangers[i]), 0);
        assert_int_equal(tcp_write(strangers[i], words[i], lengths[i], tcp_deadline(PATIENCE_NS)), 0);
    }
    assert_int_equal(pthread_create(&thread, NULL, connect_properly, where), 0);
    assert_int_equal(lh_accept(listener, PATIENCE_NS, &connection), 0);
    pthread_join(thread, NULL);
    lh_close(connection);
    for (size_t i = 0; i < 4; i++)
        close(strangers[i]);
    lh_listener_close(listener);
}

static void *connect_over_a_long_link(void *argument)
{
    struct lh_connection *connection = NULL;
    struct lh_attr attr;
    lh_attr_init(&attr);
    assert_int_equal(lh_link_parse("delay=3600s", &attr.link), 0);
    assert_int_equal(lh_connect(argument, &attr, LH_NS_PER_S / 10, &connection), -LH_ETIMEDOUT);
    assert_null(connection);
    return NULL;
}

/* What the emulated link holds leaves it in an hour. Neither side waits for that, least of all the one to
 * which the link was proposed. */
static void a_link_too_long_holds_nobody(void **state)
{
    (void)state;
    struct lh_listener *listener;
    struct lh_connection *connection = NULL;
    char where[32];
    pthread_t thread;
    assert_int_equal(lh_listen("[::1]:0", NULL, &listener), 0);
    snprintf(where, sizeof where, "[::1]:%u", lh_listener_port(listener));
    assert_int_equal(pthread_create(&thread, NULL, connect_over_a_long_link, where), 0);
    assert_int_equal(lh_accept(listener, LH_NS_PER_S, &connection), -LH_ETIMEDOUT);
    assert_null(connection);
    pthread_join(thread, NULL);
    lh_listener_close(listener);
}

/* A client that cannot be taken for want of descriptors waits; meanwhile nobody spins. */
static void no_descriptors_left(void **state)
{
    (void)state;
    struct lh_listener *listener;
    struct lh_connection *connection = NULL;
    struct rlimit before, none;
    struct timespec used;
    char where[32];
    int client;
    assert_int_equal(lh_listen("[::1]:0", NULL, &listener), 0);
    snprintf(where, sizeof where, "[::1]:%u", lh_listener_port(listener));
    assert_int_equal(tcp_connect(where, tcp_deadline(PATIENCE_NS), &client), 0);
    getrlimit(RLIMIT_NOFILE, &before);
    none = (struct rlimit){.rlim_cur = 3, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    lh_time started = (lh_time)used.tv_sec * LH_NS_PER_S + (lh_time)used.tv_nsec;
    int error = lh_accept(listener, LH_NS_PER_S / 2, &connection);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(error, -LH_ETIMEDOUT);
    lh_time spent = (lh_time)used.tv_sec * LH_NS_PER_S + (lh_time)used.tv_nsec - started;
    assert_in_range(spent, 0, LH_NS_PER_S / 10);
    close(client);
    lh_listener_close(listener);
}

static void addresses_are_split(void **state)
{
    (void)state;
    char host[16];
    char port[8];
    assert_int_equal(tcp_split("[::1]:70", host, sizeof host, port, sizeof port), 0);
    assert_string_equal(host, "::1");
    assert_string_equal(port, "70");
    assert_int_equal(tcp_split(":70", host, sizeof host, port, sizeof port), 0);
    assert_string_equal(host, "");
    static const char *const wrong[] = {
        "", "host", "host:", "::1:70", "host:7x", "host:12345678", "a-name-that-is-long:1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(tcp_split(wrong[i], host, sizeof host, port, sizeof port), -LH_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_that_hangs_up_is_gone),  cmocka_unit_test(a_listener_that_closes_refuses),
        cmocka_unit_test(a_refusal_is_passed_on),        cmocka_unit_test(a_full_listener_is_asked_again),
        cmocka_unit_test(strangers_keep_nobody_waiting), cmocka_unit_test(a_link_too_long_holds_nobody),
        cmocka_unit_test(no_descriptors_left),           cmocka_unit_test(addresses_are_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
