/*
 * test_udp_demux.c - which packets of a message are a channel's, whose control datagrams are handed out, and
 * what is counted of all others. Messages of data are given to the channel as the kernel would have read
 * them; what goes through a socket is followed by a packet that arrives, so that nothing is waited for.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "fabric/udp/udp_parts.h"
#include "store/store.h"
#include "support/udp_pair.h"

#define MTU 4096u

static const char *const devices[] = {"udp:[::1]", "udp:127.0.0.1"};

static struct udp_channel *channel_of(const struct udp_side *side, uint32_t channel)
{
    return ((struct udp_endpoint *)side->endpoint)->channels[channel];
}

/* ---- messages of data -------------------------------------------------------------------------------- */

static struct fabric_arrival arrivals[64];

/* Gives bytes to the receiver's channel 0, as if the sender's channel 0 had sent them. Returns the number of
 * arrivals. */
static uint32_t take(struct udp_pair *pair, const uint8_t *data, uint32_t bytes, uint32_t segment_bytes)
{
    struct udp_channel *channel = channel_of(&pair->receiver, 0);
    const struct udp_received message = {bytes, segment_bytes, 0};
    channel->rx.from = ((struct udp_endpoint *)pair->receiver.endpoint)->peer_address;
    udp_address_set_port(&channel->rx.from, channel->peer_port);
    udp_arrivals_begin(&channel->rx.arrivals, arrivals, 64);
    udp_take_message(channel, data, &message);
    return channel->rx.arrivals.count;
}

struct counted {
    uint64_t bad_header, bad_length, bad_qpn, bad_icrc, bad_key, rx_late_packets;
};

static void expect_counted(struct udp_pair *pair, struct counted wanted)
{
    struct lh_stats *stats = &pair->receiver.stats;
    assert_int_equal(stats->bad_header, wanted.bad_header);
    assert_int_equal(stats->bad_length, wanted.bad_length);
    assert_int_equal(stats->bad_qpn, wanted.bad_qpn);
    assert_int_equal(stats->bad_icrc, wanted.bad_icrc);
    assert_int_equal(stats->bad_key, wanted.bad_key);
    assert_int_equal(stats->rx_late_packets, wanted.rx_late_packets);
    assert_int_equal(lh_stats_bad_packets(stats), wanted.bad_header + wanted.bad_length + wanted.bad_qpn +
                                                      wanted.bad_icrc + wanted.bad_key);
    memset(stats, 0, sizeof *stats);
}

static bool is_untouched(const struct udp_message *message, uint32_t packet)
{
    uint64_t offset = (uint64_t)packet * MTU;
    for (uint64_t i = offset; i < offset + MTU && i < message->bytes; i++)
        if (message->buffer[i] != 0xA5)
            return false;
    return true;
}

static void a_packet_lands_in_its_place(void **state)
{
    (void)state;
    for (size_t device = 0; device < 2; device++) {
        struct fabric_endpoint_attr attr = udp_pair_attr();
        struct udp_pair pair;
        uint8_t data[UDP_PACKET_MAX];
        udp_pair_open(&pair, devices[device], &attr);
        struct udp_message *message = udp_pair_bind(&pair, 2, 1, 3 * MTU + 5);
        struct roce_packet packet = udp_pair_packet(&pair, message, 3);
        uint32_t bytes = udp_pair_forge(&pair, 0, &packet, data);
        assert_int_equal(take(&pair, data, bytes, bytes), 1);
        assert_int_equal(arrivals[0].bytes, 5);
        assert_int_equal(arrivals[0].generation, 1);
        assert_int_equal(arrivals[0].immediate, packet.immediate);
        assert_int_equal(channel_of(&pair.receiver, 0)->rx.proven, 1);
        assert_memory_equal(message->buffer + 3 * MTU, message->source + 3 * MTU, 5);
        assert_true(is_untouched(message, 0) && is_untouched(message, 2));
        udp_message_assert_guards(message);
        expect_counted(&pair, (struct counted){0});
        udp_pair_close(&pair);
    }
}

/* One bit of it is another: nothing is written, nothing arrives. */
static void a_damaged_packet(void **state)
{
    (void)state;
    for (size_t device = 0; device < 2; device++) {
        struct fabric_endpoint_attr attr = udp_pair_attr();
        struct udp_pair pair;
        uint8_t data[UDP_PACKET_MAX];
        udp_pair_open(&pair, devices[device], &attr);
        struct udp_message *message = udp_pair_bind(&pair, 0, 0, MTU);
        struct roce_packet packet = udp_pair_packet(&pair, message, 0);
        uint32_t bytes = udp_pair_forge(&pair, 0, &packet, data);
        static const uint32_t places[] = {31, 32, 1000, 32 + MTU - 1, 32 + MTU, 32 + MTU + 3};
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            data[places[i]] ^= 0x10;
            assert_int_equal(take(&pair, data, bytes, bytes), 0);
            assert_int_equal(channel_of(&pair.receiver, 0)->rx.proven, 0);
            data[places[i]] ^= 0x10;
            expect_counted(&pair, (struct counted){.bad_icrc = 1});
        }
        assert_true(is_untouched(message, 0));
        assert_int_equal(take(&pair, data, bytes, bytes), 1);
        udp_pair_close(&pair);
    }
}

/* Packets that the kernel joined: each is judged by itself, and the last may be shorter. */
static void joined_packets(void **state)
{
    (void)state;
    for (size_t device = 0; device < 2; device++) {
        struct fabric_endpoint_attr attr = udp_pair_attr();
        struct udp_pair pair;
        static uint8_t data[3 * UDP_PACKET_MAX];
        uint32_t bytes = 0, first = 0;
        udp_pair_open(&pair, devices[device], &attr);
        struct udp_message *message = udp_pair_bind(&pair, 0, 0, 2 * MTU + 9);
        for (uint32_t p = 0; p < 3; p++) {
            struct roce_packet packet = udp_pair_packet(&pair, message, p);
            bytes += udp_pair_forge(&pair, 0, &packet, data + bytes);
            first = p == 0 ? bytes : first;
        }
        data[first + 100] ^= 1; /* of the second */
        assert_int_equal(take(&pair, data, bytes, first), 2);
        assert_int_equal(channel_of(&pair.receiver, 0)->rx.proven, 2);
        assert_int_equal(arrivals[0].bytes, MTU);
        assert_int_equal(arrivals[1].bytes, 9);
        assert_true(is_untouched(message, 1));
        assert_memory_equal(message->buffer, message->source, MTU);
        assert_memory_equal(message->buffer + 2 * MTU, message->source + 2 * MTU, 9);
        expect_counted(&pair, (struct counted){.bad_icrc = 1});
        udp_pair_close(&pair);
    }
}

/* Another header, length, queue pair or key; a slot that is closed. */
static void packets_that_are_not_its(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    uint8_t data[UDP_PACKET_MAX];
    udp_pair_open(&pair, devices[0], &attr);
    struct udp_message *message = udp_pair_bind(&pair, 0, 0, MTU);
    const struct roce_packet right = udp_pair_packet(&pair, message, 0);
    struct roce_packet packet = right;
    uint32_t bytes = udp_pair_forge(&pair, 0, &packet, data);
    assert_int_equal(take(&pair, data, bytes - 1, bytes - 1), 0);
    expect_counted(&pair, (struct counted){.bad_length = 1});
    packet.opcode = ROCE_UC_SEND_ONLY;
    bytes = udp_pair_forge(&pair, 0, &packet, data);
    assert_int_equal(take(&pair, data, bytes, bytes), 0);
    expect_counted(&pair, (struct counted){.bad_header = 1});
    packet = right;
    packet.dest_qpn ^= 0x800000;
    bytes = udp_pair_forge(&pair, 0, &packet, data);
    assert_int_equal(take(&pair, data, bytes, bytes), 0);
    expect_counted(&pair, (struct counted){.bad_qpn = 1});
    packet = right;
    packet.rkey ^= 1;
    bytes = udp_pair_forge(&pair, 0, &packet, data);
    assert_int_equal(take(&pair, data, bytes, bytes), 0);
    expect_counted(&pair, (struct counted){.bad_key = 1});
    udp_pair_unbind(&pair, message);
    bytes = udp_pair_forge(&pair, 0, &right, data);
    assert_int_equal(take(&pair, data, bytes, bytes), 0);
    expect_counted(&pair, (struct counted){.rx_late_packets = 1});
    assert_int_equal(channel_of(&pair.receiver, 0)->rx.proven, 1); /* the peer's all the same */
    assert_true(is_untouched(message, 0));
    udp_message_free(message);
    udp_pair_close(&pair);
}

/* The socket's filter cuts what it does not know down to the header, which says why. */
static void packets_that_were_cut(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    uint8_t data[UDP_PACKET_MAX];
    udp_pair_open(&pair, devices[0], &attr);
    struct udp_message *message = udp_pair_bind(&pair, 0, 0, MTU);
    struct roce_packet packet = udp_pair_packet(&pair, message, 0);
    const uint32_t cut = ROCE_WRITE_IMM_HEADER_BYTES;
    udp_pair_forge(&pair, 0, &packet, data);
    assert_int_equal(take(&pair, data, cut, cut), 0);
    expect_counted(&pair, (struct counted){.bad_length = 1});
    packet.dest_qpn ^= 0x800000;
    udp_pair_forge(&pair, 0, &packet, data);
    assert_int_equal(take(&pair, data, cut, cut), 0);
    expect_counted(&pair, (struct counted){.bad_qpn = 1});
    data[0] = ROCE_UC_SEND_ONLY;
    assert_int_equal(take(&pair, data, cut, cut), 0);
    expect_counted(&pair, (struct counted){.bad_header = 1});
    udp_pair_close(&pair);
}

/* ---- packets of another endpoint --------------------------------------------------------------------- */

static uint32_t woken[4], woken_count;

static void on_wake(void *context, uint32_t channel)
{
    (void)context;
    woken[woken_count++ % 4] = channel;
}

/* What a channel of one endpoint found, and another's QP is named in: it waits there, and its owner is
 * woken once. */
static void packets_of_another_endpoint(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair, other;
    uint8_t data[UDP_PACKET_MAX];
    attr.channels = 2;
    attr.wake = on_wake;
    udp_pair_open(&pair, devices[0], &attr);
    udp_pair_join(&other, pair.sender.fabric, pair.receiver.fabric, &attr);
    struct udp_message *message = udp_pair_bind(&other, 0, 0, MTU);
    struct roce_packet packet = udp_pair_packet(&other, message, 0);
    struct udp_channel *finder = channel_of(&pair.receiver, 0), *owner = channel_of(&other.receiver, 0);
    union udp_address from = ((struct udp_endpoint *)other.receiver.endpoint)->peer_address;
    udp_address_set_port(&from, owner->peer_port);
    struct udp_part part = {.from = &from, .data = data};
    part.bytes = udp_pair_forge(&other, 0, &packet, data);
    woken_count = 0;
    udp_demux_forward(finder, &part);
    udp_demux_forward(finder, &part);
    assert_int_equal(udp_inbox_waiting(&owner->inbox), 2);
    assert_int_equal(woken_count, 1);
    assert_int_equal(woken[0], 0);
    udp_demux_forward(channel_of(&pair.receiver, 1), &part); /* it came to another port */
    assert_int_equal(other.receiver.stats.bad_qpn, 1);
    udp_address_set_port(&from, (uint16_t)(owner->peer_port ^ 1));
    udp_demux_forward(finder, &part);
    assert_int_equal(other.receiver.stats.bad_source, 1);
    packet.dest_qpn = other.receiver.info.control_qpn; /* whose place is the front */
    part.bytes = udp_pair_forge(&other, 0, &packet, data);
    udp_demux_forward(finder, &part);
    assert_int_equal(pair.receiver.stats.bad_qpn, 1);
    assert_int_equal(udp_inbox_waiting(&owner->inbox), 2);
    assert_int_equal(
        lh_stats_bad_packets(&pair.receiver.stats) + lh_stats_bad_packets(&other.receiver.stats), 3);
    udp_pair_leave(&other);
    udp_pair_close(&pair);
}

/* ---- control datagrams ------------------------------------------------------------------------------- */

/* The next datagrams, as many; fails when they do not come. */
static void poll_control(const struct udp_side *side, struct fabric_control_arrival *out, uint32_t count)
{
    lh_time start = side->fabric->ops->now(side->fabric);
    for (uint32_t got = 0; got < count;) {
        assert_true(side->fabric->ops->now(side->fabric) < start + 20 * LH_NS_PER_S);
        int some = side->fabric->ops->control_poll(side->endpoint, out + got, count - got);
        assert_true(some >= 0);
        got += (uint32_t)some;
    }
}

static void send_control(const struct udp_side *side, const char *text, uint32_t corrupt_bit)
{
    const struct fabric_datagram datagram = {(const uint8_t *)text, (uint32_t)strlen(text), corrupt_bit};
    assert_int_equal(side->fabric->ops->control_send(side->endpoint, &datagram, 1), 1);
}

static void expect_text(const struct fabric_control_arrival *arrival, const char *text)
{
    assert_int_equal(arrival->bytes, strlen(text));
    assert_memory_equal(arrival->data, text, strlen(text));
}

static void control_datagrams(void **state)
{
    (void)state;
    for (size_t device = 0; device < 2; device++) {
        struct fabric_endpoint_attr attr = udp_pair_attr();
        struct fabric_control_arrival out[2];
        struct udp_pair pair;
        udp_pair_open(&pair, devices[device], &attr);
        send_control(&pair.sender, "one", 0);
        send_control(&pair.sender, "damaged", 1 + 8 * 12);
        send_control(&pair.sender, "two!", 0);
        poll_control(&pair.receiver, out, 2);
        expect_text(&out[0], "one");
        expect_text(&out[1], "two!");
        assert_int_equal(out[0].source, 0);
        assert_int_equal(pair.receiver.stats.bad_icrc, 1);
        assert_int_equal(lh_stats_bad_packets(&pair.receiver.stats), 1);
        udp_pair_close(&pair);
    }
}

/* Right in all but where it comes from: an endpoint of the same fabric as the peer, and one of another. */
static void control_of_strangers(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct fabric_control_arrival out;
    struct udp_pair pair, stranger;
    udp_pair_open(&pair, devices[1], &attr);
    udp_pair_open(&stranger, devices[1], &attr); /* other ports of the same host */
    struct qp_info_endpoint info = pair.receiver.info;
    struct udp_side early = {.fabric = stranger.sender.fabric};
    attr.stats = &early.stats;
    assert_int_equal(early.fabric->ops->endpoint_create(early.fabric, &attr, &early.endpoint), 0);
    assert_int_equal(early.fabric->ops->endpoint_connect(early.endpoint, &info), 0);
    send_control(&early, "strange", 0);
    send_control(&pair.sender, "good", 0);
    poll_control(&pair.receiver, &out, 1);
    expect_text(&out, "good");
    assert_int_equal(pair.receiver.stats.bad_source, 1);
    assert_int_equal(lh_stats_bad_packets(&pair.receiver.stats), 1);
    early.fabric->ops->endpoint_destroy(early.endpoint);
    udp_pair_close(&stranger);
    udp_pair_close(&pair);
}

/* A control datagram as the sender's own address and port make it. */
static uint32_t forge_control(const struct udp_pair *pair, const char *text, uint8_t *out)
{
    const struct udp_endpoint *receiver = (const struct udp_endpoint *)pair->receiver.endpoint;
    const struct udp_fabric *fabric = udp_fabric_of(receiver);
    struct icrc_flow flow = {
        .ipv4 = udp_address_is_ipv4(&fabric->local),
        .source_port = receiver->peer.control_port,
        .destination_port = fabric->front.port,
    };
    udp_address_bytes(&receiver->peer_address, flow.source);
    udp_address_bytes(&fabric->local, flow.destination);
    struct roce_packet packet = {.opcode = ROCE_UC_SEND_ONLY,
                                 .dest_qpn = pair->receiver.info.control_qpn,
                                 .payload = (const uint8_t *)text,
                                 .payload_bytes = (uint32_t)strlen(text)};
    size_t bytes = roce_encode_header(&packet, out);
    memcpy(out + bytes, text, packet.payload_bytes);
    bytes += packet.payload_bytes; /* a multiple of four */
    uint32_t crc = icrc_begin(&flow, (uint32_t)bytes + ROCE_ICRC_BYTES, 0, true);
    icrc_store(icrc_add_header(crc, out, bytes), out + bytes);
    return (uint32_t)bytes + ROCE_ICRC_BYTES;
}

/* Sends those bytes from another address than the peer's own; returns the port there. */
static uint16_t send_from(const struct udp_pair *pair, const char *address, const uint8_t *data,
                          uint32_t bytes)
{
    const struct udp_fabric *fabric = udp_fabric_of((const struct udp_endpoint *)pair->receiver.endpoint);
    union udp_address from, to = fabric->local;
    socklen_t size = sizeof from;
    assert_int_equal(udp_address_parse(address, &from), 0);
    udp_address_set_port(&to, fabric->front.port);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int dont = IP_PMTUDISC_DO; /* so that the packet's IP ID is 0, as the iCRC says */
    setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &dont, sizeof dont);
    assert_int_equal(bind(fd, &from.any, udp_address_size(&from)), 0);
    assert_int_equal(getsockname(fd, &from.any, &size), 0);
    assert_int_equal(sendto(fd, data, bytes, 0, &to.any, udp_address_size(&to)), bytes);
    close(fd);
    return udp_address_port(&from);
}

/* Behind NAT the peer is seen at another host, from any port; answers go there. From its own host it comes
 * as before, and from a third not at all. */
static void control_of_a_peer_behind_nat(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct fabric_control_arrival out[2];
    struct udp_pair pair;
    uint8_t data[128];
    udp_pair_open(&pair, devices[1], &attr);
    uint32_t bytes = forge_control(&pair, "seen", data);
    struct udp_endpoint *receiver = (struct udp_endpoint *)pair.receiver.endpoint;
    send_from(&pair, "127.66.3.9", data, bytes); /* no NAT is known: not even the iCRC fits */
    send_control(&pair.sender, "own1", 0);
    poll_control(&pair.receiver, out, 1);
    expect_text(&out[0], "own1");
    assert_int_equal(pair.receiver.stats.bad_icrc, 1);
    receiver->peer.translated = true;
    assert_int_equal(udp_address_parse("127.66.3.9", &receiver->seen_address), 0);
    uint16_t port = send_from(&pair, "127.66.3.9", data, bytes);
    send_from(&pair, "127.66.3.8", data, bytes);
    send_control(&pair.sender, "own2", 0);
    poll_control(&pair.receiver, out, 2);
    expect_text(&out[0], "seen");
    assert_int_equal(out[0].source, port);
    expect_text(&out[1], "own2");
    assert_int_equal(out[1].source, 0);
    assert_int_equal(pair.receiver.stats.bad_icrc, 2);
    udp_pair_close(&pair);
}

/* ---- data of a peer behind NAT ------------------------------------------------------------------------ */

/* Gives a packet that is right to the receiver, as if it came from there; where answers go then. */
static const union udp_address *answers_to(struct udp_pair *pair, const union udp_address *host,
                                           uint16_t port)
{
    struct udp_channel *channel = channel_of(&pair->receiver, 0);
    uint8_t data[UDP_PACKET_MAX];
    struct roce_packet packet = udp_pair_packet(pair, pair->slots[0], 0);
    const struct udp_received message = {udp_pair_forge(pair, 0, &packet, data), UDP_PACKET_MAX, 0};
    channel->rx.from = *host;
    udp_address_set_port(&channel->rx.from, port);
    udp_arrivals_begin(&channel->rx.arrivals, arrivals, 64);
    udp_take_message(channel, data, &message);
    assert_int_equal(channel->rx.arrivals.count, 1);
    return &channel->tx.to;
}

/* Answers go to where the last packet came from: from either host, until control datagrams have proven the
 * one that it is seen at. A peer that is not behind NAT has one place. */
static void data_of_a_peer_behind_nat(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    udp_pair_open(&pair, devices[1], &attr);
    udp_pair_bind(&pair, 0, 0, 100);
    struct udp_endpoint *receiver = (struct udp_endpoint *)pair.receiver.endpoint;
    const union udp_address own = receiver->peer_address;
    uint16_t port = udp_address_port(&channel_of(&pair.receiver, 0)->tx.to);
    union udp_address seen;
    assert_int_equal(udp_address_parse("127.66.3.9", &seen), 0);
    assert_int_equal(udp_address_port(answers_to(&pair, &own, 700)), port);
    receiver->peer.translated = true;
    receiver->seen_address = seen;
    const union udp_address *to = answers_to(&pair, &seen, 701);
    assert_true(udp_address_port(to) == 701 && udp_address_same_host(to, &seen));
    to = answers_to(&pair, &own, 701); /* only the host is another */
    assert_true(udp_address_port(to) == 701 && udp_address_same_host(to, &own));
    to = answers_to(&pair, &own, 702); /* only the port is */
    assert_true(udp_address_port(to) == 702 && udp_address_same_host(to, &own));
    atomic_store(&receiver->seen_port, 5);
    to = answers_to(&pair, &own, 703);
    assert_true(udp_address_port(to) == 702 && udp_address_same_host(to, &own));
    to = answers_to(&pair, &seen, 704);
    assert_true(udp_address_port(to) == 704 && udp_address_same_host(to, &seen));
    udp_pair_close(&pair);
}

/* ---- congestion notifications ------------------------------------------------------------------------ */

static void throw_notification(const struct udp_pair *pair, uint32_t qpn, uint8_t damage)
{
    uint8_t data[ROCE_CNP_BYTES];
    const struct roce_packet packet = {.opcode = ROCE_CNP, .dest_qpn = qpn};
    assert_int_equal(udp_pair_forge(pair, 0, &packet, data), ROCE_CNP_BYTES);
    data[20] ^= damage; /* a reserved byte, which the iCRC covers */
    udp_pair_throw(pair, 0, data, sizeof data, 0);
}

static void notifications_of_hardware(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct fabric_control_arrival out;
    struct udp_pair pair;
    if (!udp_pair_open_as(&pair, "udp:127.66.4.2", "udp:127.66.4.3", &attr, true))
        skip(); /* another process has the RoCE port */
    const struct lh_stats *stats = &pair.receiver.stats;
    uint32_t qpn = pair.receiver.info.qpn[3][0];
    throw_notification(&pair, qpn, 1);
    throw_notification(&pair, qpn, 0);
    throw_notification(&pair, qpn ^ 0x800000, 0);
    send_control(&pair.sender, "behind", 0); /* to the same socket */
    poll_control(&pair.receiver, &out, 1);
    assert_int_equal(stats->rx_congestion_notifications, 1);
    assert_int_equal(stats->bad_icrc, 1);
    assert_int_equal(stats->bad_qpn, 1);
    assert_int_equal(lh_stats_bad_packets(stats), 2);
    udp_pair_close(&pair);
}

/* ---- memory ------------------------------------------------------------------------------------------ */

/* Slots take memory with the first one that is bound, and give all of it back when they rest. */
static void memory_of_slots(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct store store;
    struct udp_pair pair;
    store_init(&store, UINT64_MAX);
    attr.store = &store;
    udp_pair_open(&pair, devices[0], &attr);
    uint64_t before = store_bytes(&store);
    struct udp_message *message = udp_pair_bind(&pair, 0, 0, MTU);
    assert_true(store_bytes(&store) > before);
    udp_pair_unbind(&pair, message);
    udp_message_free(message);
    pair.receiver.fabric->ops->slots_idle(pair.receiver.endpoint);
    assert_int_equal(store_bytes(&store), before);
    message = udp_pair_bind(&pair, 0, 1, MTU); /* and they take it again */
    uint32_t packet = 0;
    udp_pair_deliver(&pair, message, &packet, 1);
    udp_message_assert_whole(message);
    udp_pair_close(&pair);
    assert_int_equal(store_bytes(&store), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_packet_lands_in_its_place),
        cmocka_unit_test(a_damaged_packet),
        cmocka_unit_test(joined_packets),
        cmocka_unit_test(packets_that_are_not_its),
        cmocka_unit_test(packets_that_were_cut),
        cmocka_unit_test(packets_of_another_endpoint),
        cmocka_unit_test(control_datagrams),
        cmocka_unit_test(control_of_strangers),
        cmocka_unit_test(control_of_a_peer_behind_nat),
        cmocka_unit_test(data_of_a_peer_behind_nat),
        cmocka_unit_test(notifications_of_hardware),
        cmocka_unit_test(memory_of_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
