/*
 * test_xp_udp.c - XP objects over sockets of the loopback interface: messages of many sizes, what is counted,
 * which packets are looked at, and whose place a peer gets.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "unit/xp/udp/xp_udp_pair.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>

#include <longhaul/error.h>

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define BYTES (40u * 1024)
#define GUARD 0xA5

static const char *const hosts[] = {"127.0.0.1", "::1"};

static struct lh_xp *xps[2];
static struct xp_udp_end ends[2];
static uint8_t source[BYTES], target[BYTES + 1];

static void start(const char *host, uint32_t mtu_bytes)
{
    for (unsigned i = 0; i < 2; i++) {
        struct lh_xp_attr attr = xp_udp_attr(host);
        attr.mtu_bytes = mtu_bytes;
        xps[i] = xp_udp_create(&attr);
    }
    xp_udp_join(xps[0], xps[1], ends);
    for (uint32_t i = 0; i < BYTES; i++)
        source[i] = (uint8_t)(i * 7 + i / 251);
    memset(target, GUARD, sizeof target);
}

static void stop(void)
{
    lh_xp_destroy(xps[0]);
    lh_xp_destroy(xps[1]);
}

static void expect_counters(const struct lh_xp *xp, struct lh_xp_counters wanted)
{
    struct lh_xp_counters counters = xp_udp_counters(xp);
    assert_memory_equal(&counters, &wanted, sizeof counters);
}

/* A datagram that is no packet: once it is counted, all that came before it was looked at. */
static void expect_refused(struct lh_xp *xp, struct lh_xp *by, uint64_t bad_packets)
{
    while (xp_udp_counters(xp).bad_packets < bad_packets)
        xp_udp_progress(xp, by);
    assert_int_equal(xp_udp_counters(xp).bad_packets, bad_packets);
}

/* ---- messages ----------------------------------------------------------------------------------------- */

static void send_message(uint32_t bytes)
{
    memset(target, GUARD, sizeof target);
    xp_udp_post(&ends[1], (struct lh_xp_request){.verb = LH_XP_RECV, .buffer = target, .bytes = BYTES});
    xp_udp_post(&ends[0], (struct lh_xp_request){.verb = LH_XP_SEND, .buffer = source, .bytes = bytes});
    struct lh_xp_completion sent = xp_udp_await(xps[0], xps[1]), came = xp_udp_await(xps[1], xps[0]);
    assert_int_equal(sent.status, LH_XP_COMPLETE);
    assert_int_equal(sent.bytes, bytes);
    assert_int_equal(came.status, LH_XP_COMPLETE);
    assert_int_equal(came.bytes, bytes);
    assert_int_equal(came.length, bytes);
    assert_memory_equal(target, source, bytes);
    assert_int_equal(target[bytes], GUARD);
}

/* Those of 1 to 3 bytes need a pad, an empty one has no payload, the long ones several packets. */
static void test_sizes(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {0, 1, 2, 3, 4, 63, 64, 65, 1023, 4096, 4097, BYTES};
    static const uint32_t mtus[] = {64, 1024, 4096};
    for (unsigned test = 0; test < 6; test++) {
        uint32_t mtu = mtus[test / 2], packets = 0;
        start(hosts[test % 2], mtu);
        for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            if (sizes[i] > 64 * mtu)
                continue; /* more at once than a small socket buffer holds */
            send_message(sizes[i]);
            packets += sizes[i] ? (sizes[i] + mtu - 1) / mtu : 1;
        }
        expect_counters(xps[0], (struct lh_xp_counters){.tx_packets = packets});
        expect_counters(xps[1], (struct lh_xp_counters){.rx_packets = packets});
        stop();
    }
}

/* A pad is zero on the wire, also where the iCRC of the packet before stood. */
static void test_pad(void **state)
{
    (void)state;
    static const uint8_t zeros[3];
    static const uint32_t sizes[] = {8, 5, 8, 6, 8, 7};
    start(hosts[0], 4096);
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint8_t packet[XP_OVERHEAD + 9];
        struct lh_xp_completion sent;
        xp_udp_post(&ends[0],
                    (struct lh_xp_request){.verb = LH_XP_SEND, .buffer = source, .bytes = sizes[i]});
        do
            assert_in_range(lh_xp_progress(xps[0]), 0, 1);
        while (lh_xp_poll(xps[0], &sent, 1) == 0);
        assert_int_equal(recv(lh_xp_fd(xps[1]), packet, sizeof packet, MSG_DONTWAIT), XP_OVERHEAD + 8);
        assert_memory_equal(packet + XP_HEADER_BYTES, source, sizes[i]);
        assert_memory_equal(packet + XP_HEADER_BYTES + sizes[i], zeros, 8 - sizes[i]);
    }
    stop();
}

static void test_one_sided(void **state)
{
    (void)state;
    uint32_t writable, readable;
    start(hosts[1], 4096);
    assert_int_equal(lh_xp_expose(xps[1], target, BYTES, LH_XP_REMOTE_WRITE, &writable), 0);
    assert_int_equal(lh_xp_expose(xps[1], source, BYTES, LH_XP_REMOTE_READ, &readable), 0);
    xp_udp_post(&ends[1], (struct lh_xp_request){.verb = LH_XP_RECV});
    xp_udp_post(&ends[0],
                (struct lh_xp_request){
                    .verb = LH_XP_WRITE, .buffer = source, .bytes = 5000, .remote = 100, .key = writable});
    xp_udp_post(&ends[0], (struct lh_xp_request){.verb = LH_XP_WRITE_IMM,
                                                 .buffer = source + 9,
                                                 .bytes = 10,
                                                 .key = writable,
                                                 .immediate = 77,
                                                 .user = 4});
    assert_int_equal(xp_udp_await(xps[0], xps[1]).status, LH_XP_COMPLETE);
    assert_int_equal(xp_udp_await(xps[0], xps[1]).user, 4);
    struct lh_xp_completion told = xp_udp_await(xps[1], xps[0]);
    assert_true(told.has_immediate && told.immediate == 77 && told.bytes == 10);
    assert_memory_equal(target, source + 9, 10);
    assert_int_equal(target[10], GUARD);
    assert_memory_equal(target + 100, source, 5000);
    xp_udp_post(&ends[0],
                (struct lh_xp_request){
                    .verb = LH_XP_READ, .buffer = target, .bytes = 9001, .remote = 7, .key = readable});
    struct lh_xp_completion read = xp_udp_await(xps[0], xps[1]);
    assert_int_equal(read.status, LH_XP_COMPLETE);
    assert_int_equal(read.bytes, 9001);
    assert_memory_equal(target, source + 7, 9001);
    expect_counters(xps[0], (struct lh_xp_counters){.tx_packets = 4, .rx_packets = 3});
    expect_counters(xps[1], (struct lh_xp_counters){.tx_packets = 3, .rx_packets = 4});
    stop();
}

/* A deadline, and how long to sleep for it. */
static void test_time(void **state)
{
    (void)state;
    start(hosts[0], 4096);
    assert_true(lh_xp_wait_ns(xps[1]) == LH_TIME_NEVER);
    xp_udp_post(&ends[1], (struct lh_xp_request){.verb = LH_XP_RECV, .timeout_ns = 60 * LH_NS_PER_S});
    assert_in_range(lh_xp_wait_ns(xps[1]), 1, 61 * LH_NS_PER_S);
    assert_int_equal(lh_xp_close(xps[1], ends[1].qpn), 0);
    assert_int_equal(xp_udp_await(xps[1], xps[0]).status, LH_XP_FLUSHED);
    assert_true(lh_xp_wait_ns(xps[1]) == LH_TIME_NEVER);
    xp_udp_post(&ends[0], (struct lh_xp_request){.verb = LH_XP_RECV, .timeout_ns = LH_NS_PER_US});
    struct lh_xp_completion late = xp_udp_await(xps[0], xps[1]);
    assert_int_equal(late.status, LH_XP_TIMED_OUT);
    expect_counters(xps[0], (struct lh_xp_counters){.timed_out = 1});
    xp_udp_post(&ends[0], (struct lh_xp_request){.verb = LH_XP_SEND, .timeout_ns = 60 * LH_NS_PER_S});
    assert_true(lh_xp_wait_ns(xps[0]) == 0); /* there is something to send */
    stop();
}

/* A receive finds nothing: that is no error, and no work. */
static void test_nothing_there(void **state)
{
    (void)state;
    start(hosts[0], 4096);
    assert_int_equal(lh_xp_progress(xps[0]), 0);
    xp_udp_throw(xps[1], xps[0], "no packet", 9);
    assert_int_equal(lh_xp_progress(xps[0]), 1);
    assert_int_equal(lh_xp_progress(xps[0]), 0);
    expect_counters(xps[0], (struct lh_xp_counters){.bad_packets = 1});
    stop();
}

/* Nobody listens there any more: what is sent is lost, as on the way, and all else goes on. */
static void test_a_port_that_refuses(void **state)
{
    (void)state;
    struct lh_xp_attr attr = xp_udp_attr(hosts[0]);
    struct xp_udp_end gone[2];
    start(hosts[0], 4096);
    struct lh_xp *third = xp_udp_create(&attr);
    xp_udp_join(xps[0], third, gone);
    lh_xp_destroy(third);
    for (unsigned i = 0; i < 3; i++) {
        xp_udp_post(&gone[0], (struct lh_xp_request){.verb = LH_XP_SEND, .buffer = source, .bytes = 100});
        assert_int_equal(xp_udp_await(xps[0], xps[1]).status, LH_XP_COMPLETE);
    }
    send_message(5000);
    expect_counters(xps[0], (struct lh_xp_counters){.tx_packets = 5});
    expect_counters(xps[1], (struct lh_xp_counters){.rx_packets = 2});
    stop();
}

/* ---- marks -------------------------------------------------------------------------------------------- */

static int option(const struct lh_xp *xp, int level, int name)
{
    int value = -1;
    socklen_t bytes = sizeof value;
    assert_int_equal(getsockopt(lh_xp_fd(xp), level, name, &value, &bytes), 0);
    return value;
}

/* Marked messages, until the sender was told: a mark shortly after another one is only counted, and so may be
 * the first, since the time of the last notification wraps. Returns how many. */
static uint32_t send_until_told(void)
{
    uint32_t sent = 0;
    while (xp_udp_counters(xps[0]).notifications == 0) {
        assert_in_range(++sent, 1, 1000);
        send_message(100);
        while (lh_xp_progress(xps[1]))
            ;
        assert_in_range(lh_xp_progress(xps[0]), 0, 1);
    }
    return sent;
}

/* Packets leave ECN-capable; one with congestion experienced is counted, and its sender gets to know. */
static void test_marks(void **state)
{
    (void)state;
    int congested = 3, gro;
    socklen_t bytes = sizeof gro;
    for (unsigned host = 0; host < 2; host++) {
        int level = host ? IPPROTO_IPV6 : IPPROTO_IP, name = host ? IPV6_TCLASS : IP_TOS;
        start(hosts[host], 4096);
        assert_int_equal(option(xps[0], level, name), 2);
        if (getsockopt(lh_xp_fd(xps[0]), IPPROTO_UDP, UDP_GRO, &gro, &bytes) == 0)
            assert_int_equal(gro, 0); /* each packet by itself */
        send_message(100);
        expect_counters(xps[1], (struct lh_xp_counters){.rx_packets = 1});
        assert_int_equal(setsockopt(lh_xp_fd(xps[0]), level, name, &congested, sizeof congested), 0);
        uint32_t marked = send_until_told();
        expect_counters(
            xps[0], (struct lh_xp_counters){.tx_packets = 1 + marked, .rx_packets = 1, .notifications = 1});
        expect_counters(
            xps[1], (struct lh_xp_counters){.tx_packets = 1, .rx_packets = 1 + marked, .marked = marked});
        stop();
    }
}

/* ---- packets that are not looked at -------------------------------------------------------------------- */

/* As the first end's host would send it to the other; returns its bytes. */
static uint32_t forge(const struct xp_packet *packet, uint8_t *out)
{
    uint32_t bytes = XP_OVERHEAD + packet->payload_bytes;
    struct icrc_flow flow = {.ipv4 = udp_address_is_ipv4(&xps[0]->local),
                             .source_port = udp_address_port(&xps[0]->local),
                             .destination_port = udp_address_port(&xps[1]->local)};
    udp_address_bytes(&xps[0]->local, flow.source);
    udp_address_bytes(&xps[1]->local, flow.destination);
    xp_encode_header(packet, out);
    memcpy(out + XP_HEADER_BYTES, packet->payload, packet->payload_bytes);
    uint32_t crc = icrc_begin(&flow, bytes, 0, true);
    crc = icrc_add_header(crc, out, XP_HEADER_BYTES);
    icrc_store(icrc_add(crc, packet->payload, packet->payload_bytes), out + bytes - ROCE_ICRC_BYTES);
    return bytes;
}

static void test_forged(void **state)
{
    (void)state;
    uint8_t packet[XP_PACKET_BYTES + 1] = {0};
    for (unsigned host = 0; host < 2; host++) {
        start(hosts[host], 4096);
        struct xp_packet whole = {.opcode = XP_SEND,
                                  .last = true,
                                  .dest_qpn = ends[1].qpn,
                                  .wqe_seq = ends[0].seq,
                                  .length = 4096,
                                  .payload = source,
                                  .payload_bytes = 4096};
        uint32_t bytes = forge(&whole, packet);
        assert_int_equal(bytes, XP_PACKET_BYTES);
        xp_udp_post(&ends[1], (struct lh_xp_request){.verb = LH_XP_RECV, .buffer = target, .bytes = BYTES});
        xp_udp_throw(xps[0], xps[1], packet, bytes + 1); /* right, but for a byte that does not fit */
        expect_refused(xps[1], xps[0], 1);
        packet[XP_HEADER_BYTES + 1000] ^= 1;
        xp_udp_throw(xps[0], xps[1], packet, bytes); /* damaged */
        expect_refused(xps[1], xps[0], 2);
        packet[XP_HEADER_BYTES + 1000] ^= 1;
        xp_udp_throw(xps[0], xps[1], packet, bytes - 1); /* cut short */
        expect_refused(xps[1], xps[0], 3);
        assert_int_equal(target[0], GUARD);
        expect_counters(xps[1], (struct lh_xp_counters){.bad_packets = 3});
        xp_udp_throw(xps[0], xps[1], packet, bytes);
        assert_int_equal(xp_udp_await(xps[1], xps[0]).bytes, 4096);
        assert_memory_equal(target, source, 4096);
        expect_counters(xps[1], (struct lh_xp_counters){.bad_packets = 3, .rx_packets = 1});
        stop();
    }
}

/* ---- peers -------------------------------------------------------------------------------------------- */

#define OTHERS 6u

static struct lh_xp *others[OTHERS];
static struct xp_udp_end here[OTHERS], there[OTHERS];

/* An object with room for some peers, and others of which each is connected to it. */
static struct lh_xp *gather(uint32_t room)
{
    struct lh_xp_attr attr = xp_udp_attr(hosts[0]);
    attr.peers = room;
    struct lh_xp *xp = xp_udp_create(&attr);
    for (unsigned i = 0; i < OTHERS; i++) {
        others[i] = xp_udp_create(&attr);
        here[i] = xp_udp_open(xp);
        there[i] = xp_udp_open(others[i]);
        assert_int_equal(xp_udp_connect(&there[i], &here[i]), 0);
    }
    return xp;
}

static void scatter(struct lh_xp *xp)
{
    lh_xp_destroy(xp);
    for (unsigned i = 0; i < OTHERS; i++)
        lh_xp_destroy(others[i]);
}

/* A message of one of the others either comes to the queue pair that is connected to it, or is no packet. */
static void expect_heard(struct lh_xp *xp, unsigned other, bool heard)
{
    struct lh_xp_counters before = xp_udp_counters(xp), after;
    xp_udp_post(&there[other], (struct lh_xp_request){.verb = LH_XP_SEND, .buffer = source, .bytes = 10});
    assert_int_equal(xp_udp_await(others[other], others[other]).status, LH_XP_COMPLETE);
    do {
        xp_udp_progress(xp, others[other]);
        after = xp_udp_counters(xp);
    } while (after.rx_packets + after.bad_packets == before.rx_packets + before.bad_packets);
    assert_int_equal(after.rx_packets - before.rx_packets, heard);
    assert_int_equal(after.no_receive - before.no_receive, heard);
    assert_int_equal(after.bad_packets - before.bad_packets, !heard);
}

/* A place is its peer's as long as a queue pair is connected to it; then another peer gets it, and the rest
 * stay where they are. */
static void test_places(void **state)
{
    (void)state;
    struct lh_xp *xp = gather(3);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(xp_udp_connect(&here[i], &there[i]), 0);
    assert_int_equal(xp_udp_connect(&here[3], &there[3]), -LH_EAGAIN);
    for (unsigned i = 0; i < OTHERS; i++)
        expect_heard(xp, i, i < 3);
    assert_int_equal(lh_xp_close(xp, here[1].qpn), 0);
    assert_int_equal(xp_udp_connect(&here[3], &there[3]), 0);
    for (unsigned i = 0; i < OTHERS; i++)
        expect_heard(xp, i, i == 0 || i == 2 || i == 3);
    assert_int_equal(xp_udp_connect(&here[4], &there[4]), -LH_EAGAIN);
    assert_int_equal(xp_udp_connect(&here[5], &there[5]), -LH_EAGAIN);
    expect_heard(xp, 0, true);
    scatter(xp);
}

/* Several queue pairs of a peer: the last that closes leaves its place. A call that fails takes none. */
static void test_users_of_a_place(void **state)
{
    (void)state;
    struct lh_xp *xp = gather(1);
    struct xp_udp_end more = xp_udp_open(xp);
    assert_int_equal(xp_udp_connect(&here[0], &there[0]), 0);
    assert_int_equal(xp_udp_connect(&more, &there[0]), 0);
    assert_int_equal(xp_udp_connect(&more, &there[0]), -LH_ESTATE);
    assert_int_equal(xp_udp_connect(&here[1], &there[1]), -LH_EAGAIN);
    assert_int_equal(lh_xp_close(xp, here[0].qpn), 0);
    assert_int_equal(lh_xp_close(xp, here[0].qpn), -LH_EINVAL);
    assert_int_equal(xp_udp_connect(&here[1], &there[1]), -LH_EAGAIN);
    assert_int_equal(lh_xp_close(xp, here[1].qpn), 0); /* it was not connected */
    assert_int_equal(xp_udp_connect(&here[2], &there[2]), -LH_EAGAIN);
    assert_int_equal(lh_xp_close(xp, more.qpn), 0);
    assert_int_equal(xp_udp_connect(&here[2], &there[2]), 0);
    assert_int_equal(xp_udp_connect(&here[3], &there[3]), -LH_EAGAIN);
    expect_heard(xp, 2, true);
    expect_heard(xp, 0, false);
    scatter(xp);
}

/* The last queue pair that there can be leaves its peer's place, too, and nothing stays of those who had it:
 * there are more of them than the table has buckets. */
static void test_the_last_queue_pair(void **state)
{
    (void)state;
    struct lh_xp_attr attr = xp_udp_attr(hosts[0]);
    attr.qps = attr.peers = 1;
    struct lh_xp *xp = xp_udp_create(&attr);
    for (unsigned i = 0; i < 20; i++) {
        char address[LH_XP_ADDRESS_MAX];
        struct xp_udp_end only = xp_udp_open(xp);
        snprintf(address, sizeof address, "127.0.0.1:%u", 1000 + i);
        assert_int_equal(only.qpn, 1);
        assert_int_equal(lh_xp_connect(xp, only.qpn, address, 1, 0), 0);
        assert_int_equal(lh_xp_close(xp, only.qpn), 0);
    }
    lh_xp_destroy(xp);
}

/* As many as there is room for, all of the same address or port, and one who is none of them. */
static void test_all_places_taken(void **state)
{
    (void)state;
    struct lh_xp_attr attr = xp_udp_attr(hosts[0]);
    attr.qps = attr.peers = 256;
    struct lh_xp *xp = xp_udp_create(&attr);
    attr.qps = 1;
    struct lh_xp *stranger = xp_udp_create(&attr);
    char address[LH_XP_ADDRESS_MAX];
    for (unsigned i = 0; i < 256; i++) {
        struct xp_udp_end end = xp_udp_open(xp);
        snprintf(address, sizeof address, "127.0.0.%u:%u", i % 16 + 1, 1000 + i / 16);
        assert_int_equal(lh_xp_connect(xp, end.qpn, address, 1, 0), 0);
        assert_int_equal(xp->nic.memory.host[end.qpn - 1].peer, i);
    }
    xp_udp_throw(stranger, xp, "none of them", 12);
    expect_refused(xp, stranger, 1);
    lh_xp_destroy(xp);
    lh_xp_destroy(stranger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_pad),
        cmocka_unit_test(test_one_sided),
        cmocka_unit_test(test_time),
        cmocka_unit_test(test_nothing_there),
        cmocka_unit_test(test_a_port_that_refuses),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_forged),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_users_of_a_place),
        cmocka_unit_test(test_the_last_queue_pair),
        cmocka_unit_test(test_all_places_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
