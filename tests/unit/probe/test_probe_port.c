/*
 * test_probe_port.c - a probe's port in virtual time: when an emulated link takes another packet, and what
 * becomes of packets that the kernel does not take.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "probe/probe_port.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "launch/tcp.h"

#define PATIENCE_NS (60 * LH_NS_PER_S)
#define RETRY_NS    (50 * LH_NS_PER_US)

static struct probe_port port;

static struct port_packet packet_of(uint32_t bytes)
{
    return (struct port_packet){.bytes = bytes};
}

/* To a UDP port where nothing listens: nothing leaves in these tests. */
static void open_port(const char *link)
{
    struct lh_link_spec spec;
    char where[32];
    uint16_t number;
    int listener, client;
    assert_int_equal(lh_link_parse(link, &spec), 0);
    assert_int_equal(tcp_listen("127.0.0.1:0", &listener, &number), 0);
    snprintf(where, sizeof where, "127.0.0.1:%u", number);
    assert_int_equal(tcp_connect(where, tcp_deadline(PATIENCE_NS), &client), 0);
    assert_int_equal(probe_port_open_client(&port, client, number, 1, &spec), 0);
    close(client);
    close(listener);
}

/* Without a link the kernel is asked again soon; a link says when its queue has room. */
static void when_a_packet_is_taken(void **state)
{
    (void)state;
    const struct port_packet packet = packet_of(972); /* 1000 bytes with its headers: 1 ms */
    open_port("none");
    assert_int_equal(probe_port_ready_ns(&port, 7), 7 + RETRY_NS);
    probe_port_close(&port);
    open_port("rate=8Mbit,delay=1ms,queue=4000");
    const lh_time now = LH_NS_PER_S;
    assert_int_equal(probe_port_ready_ns(&port, now), now + RETRY_NS); /* it is idle */
    uint32_t taken = 0;
    while (probe_port_send(&port, &packet, now)) /* until its queue is full */
        taken++;
    assert_in_range(taken, 2, 10);
    assert_int_equal(port.pushed_back, 1);
    lh_time ready = probe_port_ready_ns(&port, now);
    assert_in_range(ready, now + RETRY_NS + 1, now + 10 * LH_NS_PER_MS);
    assert_int_equal(ready, lh_link_ready_ns(&port.link, now));
    assert_true(probe_port_send(&port, &packet, ready));
    probe_port_close(&port);
}

/* Each is tried twice, as the first error may be of another packet; then it is lost, and those behind it
 * leave. Its size is no error of the path. */
static void packets_that_the_kernel_refuses(void **state)
{
    (void)state;
    const struct port_packet large = packet_of(60000), small = packet_of(PROBE_HEADER_BYTES);
    int ends[2];
    open_port("none");
    close(port.fds[0]);
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &(int){1}, sizeof(int)), 0);
    port.fds[0] = ends[0];
    assert_true(probe_port_send(&port, &large, 0));
    assert_true(probe_port_send(&port, &small, 0));
    probe_port_pump(&port, 0);
    assert_true(probe_port_is_empty(&port));
    assert_int_equal(port.too_long, 1);
    assert_int_equal(port.send_error, 0);
    uint8_t got[PROBE_HEADER_BYTES + 1];
    assert_int_equal(recv(ends[1], got, sizeof got, MSG_DONTWAIT), PROBE_HEADER_BYTES);
    close(ends[1]); /* from here on nobody is there */
    assert_true(probe_port_send(&port, &small, 0));
    probe_port_pump(&port, 0);
    assert_true(probe_port_is_empty(&port));
    assert_int_equal(port.too_long, 1);
    assert_int_not_equal(port.send_error, 0);
    assert_int_not_equal(port.send_error, EMSGSIZE);
    probe_port_close(&port);
}

/* What the kernel does not take yet stays, and is offered again soon. */
static void a_socket_that_is_full(void **state)
{
    (void)state;
    const struct port_packet small = packet_of(PROBE_HEADER_BYTES);
    uint8_t got[PROBE_HEADER_BYTES];
    uint32_t sent = 0, read = 0;
    int ends[2];
    open_port("none");
    close(port.fds[0]);
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
    port.fds[0] = ends[0];
    assert_int_equal(probe_port_pump(&port, 7), LH_TIME_NEVER); /* nothing waits */
    lh_time next_ns;
    do { /* until the socket is full: it holds some packets only */
        assert_true(probe_port_send(&port, &small, 7));
        next_ns = probe_port_pump(&port, 7);
        sent++;
    } while (probe_port_is_empty(&port) && sent < 100000);
    assert_int_equal(next_ns, 7 + RETRY_NS);
    while (!probe_port_is_empty(&port)) {
        assert_int_equal(recv(ends[1], got, sizeof got, MSG_DONTWAIT), sizeof got);
        read++;
        next_ns = probe_port_pump(&port, 8);
    }
    assert_int_equal(next_ns, LH_TIME_NEVER);
    while (recv(ends[1], got, sizeof got, MSG_DONTWAIT) == sizeof got)
        read++;
    assert_int_equal(read, sent);
    assert_int_equal(port.send_error, 0);
    close(ends[1]);
    probe_port_close(&port);
}

/* A packet ends the wait, and only the other descriptor is told of. */
static void what_ends_a_wait(void **state)
{
    (void)state;
    int ends[2], other[2];
    open_port("none");
    close(port.fds[0]);
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, other), 0);
    port.fds[0] = ends[0];
    assert_false(probe_port_wait(&port, other[0], 0)); /* that moment is over */
    assert_int_equal(send(ends[1], "x", 1, 0), 1);
    assert_false(probe_port_wait(&port, other[0], tcp_deadline(PATIENCE_NS)));
    assert_int_equal(send(other[1], "x", 1, 0), 1);
    assert_true(probe_port_wait(&port, other[0], tcp_deadline(PATIENCE_NS)));
    for (int i = 0; i < 2; i++)
        close(other[i]);
    close(ends[1]);
    probe_port_close(&port);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(when_a_packet_is_taken),
        cmocka_unit_test(packets_that_the_kernel_refuses),
        cmocka_unit_test(a_socket_that_is_full),
        cmocka_unit_test(what_ends_a_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
