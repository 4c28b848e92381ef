/*
 * test_listener_loopback_only.c - lh_security.loopback_only at both ends of connections, probes and groups:
 * who is on this host, who is not, and what each side says. Peers "on other hosts" are other addresses of
 * this network, which is the test's own; skipped where there is none.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
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

#include <longhaul/connection.h>
#include <longhaul/error.h>
#include <longhaul/probe.h>

#include "launch/group_frames.h"
#include "launch/group_root.h"
#include "launch/handshake.h"
#include "launch/tcp.h"
#include "probe/probe_messages.h"
#include "support/own_network.h"

#define PATIENCE_NS (60 * LH_NS_PER_S)
/* What a socket bound to THERE reaches at HERE is of another address, and not of loopback. */
#define HERE   "10.5.0.2"
#define THERE  "10.5.0.1"
#define ROUTED "10.5.0.3" /* connections to it have the source THERE */

static bool has_network;

static int set_up(void **state)
{
    (void)state;
    has_network = !system("ip addr add " HERE "/32 dev lo && ip addr add " THERE "/32 dev lo && "
                          "ip addr add " ROUTED "/32 dev lo && "
                          "ip route replace local " ROUTED " dev lo table local src " THERE);
    return 0;
}

static void need_network(void)
{
    if (has_network)
        return;
    print_message("no network of its own, or no ip(8)\n");
    skip();
}

/* A connected socket from that address. */
static int connected(const char *from, const char *to, uint16_t port)
{
    struct sockaddr_in own = {.sin_family = AF_INET},
                       peer = {.sin_family = AF_INET, .sin_port = htons(port)};
    assert_int_equal(inet_pton(AF_INET, from, &own.sin_addr), 1);
    assert_int_equal(inet_pton(AF_INET, to, &peer.sin_addr), 1);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof own), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&peer, sizeof peer), 0);
    return fd;
}

/* All that the peer sends until it closes. */
static size_t read_all(int fd, char *out, size_t size)
{
    size_t have = 0;
    while (have < size - 1 && !tcp_wait(fd, false, tcp_deadline(PATIENCE_NS))) { /* until it closes */
        ssize_t got = recv(fd, out + have, size - 1 - have, 0);
        if (got <= 0)
            break;
        have += (size_t)got;
    }
    out[have] = '\0';
    close(fd);
    return have;
}

static bool accepted_is_local(const char *from, const char *to)
{
    int listener;
    uint16_t port;
    assert_int_equal(tcp_listen(":0", &listener, &port), 0); /* IPv4 arrives as mapped IPv6 */
    int client = connected(from, to, port);
    assert_int_equal(tcp_wait(listener, false, tcp_deadline(PATIENCE_NS)), 0);
    int server = accept(listener, NULL, NULL);
    bool local = tcp_peer_is_local(server);
    assert_int_equal(tcp_peer_is_local(client), local);
    close(client);
    close(server);
    close(listener);
    return local;
}

static void who_is_on_this_host(void **state)
{
    (void)state;
    assert_true(accepted_is_local("127.0.0.1", "127.0.0.1"));
    assert_true(accepted_is_local("127.0.0.2", "127.3.0.1"));
    assert_false(tcp_peer_is_local(-1));
    need_network();
    assert_true(accepted_is_local(HERE, HERE));
    assert_false(accepted_is_local(THERE, HERE));
    assert_false(accepted_is_local(HERE, THERE));
}

/* One that has left is not on another host. */
static void who_has_left(void **state)
{
    int listener;
    uint16_t port;
    (void)state;
    assert_int_equal(tcp_listen("127.0.0.1:0", &listener, &port), 0);
    int client = connected("127.0.0.1", "127.0.0.1", port);
    int server = accept(listener, NULL, NULL);
    assert_int_equal(tcp_require_local(client, "elsewhere"), 0);
    const struct linger reset = {.l_onoff = 1};
    assert_int_equal(setsockopt(server, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    close(server);
    assert_int_equal(tcp_wait(client, false, tcp_deadline(PATIENCE_NS)), 0);
    assert_int_equal(tcp_require_local(client, "elsewhere"), -LH_EPEER);
    close(client);
    if (has_network) {
        close(listener);
        assert_int_equal(tcp_listen(HERE ":0", &listener, &port), 0);
        client = connected(THERE, HERE, port);
        assert_int_equal(tcp_require_local(client, "elsewhere"), -LH_EHANDSHAKE);
        assert_string_equal(lh_last_error(), "elsewhere");
        close(client);
    }
    close(listener);
}

/* ---- connections ------------------------------------------------------------------------------------- */

static char notices[2][512];
static int notice_count;

static bool on_notice(void *context, enum lh_notice notice, const char *text)
{
    (void)context;
    assert_int_equal(notice, LH_NOTICE_REFUSED);
    snprintf(notices[notice_count++ % 2], sizeof notices[0], "%s", text);
    return false;
}

static void attr_of(struct lh_attr *attr, struct lh_security *security, bool loopback_only)
{
    lh_attr_init(attr);
    lh_security_init(security);
    security->encryption = LH_ENCRYPTION_OFF;
    security->loopback_only = loopback_only;
    attr->security = security;
    attr->on_notice = on_notice;
    notice_count = 0;
}

static void *accept_one(void *argument)
{
    struct lh_connection *connection;
    assert_int_equal(lh_accept(argument, PATIENCE_NS, &connection), 0);
    return connection;
}

static char failure[512]; /* of meet() */

/* Connects there, to a listener of its own. */
static int meet(const char *host, bool accepting_only, bool connecting_only)
{
    char where[64];
    pthread_t thread;
    void *accepted;
    struct lh_attr accepting, connecting;
    struct lh_security first, second;
    struct lh_listener *listener;
    struct lh_connection *connection;
    attr_of(&accepting, &first, accepting_only);
    attr_of(&connecting, &second, connecting_only);
    assert_int_equal(lh_listen(":0", &accepting, &listener), 0);
    snprintf(where, sizeof where, "%s:%u", host, lh_listener_port(listener));
    assert_int_equal(pthread_create(&thread, NULL, accept_one, listener), 0);
    int error = lh_connect(where, &connecting, PATIENCE_NS, &connection);
    if (error) { /* let the thread go */
        struct lh_connection *other;
        snprintf(failure, sizeof failure, "%s", lh_last_error());
        snprintf(where, sizeof where, "127.0.0.1:%u", lh_listener_port(listener));
        assert_int_equal(lh_connect(where, &connecting, PATIENCE_NS, &other), 0);
        lh_close(other);
    } else {
        lh_close(connection);
    }
    pthread_join(thread, &accepted);
    lh_close(accepted);
    lh_listener_close(listener);
    return error;
}

static void peers_on_this_host(void **state)
{
    (void)state;
    assert_int_equal(meet("127.0.0.1", true, true), 0);
    assert_int_equal(meet("127.0.0.1", true, false), 0);
    assert_int_equal(notice_count, 0);
    need_network();
    assert_int_equal(meet(HERE, true, true), 0);
}

static void peers_on_other_hosts(void **state)
{
    (void)state;
    need_network();
    assert_int_equal(meet(ROUTED, false, false), 0);
    assert_int_equal(meet(ROUTED, false, true), -LH_EHANDSHAKE); /* this side alone */
    assert_non_null(strstr(failure, HANDSHAKE_LOOPBACK_ONLY));
    assert_int_equal(notice_count, 0);
    for (int connecting_only = 0; connecting_only < 2; connecting_only++) {
        assert_int_equal(meet(ROUTED, true, connecting_only), -LH_EHANDSHAKE);
        assert_non_null(strstr(failure, HANDSHAKE_LOOPBACK_ONLY));
        assert_int_equal(notice_count, 1); /* the listener has ended */
        assert_non_null(strstr(notices[0], HANDSHAKE_LOOPBACK_ONLY));
        assert_non_null(strstr(notices[0], THERE));
    }
}

/* They are refused before they say anything, in a frame that each release understands, and reported once a
 * minute. */
static void silent_peers(void **state)
{
    struct lh_attr attr;
    struct lh_security security;
    struct lh_listener *listener;
    char frame[HANDSHAKE_HEADER_BYTES + HANDSHAKE_REASON_MAX + 1];
    (void)state;
    need_network();
    attr_of(&attr, &security, true);
    assert_int_equal(lh_listen(":0", &attr, &listener), 0);
    for (int i = 0; i < 40; i++) { /* more than a listener has places */
        struct handshake_header header;
        size_t bytes = read_all(connected(THERE, HERE, lh_listener_port(listener)), frame, sizeof frame);
        assert_true(bytes > HANDSHAKE_HEADER_BYTES);
        assert_int_equal(handshake_header_decode((const uint8_t *)frame, &header), 0);
        assert_int_equal(header.type, HANDSHAKE_REFUSE);
        assert_int_equal(header.version, HANDSHAKE_VERSION_MIN);
        assert_string_equal(frame + HANDSHAKE_HEADER_BYTES, HANDSHAKE_LOOPBACK_ONLY);
    }
    lh_listener_close(listener);
    assert_int_equal(notice_count, 1);
}

/* ---- probes and groups ------------------------------------------------------------------------------- */

static void probes(void **state)
{
    char where[64], answer[PROBE_MESSAGE_BYTES_MAX + 1];
    struct lh_probe_server *server;
    struct lh_probe_attr attr;
    struct lh_probe_result result;
    (void)state;
    need_network();
    assert_int_equal(lh_probe_listen(":0", &server), 0);
    snprintf(where, sizeof where, ROUTED ":%u", lh_probe_server_port(server));
    lh_probe_attr_init(&attr);
    attr.loopback_only = true;
    assert_int_equal(lh_probe_run(where, &attr, PATIENCE_NS, &result), -LH_EHANDSHAKE);
    assert_non_null(strstr(lh_last_error(), PROBE_LOOPBACK_ONLY));
    assert_int_equal(lh_probe_serve(server, PATIENCE_NS), -LH_EPEER); /* it has greeted nobody */

    struct probe_message hello = {.type = PROBE_HELLO, .text = "none"};
    uint8_t bytes[PROBE_MESSAGE_BYTES_MAX];
    hello.numbers[PROBE_HELLO_TIME_NS] = LH_PROBE_TIME_MIN;
    size_t length = probe_message_encode(&hello, bytes);
    lh_probe_server_loopback_only(server);
    for (int greets = 0; greets < 2; greets++) {
        int fd = connected(THERE, HERE, lh_probe_server_port(server));
        if (greets)
            assert_int_equal(send(fd, bytes, length, 0), (ssize_t)length);
        else
            shutdown(fd, SHUT_WR);
        assert_int_equal(lh_probe_serve(server, PATIENCE_NS), -LH_EHANDSHAKE);
        assert_non_null(strstr(lh_last_error(), PROBE_LOOPBACK_ONLY));
        assert_non_null(strstr(lh_probe_server_peer(server), THERE));
        assert_true(read_all(fd, answer, sizeof answer) > 0);
    }
    lh_probe_server_close(server);
}

/* Those of other hosts take no place of a probe server, however many there are and whatever they say. */
static void probes_of_many(void **state)
{
    char answer[PROBE_MESSAGE_BYTES_MAX + 1];
    struct lh_probe_server *server;
    struct probe_message hello = {.type = PROBE_HELLO, .text = "none"}, welcome;
    uint8_t bytes[PROBE_MESSAGE_BYTES_MAX];
    int strangers[40];
    (void)state;
    need_network();
    hello.numbers[PROBE_HELLO_TIME_NS] = LH_PROBE_TIME_MIN;
    size_t length = probe_message_encode(&hello, bytes);
    assert_int_equal(lh_probe_listen(":0", &server), 0);
    int early = connected(THERE, HERE, lh_probe_server_port(server));
    assert_int_equal(lh_probe_serve(server, LH_NS_PER_MS), -LH_ETIMEDOUT); /* it has a place */
    lh_probe_server_loopback_only(server);
    assert_true(read_all(early, answer, sizeof answer) > 0);
    int client = connected("127.0.0.1", "127.0.0.1", lh_probe_server_port(server));
    for (int i = 0; i < 40; i++)
        strangers[i] = connected(THERE, HERE, lh_probe_server_port(server));
    for (int i = 0; i < 40; i++) {
        assert_int_equal(lh_probe_serve(server, PATIENCE_NS), -LH_EHANDSHAKE);
        assert_true(read_all(strangers[i], answer, sizeof answer) > 0);
        assert_non_null(strstr(lh_probe_server_peer(server), THERE));
    }
    assert_int_equal(send(client, bytes, length, 0), (ssize_t)length);
    shutdown(client, SHUT_WR);
    lh_probe_serve(server, PATIENCE_NS);
    assert_non_null(strstr(lh_probe_server_peer(server), "127.0.0.1"));
    size_t whole, got = read_all(client, answer, sizeof answer);
    assert_true(got > PROBE_MESSAGE_HEADER_BYTES);
    assert_int_equal(probe_message_header((const uint8_t *)answer, &whole), 0);
    assert_true(got >= whole);
    assert_int_equal(probe_message_decode((const uint8_t *)answer, whole, &welcome), 0);
    assert_int_equal(welcome.type, PROBE_WELCOME);
    lh_probe_server_close(server);
}

/* Rank 0 of a group of two, on a port that was free. */
static struct group_root *root_here(uint16_t *port)
{
    struct group_root *root;
    int free_port;
    char where[64];
    assert_int_equal(tcp_listen(HERE ":0", &free_port, port), 0);
    close(free_port);
    snprintf(where, sizeof where, HERE ":%u", *port);
    assert_int_equal(group_root_open(where, 2, "", "", NULL, &root), 0);
    group_root_serve_loopback_only(root);
    return root;
}

/* Rank 0 refuses one of another host, and reports it with the rank that it misses. */
static void groups(void **state)
{
    char reason[512];
    uint16_t port;
    (void)state;
    need_network();
    struct group_root *root = root_here(&port);
    int fd = connected(THERE, HERE, port);
    assert_int_equal(group_root_join(root, LH_NS_PER_S / 2), -LH_ETIMEDOUT);
    assert_non_null(strstr(lh_last_error(), GROUP_LOOPBACK_ONLY));
    assert_non_null(strstr(lh_last_error(), THERE));
    group_root_close(root);
    assert_true(read_all(fd, reason, sizeof reason) > GROUP_FRAME_HEADER_BYTES);
    assert_string_equal(reason + GROUP_FRAME_HEADER_BYTES, GROUP_LOOPBACK_ONLY);
}

/* While clients of this host have all places, none has to leave for one of another host. */
static void groups_of_many(void **state)
{
    char reason[512];
    uint16_t port;
    int clients[GROUP_CLIENTS_MAX];
    (void)state;
    need_network();
    struct group_root *root = root_here(&port);
    for (uint32_t i = 0; i < GROUP_CLIENTS_MAX; i++)
        clients[i] = connected(HERE, HERE, port);
    int stranger = connected(THERE, HERE, port);
    assert_int_equal(group_root_join(root, LH_NS_PER_S / 2), -LH_ETIMEDOUT);
    for (uint32_t i = 0; i < GROUP_CLIENTS_MAX; i++) {
        assert_int_equal(recv(clients[i], reason, sizeof reason, MSG_DONTWAIT), -1);
        assert_int_equal(errno, EAGAIN);
        close(clients[i]);
    }
    group_root_close(root);
    assert_true(read_all(stranger, reason, sizeof reason) > GROUP_FRAME_HEADER_BYTES);
    assert_string_equal(reason + GROUP_FRAME_HEADER_BYTES, GROUP_LOOPBACK_ONLY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_on_this_host), cmocka_unit_test(who_has_left),
        cmocka_unit_test(peers_on_this_host),  cmocka_unit_test(peers_on_other_hosts),
        cmocka_unit_test(silent_peers),        cmocka_unit_test(probes),
        cmocka_unit_test(probes_of_many),      cmocka_unit_test(groups),
        cmocka_unit_test(groups_of_many),
    };
    own_network();
    return cmocka_run_group_tests(tests, set_up, NULL);
}
