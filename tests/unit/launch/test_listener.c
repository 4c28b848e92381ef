/*
 * test_listener.c - a listener and the clients that it accepts, in one process; what it refuses at once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_the_listeners_own),
        cmocka_unit_test(the_longest_texts),
        cmocka_unit_test(several_clients),
        cmocka_unit_test(strangers),
        cmocka_unit_test(what_is_refused_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
