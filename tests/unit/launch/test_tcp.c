/*
 * test_tcp.c - addresses of sockets as text and bytes, and whole buffers over a connection, on the loopback
 * interface. Nothing depends on time: what has to time out has a deadline that has passed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "launch/tcp.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "wire/roce_packet.h"

/* Far beyond what any of these takes. */
#define PATIENCE_NS (60 * LH_NS_PER_S)

/* ---- text -------------------------------------------------------------------------------------------- */

static void hosts_and_ports(void **state)
{
    (void)state;
    static const char *const good[][3] = {
        {"127.0.0.1:4000", "127.0.0.1", "4000"},
        {"[::1]:4000", "::1", "4000"},
        {":1", "", "1"},
        {"[fe80::1%eth0]:65535", "fe80::1%eth0", "65535"},
        {"name:0", "name", "0"},
        {"[x]:1", "x", "1"},
    };
    static const char *const bad[] = {"",      "name",   "name:",   "::1:4000",
                                      "[::1]", "name:x", "name:1x", "name:-1"};
    char host[16], port[8];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(tcp_split(good[i][0], host, sizeof host, port, sizeof port), 0);
        assert_string_equal(host, good[i][1]);
        assert_string_equal(port, good[i][2]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(tcp_split(bad[i], host, sizeof host, port, sizeof port), -LH_EINVAL);
    assert_int_equal(tcp_split(NULL, host, sizeof host, port, sizeof port), -LH_EINVAL);
}

/* The longest that fit, and one byte more. */
static void room_of_hosts_and_ports(void **state)
{
    (void)state;
    char host[5], port[5];
    assert_int_equal(tcp_split("four:4321", host, sizeof host, port, sizeof port), 0);
    assert_string_equal(host, "four");
    assert_string_equal(port, "4321");
    assert_int_equal(tcp_split("fives:4321", host, sizeof host, port, sizeof port), -LH_EINVAL);
    assert_int_equal(tcp_split("four:54321", host, sizeof host, port, sizeof port), -LH_EINVAL);
}

static void descriptors_and_memory(void **state)
{
    (void)state;
    static const int exhausted[] = {EMFILE, ENFILE, ENOBUFS, ENOMEM};
    static const int others[] = {0, EAGAIN, ECONNABORTED, EINTR, EPERM};
    for (size_t i = 0; i < sizeof exhausted / sizeof *exhausted; i++)
        assert_true(tcp_is_exhausted(exhausted[i]));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(tcp_is_exhausted(others[i]));
}

static void deadlines(void **state)
{
    (void)state;
    lh_time before = tcp_now(), deadline = tcp_deadline(PATIENCE_NS), after = tcp_now();
    assert_in_range(deadline, before + PATIENCE_NS, after + PATIENCE_NS);
    assert_int_equal(tcp_deadline(LH_TIME_NEVER), LH_TIME_NEVER);
    assert_int_equal(tcp_deadline(LH_TIME_NEVER - 1), LH_TIME_NEVER);
}

/* ---- addresses of sockets ---------------------------------------------------------------------------- */

struct ends {
    int listener, client, server;
    uint16_t port;
};

/* A connection to `host` at a listener of `on`; false: this host has no such address. */
static bool open_ends(struct ends *ends, const char *on, const char *host)
{
    char where[64];
    if (tcp_listen(on, &ends->listener, &ends->port) != 0)
        return false;
    snprintf(where, sizeof where, "%s:%u", host, ends->port);
    assert_int_equal(tcp_connect(where, tcp_deadline(PATIENCE_NS), &ends->client), 0);
    assert_int_equal(tcp_wait(ends->listener, false, tcp_deadline(PATIENCE_NS)), 0);
    ends->server = accept(ends->listener, NULL, NULL);
    assert_true(ends->server >= 0);
    return true;
}

static void close_ends(const struct ends *ends)
{
    close(ends->client);
    close(ends->server);
    close(ends->listener);
}

static void expect_address(int fd, uint8_t family, const uint8_t *wanted)
{
    uint8_t bytes[16];
    memset(bytes, 0xA5, sizeof bytes);
    assert_int_equal(tcp_peer_address(fd, bytes), family);
    assert_memory_equal(bytes, wanted, sizeof bytes);
}

/* Both ends, as text: of the listener's end the port is known. */
static void expect_names(const struct ends *ends, const char *host, const char *device)
{
    char name[TCP_NAME_MAX], other[TCP_NAME_MAX], wanted[TCP_NAME_MAX];
    snprintf(wanted, sizeof wanted, "%s:%u", host, ends->port);
    assert_int_equal(tcp_peer_name(ends->client, name, sizeof name), 0);
    assert_string_equal(name, wanted);
    assert_int_equal(tcp_local_name(ends->server, name, sizeof name), 0);
    assert_string_equal(name, wanted);
    assert_int_equal(tcp_local_name(ends->client, name, sizeof name), 0);
    assert_int_equal(tcp_peer_name(ends->server, other, sizeof other), 0);
    assert_string_equal(name, other);
    assert_string_not_equal(name, wanted);
    assert_int_equal(tcp_udp_device(ends->client, name, sizeof name), 0);
    assert_string_equal(name, device);
    assert_int_equal(tcp_udp_device(ends->server, name, sizeof name), 0);
    assert_string_equal(name, device);
    assert_int_equal(tcp_path_mtu(ends->client, 28), ROCE_PAYLOAD_MAX); /* loopback takes 64 KiB */
}

static void names_of_ipv4(void **state)
{
    (void)state;
    static const uint8_t loopback[16] = {127, 0, 0, 1};
    struct ends ends;
    assert_true(open_ends(&ends, "127.0.0.1:0", "127.0.0.1"));
    expect_names(&ends, "127.0.0.1", "udp:127.0.0.1");
    expect_address(ends.client, 4, loopback);
    expect_address(ends.server, 4, loopback);
    close_ends(&ends);
}

static void names_of_ipv6(void **state)
{
    (void)state;
    static const uint8_t loopback[16] = {[15] = 1};
    struct ends ends;
    if (!open_ends(&ends, "[::1]:0", "[::1]"))
        skip(); /* a host without IPv6 */
    expect_names(&ends, "[::1]", "udp:[::1]");
    expect_address(ends.client, 6, loopback);
    close_ends(&ends);
}

/* The listener of all addresses has an IPv6 socket, which shows IPv4 clients as ::ffff:a.b.c.d. */
static void ipv4_of_an_ipv6_socket(void **state)
{
    (void)state;
    static const uint8_t loopback[16] = {127, 0, 0, 1};
    struct ends ends;
    assert_true(open_ends(&ends, ":0", "127.0.0.1"));
    expect_names(&ends, "127.0.0.1", "udp:127.0.0.1");
    expect_address(ends.server, 4, loopback);
    close_ends(&ends);
}

/* Where the host has IPv6 the listener of all addresses takes both families. */
static void ipv6_at_all_addresses(void **state)
{
    (void)state;
    struct ends ends;
    if (!open_ends(&ends, "[::1]:0", "[::1]"))
        skip(); /* a host without IPv6 */
    close_ends(&ends);
    assert_true(open_ends(&ends, ":0", "[::1]"));
    close_ends(&ends);
}

static void a_socket_without_a_peer(void **state)
{
    (void)state;
    static const uint8_t none[16];
    char name[TCP_NAME_MAX];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(tcp_peer_name(fd, name, sizeof name), -LH_EPEER);
    expect_address(fd, 0, none);
    close(fd);
    assert_int_equal(tcp_udp_device(fd, name, sizeof name), -LH_EPEER);
    assert_int_equal(tcp_path_mtu(fd, 0), 0);
}

/* ---- listening and connecting ------------------------------------------------------------------------ */

static void where_nothing_listens(void **state)
{
    (void)state;
    char where[32];
    uint16_t port;
    int fd, other;
    assert_int_equal(tcp_listen("127.0.0.1:0", &fd, &port), 0);
    snprintf(where, sizeof where, "127.0.0.1:%u", port);
    assert_int_equal(tcp_listen(where, &other, &port), -LH_EADDR); /* taken */
    close(fd);
    assert_int_equal(tcp_connect(where, tcp_deadline(PATIENCE_NS), &fd), -LH_EPEER);
    assert_non_null(strstr(lh_last_error(), where));
    assert_int_equal(tcp_connect("127.0.0.1:65536", tcp_deadline(PATIENCE_NS), &fd), -LH_EINVAL);
    assert_int_equal(tcp_listen("127.0.0.1", &fd, &port), -LH_EINVAL);
    assert_int_equal(tcp_listen("192.0.2.1:0", &fd, &port), -LH_EADDR); /* not of this host */
}

/* An address that fails at once: its reason is the answer, and the next one is tried. */
static void addresses_that_fail_at_once(void **state)
{
    (void)state;
    struct sockaddr_in good = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct addrinfo second = {.ai_family = AF_INET, .ai_addrlen = sizeof good};
    struct addrinfo first = second;
    int listener, fd;
    uint16_t port;
    assert_int_equal(tcp_listen("127.0.0.1:0", &listener, &port), 0);
    good.sin_port = htons(port);
    first.ai_addr = second.ai_addr = (struct sockaddr *)&good;
    first.ai_addrlen = 1; /* EINVAL of connect() */
    assert_int_equal(tcp_connect_any(&first, "x:1", tcp_deadline(PATIENCE_NS), &fd), -LH_EPEER);
    assert_non_null(strstr(lh_last_error(), strerror(EINVAL)));
    first.ai_next = &second;
    assert_int_equal(tcp_connect_any(&first, "x:1", tcp_deadline(PATIENCE_NS), &fd), 0);
    close(fd);
    close(listener);
}

#define WAITING 8

/* A listener of which no connection is taken, full with others: one more gets no answer. */
static int full_listener(struct sockaddr_in *address, int waiting[WAITING])
{
    socklen_t bytes = sizeof *address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    assert_int_equal(bind(fd, (struct sockaddr *)address, bytes), 0);
    assert_int_equal(listen(fd, 0), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)address, &bytes), 0);
    for (int i = 0; i < WAITING; i++) {
        waiting[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(waiting[i], (struct sockaddr *)address, bytes);
    }
    return fd;
}

/* Beside an address that does not answer the next one is tried, soon. */
static void an_address_that_does_not_answer(void **state)
{
    (void)state;
    struct sockaddr_in silent, good = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}}, peer;
    int waiting[WAITING], listener, fd, full = full_listener(&silent, waiting);
    socklen_t bytes = sizeof peer;
    uint16_t port;
    assert_int_equal(tcp_listen("127.0.0.1:0", &listener, &port), 0);
    good.sin_port = htons(port);
    struct addrinfo second = {
        .ai_family = AF_INET, .ai_addr = (struct sockaddr *)&good, .ai_addrlen = sizeof good};
    struct addrinfo first = {.ai_family = AF_INET,
                             .ai_addr = (struct sockaddr *)&silent,
                             .ai_addrlen = sizeof silent,
                             .ai_next = &second};
    assert_int_equal(tcp_connect_any(&first, "x:1", tcp_deadline(PATIENCE_NS), &fd), 0);
    assert_int_equal(getpeername(fd, (struct sockaddr *)&peer, &bytes), 0);
    assert_int_equal(ntohs(peer.sin_port), port);
    close(fd);
    first.ai_next = NULL;
    assert_int_equal(tcp_connect_any(&first, "x:1", tcp_deadline(LH_NS_PER_S / 20), &fd), -LH_ETIMEDOUT);
    assert_string_equal(
        lh_last_error(),
        "x:1 did not answer in time: no host has this address, or a firewall drops TCP (let "
        "TCP port 1 through the firewalls of both hosts)");
    for (int i = 0; i < WAITING; i++)
        close(waiting[i]);
    close(full);
    close(listener);
}

static void no_descriptor_left(void **state)
{
    (void)state;
    struct rlimit before;
    int lowest = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit none = {.rlim_cur = (rlim_t)lowest, .rlim_max = before.rlim_max};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const struct addrinfo list = {
        .ai_family = AF_INET, .ai_addr = (struct sockaddr *)&to, .ai_addrlen = sizeof to};
    close(lowest);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int error = tcp_connect_any(&list, "x:1", tcp_deadline(PATIENCE_NS), &fd);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(error, -LH_ESYSTEM);
    assert_string_equal(lh_last_error(), "socket: Too many open files");
}

/* ---- whole buffers ----------------------------------------------------------------------------------- */

static void bytes_come_in_parts(void **state)
{
    (void)state;
    int ends[2];
    char got[8] = "";
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(tcp_wait(ends[0], true, 0), 0);
    assert_int_equal(tcp_wait(ends[0], false, 0), -LH_ETIMEDOUT);
    assert_int_equal(tcp_write(ends[0], "abc", 3, tcp_deadline(PATIENCE_NS)), 0);
    assert_int_equal(tcp_wait(ends[1], false, 0), 0);
    assert_int_equal(tcp_read(ends[1], got, 2, tcp_deadline(PATIENCE_NS)), 0);
    assert_string_equal(got, "ab");
    assert_int_equal(tcp_read(ends[1], got, 2, 0), -LH_ETIMEDOUT); /* one of them is there */
    assert_int_equal(got[0], 'c');
    assert_int_equal(tcp_read(ends[1], got, 0, 0), 0);
    assert_int_equal(tcp_write(ends[0], "de", 2, 0), 0); /* there is room: nothing to wait for */
    close(ends[0]);
    assert_int_equal(tcp_read(ends[1], got, 3, tcp_deadline(PATIENCE_NS)), -LH_EPEER);
    assert_memory_equal(got, "de", 2);
    assert_non_null(strstr(lh_last_error(), "closed the connection"));
    assert_int_equal(tcp_write(ends[1], "f", 1, tcp_deadline(PATIENCE_NS)), -LH_EPEER);
    close(ends[1]);
}

/* More than a socket holds, to a peer that does not read. */
static void a_peer_that_does_not_read(void **state)
{
    (void)state;
    static char much[8 << 20];
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(tcp_write(ends[0], much, sizeof much, 0), -LH_ETIMEDOUT);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_and_ports),
        cmocka_unit_test(room_of_hosts_and_ports),
        cmocka_unit_test(descriptors_and_memory),
        cmocka_unit_test(deadlines),
        cmocka_unit_test(names_of_ipv4),
        cmocka_unit_test(names_of_ipv6),
        cmocka_unit_test(ipv4_of_an_ipv6_socket),
        cmocka_unit_test(a_socket_without_a_peer),
        cmocka_unit_test(ipv6_at_all_addresses),
        cmocka_unit_test(where_nothing_listens),
        cmocka_unit_test(bytes_come_in_parts),
        cmocka_unit_test(a_peer_that_does_not_read),
        cmocka_unit_test(addresses_that_fail_at_once),
        cmocka_unit_test(no_descriptor_left),
        cmocka_unit_test(an_address_that_does_not_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
