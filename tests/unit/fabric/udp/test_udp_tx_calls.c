/*
 * test_udp_tx_calls.c - the udp fabric and the calls of the kernel: what errors of a send mean, which
 * addresses a peer is reached at, punches through NAT, and what the sockets are told and tell.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "fabric/udp/udp_parts.h"
#include "store/store.h"
#include "support/udp_pair.h"

#define NOWHERE "192.0.2.1" /* of no host: no way leads there from the loopback interface */

static const char *const devices[] = {"udp:[::1]", "udp:127.0.0.1"};

static struct udp_endpoint *udp_of(const struct udp_side *side)
{
    return (struct udp_endpoint *)side->endpoint;
}

/* ---- errors of a send --------------------------------------------------------------------------------- */

static int send_errors[2]; /* of the next calls; 0: none */
static unsigned send_calls;

static bool send_fails(void)
{
    int error = send_errors[0];
    send_calls++;
    send_errors[0] = send_errors[1];
    send_errors[1] = 0;
    errno = error;
    return error != 0;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    return send_fails() ? -1 : syscall(SYS_sendmsg, fd, message, flags);
}

static void test_errors_that_are_losses(void **state)
{
    (void)state;
    static const int losses[] = {ECONNREFUSED, ECONNRESET,    ENETUNREACH, ENETDOWN, EHOSTUNREACH,
                                 EHOSTDOWN,    EADDRNOTAVAIL, EACCES,      EPERM,    EMSGSIZE};
    static const int others[] = {0, EAGAIN, EINTR, ENOBUFS, ENOMEM, EBADF, EINVAL, EIO, ENOTSOCK};
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
        assert_true(udp_send_error_is_loss(losses[i]));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(udp_send_error_is_loss(others[i]));
}

/* Two datagrams that would leave as one burst. */
static int send_two(const struct udp_pair *pair)
{
    static const struct fabric_datagram two[] = {{(const uint8_t *)"one.", 4, 0},
                                                 {(const uint8_t *)"two.", 4, 0}};
    send_calls = 0;
    return pair->sender.fabric->ops->control_send(pair->sender.endpoint, two, 2);
}

static void expect_received(const struct udp_pair *pair, int count)
{
    struct fabric_control_arrival out[8];
    const struct fabric_ops *ops = pair->receiver.fabric->ops;
    int got = 0, some;
    do {
        some = ops->control_poll(pair->receiver.endpoint, out + got, 8 - (uint32_t)got);
        got += some;
    } while (some > 0);
    assert_int_equal(got, count);
}

/* Full: some other time. Interrupted: at once. Lost on the way: it is gone. Not segmented: one by one from
 * then on. Too large: it was not that. Else it fails. */
static void test_what_a_send_does(void **state)
{
    (void)state;
    static const int full[] = {EAGAIN, ENOBUFS, ENOMEM};
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    udp_pair_open(&pair, devices[1], &attr);
    const struct udp_endpoint *sender = udp_of(&pair.sender);
    for (unsigned i = 0; i < 3; i++) {
        send_errors[0] = full[i];
        assert_int_equal(send_two(&pair), 0);
        assert_int_equal(pair.sender.stats.tx_backpressure, i + 1);
    }
    send_errors[0] = EINTR;
    assert_int_equal(send_two(&pair), 2);
    assert_int_equal(send_calls, 2);
    expect_received(&pair, 2);
    send_errors[0] = ENETUNREACH;
    assert_int_equal(send_two(&pair), 2);
    assert_int_equal(send_calls, 1);
    expect_received(&pair, 0);
    send_errors[0] = EBADF;
    assert_int_equal(send_two(&pair), -LH_EDEVICE);
    assert_non_null(strstr(lh_last_error(), strerror(EBADF)));
    assert_true(sender->control_gso);
    send_errors[0] = EIO;
    assert_int_equal(send_two(&pair), 2);
    assert_false(sender->control_gso);
    expect_received(&pair, 2);
    const struct fabric_datagram one = {(const uint8_t *)"one.", 4, 0};
    send_errors[0] = EMSGSIZE;
    assert_int_equal(pair.sender.fabric->ops->control_send(pair.sender.endpoint, &one, 1), 1);
    assert_true(sender->control_gso);
    send_errors[0] = EINVAL;
    assert_int_equal(pair.sender.fabric->ops->control_send(pair.sender.endpoint, &one, 1), -LH_EDEVICE);
    assert_true(sender->control_gso); /* it was one packet */
    send_errors[0] = EINVAL;
    assert_int_equal(send_two(&pair), 2);
    assert_false(sender->control_gso);
    expect_received(&pair, 2);
    assert_int_equal(pair.sender.stats.tx_backpressure, 3);
    udp_pair_close(&pair);
}

/* ---- peers -------------------------------------------------------------------------------------------- */

static int connect_to(const struct udp_pair *pair, const char *own, const char *seen)
{
    struct fabric *fabric = pair->receiver.fabric;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct lh_stats stats = {0};
    struct qp_info_endpoint info = pair->sender.info;
    struct fabric_endpoint *endpoint;
    attr.stats = &stats;
    info.translated = seen != NULL;
    assert_int_equal(inet_pton(AF_INET, own, info.address), 1);
    if (seen)
        assert_int_equal(inet_pton(AF_INET, seen, info.seen_address), 1);
    assert_int_equal(fabric->ops->endpoint_create(fabric, &attr, &endpoint), 0);
    int failed = fabric->ops->endpoint_connect(endpoint, &info);
    assert_int_equal(((struct udp_endpoint *)endpoint)->connected, failed == 0);
    if (failed == 0) {
        assert_int_equal(fabric->ops->endpoint_connect(endpoint, &info), -LH_ESTATE);
        assert_int_equal(((struct udp_endpoint *)endpoint)->peer.translated, seen != NULL);
    }
    fabric->ops->endpoint_destroy(endpoint);
    return failed;
}

/* Behind NAT a peer's own address may lead nowhere from here; then where it was seen does. Where its own is
 * reached, the other is not asked for. */
static void test_ways_to_a_peer(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    udp_pair_open(&pair, devices[1], &attr);
    assert_int_equal(connect_to(&pair, "127.0.0.1", NULL), 0);
    assert_int_equal(connect_to(&pair, NOWHERE, NULL), -LH_EADDR);
    assert_int_equal(connect_to(&pair, NOWHERE, NOWHERE), -LH_EADDR);
    assert_int_equal(connect_to(&pair, NOWHERE, "127.0.0.1"), 0);
    assert_int_equal(connect_to(&pair, "127.0.0.1", NOWHERE), 0);
    udp_pair_close(&pair);
}

/* ---- punches ------------------------------------------------------------------------------------------ */

#define PROOF 0x1234567u

static void expect_punched(struct udp_endpoint *sender, const struct udp_pair *pair, lh_time span)
{
    struct fabric *fabric = pair->sender.fabric;
    lh_time before = fabric->ops->now(fabric);
    sender->punch_at = 0;
    send_two(pair);
    assert_int_equal(sender->punch_span, span);
    assert_in_range(sender->punch_at, before + span, fabric->ops->now(fabric) + span);
}

/* They are sent beside control datagrams, ever less often, and not when they are not due. */
static void test_when_punches_leave(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    udp_pair_open(&pair, devices[1], &attr);
    struct udp_endpoint *sender = udp_of(&pair.sender);
    send_two(&pair);
    assert_int_equal(sender->punch_span, 0);
    pair.sender.fabric->ops->punch(pair.sender.endpoint, PROOF);
    expect_punched(sender, &pair, LH_NS_PER_MS);
    expect_punched(sender, &pair, 2 * LH_NS_PER_MS);
    sender->punch_at = LH_TIME_NEVER;
    send_two(&pair);
    assert_int_equal(sender->punch_span, 2 * LH_NS_PER_MS);
    sender->punch_span = 2500 * LH_NS_PER_MS - 1;
    expect_punched(sender, &pair, 5000 * LH_NS_PER_MS - 2);
    expect_punched(sender, &pair, 5000 * LH_NS_PER_MS);
    udp_pair_close(&pair);
}

/* One of each channel shows where that is seen, to whom knows the proof. */
static void test_what_a_punch_shows(void **state)
{
    (void)state;
    struct fabric_arrival arrival;
    for (unsigned device = 0; device < 2; device++) {
        struct fabric_endpoint_attr attr = udp_pair_attr();
        struct udp_pair pair;
        attr.channels = 2;
        udp_pair_open(&pair, devices[device], &attr);
        struct udp_endpoint *receiver = udp_of(&pair.receiver), *sender = udp_of(&pair.sender);
        receiver->peer.translated = true;
        receiver->peer.proof = PROOF;
        for (uint32_t i = 0; i < 2; i++)
            udp_address_set_port(&receiver->channels[i]->tx.to, 9);
        for (unsigned round = 0; round < 2; round++) {
            pair.sender.fabric->ops->punch(pair.sender.endpoint, round ? PROOF : PROOF + 1);
            sender->punch_at = 0;
            send_two(&pair);
            for (uint32_t i = 0; i < 2; i++) {
                uint16_t port = sender->channels[i]->port->shared.port;
                assert_int_equal(pair.receiver.fabric->ops->poll(pair.receiver.endpoint, i, &arrival, 1),
                                 0);
                assert_int_equal(udp_address_port(&receiver->channels[i]->tx.to), round ? port : 9);
            }
        }
        assert_int_equal(pair.receiver.stats.rx_late_packets, 2); /* of another proof: data of no receive */
        udp_pair_close(&pair);
    }
}

/* ---- sockets ------------------------------------------------------------------------------------------ */

static void test_ecn(void **state)
{
    (void)state;
    _Alignas(struct cmsghdr) uint8_t control[UDP_ECN_CONTROL_BYTES];
    for (int ipv4 = 0; ipv4 < 2; ipv4++) {
        struct cmsghdr *cmsg = (struct cmsghdr *)(void *)control;
        int value;
        memset(control, 0xA5, sizeof control);
        udp_cmsg_set_ecn(cmsg, ipv4);
        memcpy(&value, CMSG_DATA(cmsg), sizeof value);
        assert_int_equal(value, 2);
        assert_int_equal(cmsg->cmsg_len, CMSG_LEN(sizeof value));
        assert_int_equal(cmsg->cmsg_level, ipv4 ? IPPROTO_IP : IPPROTO_IPV6);
        assert_int_equal(cmsg->cmsg_type, ipv4 ? IP_TOS : IPV6_TCLASS);
        for (uint8_t tos = 0; tos < 8; tos++) {
            value = tos;
            memcpy(CMSG_DATA(cmsg), &value, sizeof value);
            assert_int_equal(udp_cmsg_is_marked(cmsg), tos % 4 == 3);
        }
        cmsg->cmsg_level = SOL_SOCKET;
        assert_false(udp_cmsg_is_marked(cmsg));
    }
}

static void test_rate(void **state)
{
    (void)state;
    union udp_address local;
    struct udp_socket made;
    unsigned long rate = 0;
    socklen_t bytes = sizeof rate;
    assert_int_equal(udp_address_parse("::1", &local), 0);
    assert_int_equal(udp_socket_open_shared(&local, 100000, &made), 0);
    udp_socket_set_rate(&made, 80000);
    assert_int_equal(getsockopt(made.fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, &bytes), 0);
    assert_int_equal(rate, 10000);
    udp_socket_set_rate(&made, UINT64_MAX);
    assert_int_equal(getsockopt(made.fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, &bytes), 0);
    assert_true(rate == ~0ul || rate == UINT32_MAX);
    udp_socket_close(&made);
    assert_int_equal(made.fd, -1);
}

/* An address of another machine. */
static void test_bind(void **state)
{
    (void)state;
    union udp_address local;
    struct udp_socket made = {.fd = 77};
    assert_int_equal(udp_address_parse("127.0.0.1", &local), 0);
    assert_int_equal(inet_pton(AF_INET, NOWHERE, &local.v4.sin_addr), 1);
    assert_int_equal(udp_socket_open_shared(&local, 100000, &made), -LH_EADDR);
    assert_int_equal(udp_socket_open_front(&local, 100000, &made), -LH_EADDR);
    assert_int_equal(udp_socket_open_direct(&local, 50000, 100000, &made), -LH_EADDR);
    assert_non_null(strstr(lh_last_error(), "cannot bind to " NOWHERE ": "));
    assert_non_null(strstr(lh_last_error(), strerror(EADDRNOTAVAIL)));
    assert_int_equal(made.fd, 77);
}

/* ---- endpoints ---------------------------------------------------------------------------------------- */

/* When what was read last had come: after it was sent, and before it was read. */
static void test_arrived(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    udp_pair_open(&pair, devices[0], &attr);
    struct fabric *fabric = pair.receiver.fabric;
    assert_int_equal(fabric->ops->arrived(pair.receiver.endpoint, FABRIC_CONTROL), 0);
    lh_time before, at = 0;
    for (unsigned tries = 0; at == 0; tries++) { /* unknown after a second, or when the clock was set */
        assert_in_range(tries, 0, 20);
        before = fabric->ops->now(fabric);
        send_two(&pair);
        expect_received(&pair, 2);
        at = fabric->ops->arrived(pair.receiver.endpoint, FABRIC_CONTROL);
    }
    assert_in_range(at, before - LH_NS_PER_MS, fabric->ops->now(fabric)); /* by another clock */
    assert_int_equal(fabric->ops->arrived(pair.receiver.endpoint, 0), 0);
    udp_pair_close(&pair);
}

static void test_warning(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    udp_pair_open(&pair, devices[0], &attr);
    struct fabric *fabric = pair.receiver.fabric;
    char *text = ((struct udp_fabric *)fabric)->warning;
    assert_ptr_equal(fabric->ops->warning(fabric), *text ? text : NULL);
    strcpy(text, *text ? "" : "small");
    assert_ptr_equal(fabric->ops->warning(fabric), *text ? text : NULL);
    udp_pair_close(&pair);
}

/* Memory for pieces of packets is taken once, and is no matter where there is none. */
static void test_pieces(void **state)
{
    (void)state;
    for (unsigned limited = 0; limited < 2; limited++) {
        struct fabric_endpoint_attr attr = udp_pair_attr();
        struct udp_pair pair;
        struct store store;
        store_init(&store, UINT64_MAX);
        attr.store = &store;
        udp_pair_open(&pair, devices[0], &attr);
        const struct fabric_ops *ops = pair.receiver.fabric->ops;
        uint64_t before = store_bytes(&store);
        if (limited)
            store.limit_bytes = before;
        assert_int_equal(ops->takes_pieces(pair.receiver.endpoint), !limited);
        uint64_t taken = store_bytes(&store);
        assert_int_equal(taken > before, !limited);
        assert_int_equal(ops->takes_pieces(pair.receiver.endpoint), !limited);
        assert_int_equal(store_bytes(&store), taken);
        udp_pair_close(&pair);
        assert_int_equal(store_bytes(&store), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors_that_are_losses),
        cmocka_unit_test(test_what_a_send_does),
        cmocka_unit_test(test_ways_to_a_peer),
        cmocka_unit_test(test_when_punches_leave),
        cmocka_unit_test(test_what_a_punch_shows),
        cmocka_unit_test(test_ecn),
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_bind),
        cmocka_unit_test(test_arrived),
        cmocka_unit_test(test_warning),
        cmocka_unit_test(test_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
