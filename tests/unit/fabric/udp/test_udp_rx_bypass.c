/*
 * test_udp_rx_bypass.c - data packets of the udp fabric that do not pass its sockets: a bypass of this file's
 * own takes what one fabric sends, and hands it to another.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "base/error.h"
#include "fabric/udp/udp_bypass.h"
#include "fabric/udp/udp_parts.h"
#include "support/udp_pair.h"

#define MTU       1408u
#define QUEUE_MAX 256u

/* ---- a bypass ---------------------------------------------------------------------------------------- */

struct wire_packet {
    union udp_address from;
    uint16_t port;
    uint16_t ip_id;
    uint32_t bytes;
    uint8_t data[UDP_PACKET_MAX];
};

/* What is on the way to a fabric, and what its bypass is to do. */
struct fake_bypass {
    struct udp_bypass base;
    union udp_address local;
    struct fake_bypass *peer;
    struct wire_packet *queue;
    uint32_t waiting, taken; /* queue[taken … waiting) */
    uint32_t released, sent, ports;
    uint32_t drop_count;
    bool unreachable, gone, closed;
    bool marks;
    int send_error;
};

static struct fake_bypass *fake_of(struct udp_bypass *bypass)
{
    return (struct fake_bypass *)bypass;
}

static int fake_open_port(struct udp_bypass *bypass, uint16_t port)
{
    assert_int_not_equal(port, 0);
    fake_of(bypass)->ports++;
    return 0;
}

static bool fake_reaches(struct udp_bypass *bypass, const union udp_address *to, struct udp_next_hop *hop)
{
    hop->to = *to;
    return !fake_of(bypass)->unreachable;
}

static void put_datagram(struct fake_bypass *fake, const struct udp_next_hop *hop, uint16_t source_port,
                         const uint8_t *data, uint32_t bytes, uint32_t place)
{
    assert_in_range(fake->peer->waiting, 0, QUEUE_MAX - 1);
    struct wire_packet *packet = &fake->peer->queue[fake->peer->waiting++];
    packet->from = fake->local;
    udp_address_set_port(&packet->from, source_port);
    packet->port = udp_address_port(&hop->to);
    packet->ip_id = (uint16_t)place;
    packet->bytes = bytes;
    memcpy(packet->data, data, bytes);
    fake->sent++;
}

static int fake_send(struct udp_bypass *bypass, const struct udp_next_hop *hop,
                     const struct udp_bypass_batch *batch)
{
    static uint8_t joined[UDP_MESSAGE_MAX];
    struct fake_bypass *fake = fake_of(bypass);
    errno = fake->send_error;
    if (fake->send_error != 0)
        return -1;
    for (uint32_t i = 0; i < batch->count; i++) {
        const struct msghdr *message = &batch->messages[i].msg_hdr;
        uint32_t bytes = 0, place = 0, part;
        for (size_t k = 0; k < message->msg_iovlen; k++) {
            memcpy(joined + bytes, message->msg_iov[k].iov_base, message->msg_iov[k].iov_len);
            bytes += (uint32_t)message->msg_iov[k].iov_len;
        }
        for (uint32_t at = 0; at < bytes; at += part) {
            part = bytes - at < batch->segment_bytes[i] ? bytes - at : batch->segment_bytes[i];
            put_datagram(fake, hop, batch->source_port, joined + at, part, place++);
        }
    }
    return (int)batch->count;
}

static int fake_receive(struct udp_bypass *bypass, struct udp_bypass_packet *packets, uint32_t count)
{
    struct fake_bypass *fake = fake_of(bypass);
    uint32_t taken = 0;
    if (fake->gone)
        return lh_fail(LH_EDEVICE, "the interface is gone");
    for (; taken < count && fake->taken < fake->waiting; taken++) {
        const struct wire_packet *packet = &fake->queue[fake->taken];
        packets[taken] = (struct udp_bypass_packet){.from = packet->from,
                                                    .data = packet->data,
                                                    .bytes = packet->bytes,
                                                    .ip_id = packet->ip_id,
                                                    .port = packet->port,
                                                    .marked = fake->marks,
                                                    .frame = fake->taken++};
    }
    return (int)taken;
}

static void fake_release(struct udp_bypass *bypass, const struct udp_bypass_packet *packets, uint32_t count)
{
    struct fake_bypass *fake = fake_of(bypass);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(packets[i].frame, fake->released++);
}

static uint32_t fake_drops(struct udp_bypass *bypass)
{
    return fake_of(bypass)->drop_count;
}

static const char *fake_warning(const struct udp_bypass *bypass)
{
    (void)bypass;
    return "generic mode";
}

static void fake_close(struct udp_bypass *bypass)
{
    fake_of(bypass)->closed = true;
}

static const struct udp_bypass_ops fake_ops = {
    .open_port = fake_open_port,
    .reaches = fake_reaches,
    .send = fake_send,
    .receive = fake_receive,
    .release = fake_release,
    .drops = fake_drops,
    .warning = fake_warning,
    .close = fake_close,
};

/* ---- two fabrics ------------------------------------------------------------------------------------- */

static struct fake_bypass left, right;
static struct fabric *left_fabric, *right_fabric;
static struct udp_pair pair;

static void open_side(struct fake_bypass *fake, struct fake_bypass *peer, const char *address,
                      struct fabric **fabric)
{
    *fake = (struct fake_bypass){
        .base = {.ops = &fake_ops, .fd = STDIN_FILENO, .receive_packets = 100, .payload_max = MTU},
        .peer = peer,
        .queue = calloc(QUEUE_MAX, sizeof *fake->queue),
    };
    assert_non_null(fake->queue);
    assert_int_equal(udp_address_parse(address, &fake->local), 0);
    assert_int_equal(udp_fabric_open(&fake->local, 0, &fake->base, fabric), 0);
}

static uint32_t woken;

static void on_wake(void *context, uint32_t channel)
{
    (void)context;
    woken += channel == 0;
}

static struct fabric_endpoint_attr make_attr(void)
{
    struct fabric_endpoint_attr attr = udp_pair_attr();
    attr.mtu_bytes = MTU;
    attr.wake = on_wake;
    return attr;
}

static void open_all(const char *address)
{
    const struct fabric_endpoint_attr attr = make_attr();
    open_side(&left, &right, address, &left_fabric);
    open_side(&right, &left, address, &right_fabric);
    udp_pair_join(&pair, left_fabric, right_fabric, &attr);
    woken = 0;
}

static void close_all(void)
{
    udp_pair_leave(&pair);
    left_fabric->ops->close(left_fabric);
    right_fabric->ops->close(right_fabric);
    assert_true(left.closed && right.closed);
    free(left.queue);
    free(right.queue);
}

static const char *const addresses[] = {"[::1]", "127.0.0.1"};

static void deliver(struct udp_message *message)
{
    uint32_t packets[64];
    assert_in_range(message->packets, 1, 64);
    for (uint32_t i = 0; i < message->packets; i++)
        packets[i] = i;
    udp_pair_deliver(&pair, message, packets, message->packets);
    udp_message_assert_whole(message);
}

/* Through the bypass, then through sockets, then through the bypass again: the same packets. */
static void test_packets_pass_where_it_reaches(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        open_all(addresses[i]);
        for (unsigned round = 0; round < 3; round++) {
            struct udp_message *message = udp_pair_bind(&pair, round, 0, 60 * MTU + 7);
            uint32_t before = left.sent;
            left.unreachable = round == 1;
            deliver(message);
            assert_int_equal(left.sent - before, round == 1 ? 0 : message->packets);
            udp_pair_unbind(&pair, message);
            udp_message_free(message);
        }
        assert_int_equal(right.released, left.sent);
        assert_int_equal(right.ports, 1);
        udp_pair_assert_no_bad(&pair);
        close_all();
    }
}

static void test_marks_are_counted(void **state)
{
    (void)state;
    open_all(addresses[1]);
    struct udp_message *message = udp_pair_bind(&pair, 0, 0, 5 * MTU);
    right.marks = true;
    deliver(message);
    assert_int_equal(pair.receiver.stats.rx_marked_packets, 5);
    udp_pair_unbind(&pair, message);
    udp_message_free(message);
    close_all();
}

/* Whoever reads hands others theirs, and wakes them. */
static void test_packets_of_another_endpoint(void **state)
{
    (void)state;
    struct udp_pair other;
    const struct fabric_endpoint_attr attr = make_attr();
    struct fabric_arrival out[FABRIC_BATCH_MAX];
    open_all(addresses[0]);
    udp_pair_join(&other, left_fabric, right_fabric, &attr);
    struct udp_message *message = udp_pair_bind(&other, 0, 0, 3 * MTU);
    for (uint32_t i = 0; i < 3; i++) {
        const struct fabric_write write = udp_pair_write(&other, message, i);
        assert_int_equal(left_fabric->ops->post_writes(other.sender.endpoint, 0, &write, 1), 1);
    }
    assert_int_equal(right_fabric->ops->poll(pair.receiver.endpoint, 0, out, FABRIC_BATCH_MAX),
                     FABRIC_POLL_AGAIN);
    assert_int_equal(woken, 1);
    assert_int_equal(right.released, 3);
    assert_int_equal(right_fabric->ops->poll(other.receiver.endpoint, 0, out, FABRIC_BATCH_MAX), 3);
    assert_memory_equal(message->buffer, message->source, message->bytes);
    udp_message_assert_guards(message);
    udp_pair_assert_no_bad(&pair);
    udp_pair_assert_no_bad(&other);
    udp_pair_unbind(&other, message);
    udp_message_free(message);
    udp_pair_leave(&other);
    close_all();
}

/* ---- hostile packets --------------------------------------------------------------------------------- */

enum fault { FAULT_SOURCE_HOST, FAULT_SOURCE_PORT, FAULT_QPN, FAULT_CUT, FAULT_EMPTY, FAULT_BIT, FAULTS };

static void spoil(struct wire_packet *packet, enum fault fault)
{
    switch (fault) {
    case FAULT_SOURCE_HOST:
        packet->from.v4.sin_addr.s_addr ^= 1;
        break;
    case FAULT_SOURCE_PORT:
        udp_address_set_port(&packet->from, (uint16_t)(udp_address_port(&packet->from) ^ 1));
        break;
    case FAULT_QPN:
        packet->data[ROCE_QPN_OFFSET] ^= 0x80;
        break;
    case FAULT_CUT:
        packet->bytes -= 4;
        break;
    case FAULT_EMPTY:
        packet->bytes = 0;
        break;
    default:
        packet->data[100] ^= 4;
    }
}

static void test_hostile_packets(void **state)
{
    (void)state;
    struct fabric_arrival out[FABRIC_BATCH_MAX];
    open_all(addresses[1]);
    struct udp_message *message = udp_pair_bind(&pair, 0, 0, FAULTS * MTU);
    const struct lh_stats *stats = &pair.receiver.stats;
    for (uint32_t fault = 0; fault < FAULTS; fault++) {
        const struct fabric_write write = udp_pair_write(&pair, message, fault);
        assert_int_equal(left_fabric->ops->post_writes(pair.sender.endpoint, 0, &write, 1), 1);
        spoil(&right.queue[right.waiting - 1], fault);
    }
    assert_int_equal(right_fabric->ops->poll(pair.receiver.endpoint, 0, out, FABRIC_BATCH_MAX),
                     FABRIC_POLL_AGAIN);
    assert_int_equal(right.released, FAULTS);
    assert_int_equal(stats->bad_source, 2);
    assert_int_equal(stats->bad_qpn, 1);
    assert_int_equal(stats->bad_length, 1);
    assert_int_equal(stats->bad_header, 1);
    assert_int_equal(stats->bad_icrc, 1);
    udp_message_assert_guards(message);
    udp_pair_unbind(&pair, message);
    udp_message_free(message);
    close_all();
}

/* ---- errors and limits ------------------------------------------------------------------------------- */

static void test_errors(void **state)
{
    (void)state;
    struct fabric_arrival out[1];
    open_all(addresses[0]);
    struct udp_message *message = udp_pair_bind(&pair, 0, 0, MTU);
    const struct fabric_write write = udp_pair_write(&pair, message, 0);
    const struct fabric_ops *ops = left_fabric->ops;
    left.send_error = EAGAIN;
    assert_int_equal(ops->post_writes(pair.sender.endpoint, 0, &write, 1), 0);
    assert_int_equal(pair.sender.stats.tx_backpressure, 1);
    left.send_error = ENETDOWN; /* as lost as any */
    assert_int_equal(ops->post_writes(pair.sender.endpoint, 0, &write, 1), 1);
    left.send_error = ENXIO;
    assert_int_equal(ops->post_writes(pair.sender.endpoint, 0, &write, 1), -LH_EDEVICE);
    right.gone = true;
    assert_int_equal(ops->poll(pair.receiver.endpoint, 0, out, 1), -LH_EDEVICE);
    udp_pair_unbind(&pair, message);
    udp_message_free(message);
    close_all();
}

static void test_what_is_reported(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = make_attr();
    struct fabric_endpoint *endpoint;
    struct lh_stats stats = {0};
    int fds[FABRIC_POLL_FDS_MAX];
    open_all(addresses[0]);
    const struct fabric_ops *ops = right_fabric->ops;
    assert_string_equal(fabric_warning(right_fabric), "generic mode");
    assert_int_equal(ops->poll_fds(pair.receiver.endpoint, 0, fds), 2);
    assert_int_equal(fds[1], STDIN_FILENO);
    assert_int_equal(ops->poll_fds(pair.receiver.endpoint, FABRIC_CONTROL, fds), 1);
    assert_int_equal(pair.receiver.info.receive_buffer_bytes, 100 * MTU);
    assert_int_equal(ops->arrived(pair.receiver.endpoint, 0), 0);
    right.drop_count = 7;
    ops->count_drops(pair.receiver.endpoint);
    ops->count_drops(pair.receiver.endpoint);
    assert_int_equal(pair.receiver.stats.rx_socket_drops, 7);
    attr.stats = &stats;
    attr.mtu_bytes = MTU + ROCE_PAYLOAD_STEP;
    assert_int_equal(ops->endpoint_create(right_fabric, &attr, &endpoint), -LH_EMTU);
    assert_non_null(strstr(lh_last_error(), "use --mtu 1408"));
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packets_pass_where_it_reaches),
        cmocka_unit_test(test_marks_are_counted),
        cmocka_unit_test(test_packets_of_another_endpoint),
        cmocka_unit_test(test_hostile_packets),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_what_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
