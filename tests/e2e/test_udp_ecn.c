/*
 * Congestion marks over the udp fabric: read from the packets of a peer, answered with notifications where
 * the peer is RoCE hardware, and such notifications received. That marks leave as they should is seen in
 * test_udp_wire.
 *
 * A queue that marks is played by the sender's own socket: it sets "congestion experienced" itself.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/udp/udp_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fabric/udp/udp_parts.h"
#include "support/own_network.h"
#include "support/udp_pair.h"

#define NOT_ECT 0
#define ECT_1   1
#define ECT_0   2
#define CE      3

static const char *const devices[] = {"udp:[::1]", "udp:127.0.0.1"};

static struct udp_channel *sender_channel(const struct udp_pair *pair, uint32_t channel)
{
    return ((struct udp_endpoint *)pair->sender.endpoint)->channels[channel];
}

/* All that the sender's channel sends from now on has this in the field, with a class of service. */
static void mark_all(const struct udp_pair *pair, uint32_t channel, int ecn)
{
    int value = 0x48 | ecn;
    bool ipv4 = sender_channel(pair, channel)->tx.flow.ipv4;
    assert_int_equal(setsockopt(udp_channel_fd(sender_channel(pair, channel)),
                                ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_TOS : IPV6_TCLASS, &value,
                                sizeof value),
                     0);
}

static void deliver_range(struct udp_pair *pair, const struct udp_message *message, uint32_t first,
                          uint32_t count)
{
    uint32_t packets[64];
    assert_true(count <= 64);
    for (uint32_t i = 0; i < count; i++)
        packets[i] = first + i;
    udp_pair_deliver(pair, message, packets, count);
}

/* Each packet of a message that the kernel joined counts; other values of the field do not. */
static void test_marks_are_counted(void **state)
{
    (void)state;
    for (size_t device = 0; device < 2; device++) {
        struct fabric_endpoint_attr attr = udp_pair_attr();
        struct udp_pair pair;
        udp_pair_open(&pair, devices[device], &attr);
        struct udp_message *message = udp_pair_bind(&pair, 0, 0, 200 * 4096 + 5);
        const uint64_t *marked = &pair.receiver.stats.rx_marked_packets;
        deliver_range(&pair, message, 0, 20);
        mark_all(&pair, 0, ECT_0);
        deliver_range(&pair, message, 20, 20);
        mark_all(&pair, 0, ECT_1);
        deliver_range(&pair, message, 40, 20);
        assert_int_equal(*marked, 0);
        mark_all(&pair, 0, CE);
        deliver_range(&pair, message, 60, 45); /* three bursts */
        assert_int_equal(*marked, 45);
        deliver_range(&pair, message, 60, 3); /* duplicates crossed the path, too */
        assert_int_equal(*marked, 48);
        sender_channel(&pair, 0)->tx.gso = false;
        deliver_range(&pair, message, 105, 10);
        assert_int_equal(*marked, 58);
        mark_all(&pair, 0, NOT_ECT);
        deliver_range(&pair, message, 115, 64);
        deliver_range(&pair, message, 179, 22);
        assert_int_equal(*marked, 58);
        udp_message_assert_whole(message);
        udp_pair_assert_no_bad(&pair);
        udp_pair_close(&pair);
    }
}

/* A late packet crossed the path; of what is not the peer's, nothing is believed. */
static void test_whose_marks(void **state)
{
    (void)state;
    for (size_t device = 0; device < 2; device++) {
        struct fabric_endpoint_attr attr = udp_pair_attr();
        struct udp_pair pair;
        udp_pair_open(&pair, devices[device], &attr);
        struct udp_message *message = udp_pair_bind(&pair, 0, 0, 40 * 4096);
        mark_all(&pair, 0, CE);
        struct fabric_write writes[12];
        for (uint32_t i = 0; i < 12; i++) {
            writes[i] = udp_pair_write(&pair, message, i);
            writes[i].corrupt_bit = i % 4 == 1 ? 8 * 40 : 0; /* of the payload */
            writes[i].rkey ^= i % 4 == 2;
        }
        udp_pair_send(&pair, writes, 12);
        udp_pair_await(&pair, 0, 6);
        udp_pair_settle(&pair);
        assert_int_equal(pair.receiver.stats.bad_icrc, 3);
        assert_int_equal(pair.receiver.stats.bad_key, 3);
        assert_int_equal(pair.receiver.stats.rx_marked_packets, 6);
        udp_pair_unbind(&pair, message);
        struct fabric_write late = udp_pair_write(&pair, message, 20);
        udp_pair_send(&pair, &late, 1);
        udp_pair_settle(&pair);
        assert_int_equal(pair.receiver.stats.rx_late_packets, 1);
        assert_int_equal(pair.receiver.stats.rx_marked_packets, 7);
        udp_message_free(message);
        udp_pair_close(&pair);
    }
}

static void read_notifications(struct udp_side *side)
{
    struct fabric_control_arrival arrivals[4];
    usleep(20000);
    assert_int_equal(side->fabric->ops->control_poll(side->endpoint, arrivals, 4), 0);
}

static lh_time test_time;

static lh_time now(struct fabric *fabric)
{
    (void)fabric;
    return test_time;
}

/* Marked packets of hardware are answered with notifications, each of its QPs at most once an interval. */
static void answer_hardware(const char *sender, const char *receiver)
{
    struct fabric_endpoint_attr attr = udp_pair_attr();
    attr.channels = 2;
    struct udp_pair pair;
    if (!udp_pair_open_as(&pair, sender, receiver, &attr, true))
        skip(); /* another process has the RoCE port */
    struct fabric_ops ops = *pair.receiver.fabric->ops;
    ops.now = now;
    pair.receiver.fabric->ops = &ops;
    test_time = LH_NS_PER_S;
    struct udp_message *message = udp_pair_bind(&pair, 1, 2, 64 * 4096);
    struct udp_message *other = udp_pair_bind(&pair, 2, 3, 4096);
    const uint64_t *notified = &pair.sender.stats.rx_congestion_notifications;
    deliver_range(&pair, message, 0, 32);
    read_notifications(&pair.sender);
    assert_int_equal(pair.receiver.stats.rx_marked_packets, 0);
    assert_int_equal(*notified, 0);
    mark_all(&pair, 0, CE); /* packets 0 to 15, 32 to 47; the others are of channel 1 */
    deliver_range(&pair, message, 30, 15);
    read_notifications(&pair.sender);
    assert_int_equal(pair.receiver.stats.rx_marked_packets, 13);
    assert_int_equal(*notified, 1);
    test_time += UDP_CNP_INTERVAL_NS - 1;
    deliver_range(&pair, message, 45, 1);
    read_notifications(&pair.sender);
    assert_int_equal(*notified, 1);
    deliver_range(&pair, other, 0, 1); /* of another QP */
    read_notifications(&pair.sender);
    assert_int_equal(*notified, 2);
    test_time++;
    deliver_range(&pair, message, 46, 2);
    read_notifications(&pair.sender);
    assert_int_equal(*notified, 3);
    mark_all(&pair, 1, CE);
    deliver_range(&pair, message, 48, 16);
    read_notifications(&pair.sender);
    assert_int_equal(*notified, 4);
    assert_int_equal(pair.receiver.stats.rx_marked_packets, 33);
    udp_message_assert_whole(message);
    udp_pair_assert_no_bad(&pair);
    udp_pair_close(&pair);
}

static void test_hardware_is_notified(void **state)
{
    (void)state;
    answer_hardware("udp:127.66.1.2", "udp:127.66.1.3");
    answer_hardware("udp:[::1]", NULL);
}

/* A peer of our kind learns of marks by control messages. */
static void test_others_are_not(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    udp_pair_open(&pair, devices[0], &attr);
    struct udp_message *message = udp_pair_bind(&pair, 0, 0, 32 * 4096);
    mark_all(&pair, 0, CE);
    deliver_range(&pair, message, 0, 32);
    read_notifications(&pair.sender);
    assert_int_equal(pair.receiver.stats.rx_marked_packets, 32);
    assert_int_equal(pair.sender.stats.rx_congestion_notifications, 0);
    udp_pair_assert_no_bad(&pair);
    udp_pair_close(&pair);
}

/* ---- notifications of anyone --------------------------------------------------------------------------- */

struct notification {
    uint8_t bytes[ROCE_CNP_BYTES + 8];
    uint32_t count;
};

static struct notification forge(const struct udp_pair *pair, uint32_t qpn)
{
    struct notification made = {.count = ROCE_CNP_BYTES};
    struct roce_packet packet = {.opcode = ROCE_CNP, .dest_qpn = qpn};
    assert_int_equal(udp_pair_forge(pair, 0, &packet, made.bytes), ROCE_CNP_BYTES);
    return made;
}

/* What the receiver's front has counted of it. */
static void expect(struct udp_pair *pair, const struct notification *thrown, const uint64_t *counter)
{
    struct lh_stats before = pair->receiver.stats;
    uint64_t counted = *counter;
    udp_pair_throw(pair, 0, thrown->bytes, thrown->count, 0);
    read_notifications(&pair->receiver);
    assert_int_equal(*counter, counted + 1);
    uint64_t taken = pair->receiver.stats.rx_congestion_notifications - before.rx_congestion_notifications;
    uint64_t bad = lh_stats_bad_packets(&pair->receiver.stats) - lh_stats_bad_packets(&before);
    assert_int_equal(taken + bad, 1);
}

static void throw_notifications(const char *sender, const char *receiver)
{
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    if (!udp_pair_open_as(&pair, sender, receiver, &attr, true))
        skip();
    struct lh_stats *stats = &pair.receiver.stats;
    uint32_t qpn = pair.receiver.info.qpn[3][0];
    struct notification good = forge(&pair, qpn);
    expect(&pair, &good, &stats->rx_congestion_notifications);
    /* As NICs do: without M. Neither congestion bit is covered by the iCRC. */
    struct notification other = forge(&pair, qpn);
    other.bytes[4] = 0x80;
    expect(&pair, &other, &stats->rx_congestion_notifications);
    other = forge(&pair, pair.receiver.info.control_qpn);
    expect(&pair, &other, &stats->rx_congestion_notifications);

    other = good;
    other.bytes[20] ^= 1; /* a reserved byte, which the iCRC covers */
    expect(&pair, &other, &stats->bad_icrc);
    other = good;
    other.bytes[ROCE_CNP_BYTES - 1] ^= 0x80;
    expect(&pair, &other, &stats->bad_icrc);
    other = forge(&pair, qpn ^ 0x800000);
    expect(&pair, &other, &stats->bad_qpn);
    other = good;
    other.count--;
    expect(&pair, &other, &stats->bad_header);
    other.count = ROCE_CNP_BYTES + 4;
    expect(&pair, &other, &stats->bad_length);
    udp_pair_close(&pair);
}

static void test_notifications_are_checked(void **state)
{
    (void)state;
    throw_notifications("udp:127.66.1.4", "udp:127.66.1.5");
    throw_notifications("udp:[::1]", NULL);
}

/* Right in all but where it comes from; and to an endpoint that has no peer yet. */
static void test_notifications_of_strangers(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    if (!udp_pair_open_as(&pair, "udp:127.66.1.6", "udp:127.66.1.7", &attr, true))
        skip();
    struct udp_side *receiver = &pair.receiver;
    struct udp_side early = {.fabric = receiver->fabric};
    attr.stats = &early.stats;
    assert_int_equal(early.fabric->ops->endpoint_create(early.fabric, &attr, &early.endpoint), 0);
    early.fabric->ops->endpoint_info(early.endpoint, &early.info);
    struct notification thrown = forge(&pair, early.info.qpn[0][0]);
    udp_pair_throw(&pair, 0, thrown.bytes, thrown.count, 0);
    read_notifications(receiver);
    assert_int_equal(early.stats.bad_source, 1);
    assert_int_equal(early.stats.rx_congestion_notifications, 0);
    early.fabric->ops->endpoint_destroy(early.endpoint);

    struct udp_pair stranger;
    attr = pair.attr;
    assert_true(udp_pair_open_as(&stranger, "udp:127.66.1.8", "udp:127.66.1.9", &attr, true));
    struct udp_channel *channel = sender_channel(&stranger, 0);
    channel->tx.to = sender_channel(&pair, 0)->tx.to;
    udp_address_bytes(&channel->tx.to, channel->tx.flow.destination);
    thrown = forge(&stranger, receiver->info.qpn[0][0]);
    udp_pair_throw(&stranger, 0, thrown.bytes, thrown.count, 0);
    read_notifications(receiver);
    assert_int_equal(receiver->stats.bad_source, 1);
    assert_int_equal(receiver->stats.rx_congestion_notifications, 0);
    udp_pair_close(&stranger);
    udp_pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_marks_are_counted),         cmocka_unit_test(test_whose_marks),
        cmocka_unit_test(test_hardware_is_notified),      cmocka_unit_test(test_others_are_not),
        cmocka_unit_test(test_notifications_are_checked), cmocka_unit_test(test_notifications_of_strangers),
    };
    own_network();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
