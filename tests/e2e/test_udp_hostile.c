/*
 * The udp fabric against what a network and a hostile peer may throw at it: nothing that is not right is
 * counted, and no byte changes that was received, handed back, or never posted.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/udp/udp_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "support/own_network.h"
#include "support/udp_pair.h"

static const char *const devices[] = {"udp:[::1]", "udp:127.0.0.1"};

static void send_range(struct udp_pair *pair, const struct udp_message *message, uint32_t first,
                       uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct fabric_write write = udp_pair_write(pair, message, first + i);
        udp_pair_send(pair, &write, 1);
    }
}

static void deliver_range(struct udp_pair *pair, const struct udp_message *message, uint32_t first,
                          uint32_t count)
{
    uint32_t before = pair->arrivals;
    send_range(pair, message, first, count);
    udp_pair_await(pair, before, count);
}

static void test_damaged(void **state)
{
    (void)state;
    for (size_t device = 0; device < 2; device++) {
        struct fabric_endpoint_attr attr = udp_pair_attr();
        struct udp_pair pair;
        udp_pair_open(&pair, devices[device], &attr);
        struct udp_message *message = udp_pair_bind(&pair, 0, 0, 64 * 4096 + 3);
        /* A bit of each packet's payload, pad or iCRC; in the middle of bursts of good packets. */
        struct fabric_write writes[33];
        uint32_t damaged = 0;
        for (uint32_t i = 0; i < 33; i++) {
            writes[i] = udp_pair_write(&pair, message, 32 + i);
            if (i % 3 == 1 || i == 32) {
                uint32_t packet_bits = 8 * (writes[i].bytes + roce_pad_bytes(writes[i].bytes) + 4);
                writes[i].corrupt_bit = 1 + 8 * 32 + (i * 997) % packet_bits;
                damaged++;
            }
        }
        udp_pair_send(&pair, writes, 33);
        udp_pair_await(&pair, 0, 33 - damaged);
        udp_pair_settle(&pair);
        assert_int_equal(pair.arrivals, 33 - damaged);
        assert_int_equal(pair.receiver.stats.bad_icrc, damaged);
        assert_int_equal(lh_stats_bad_packets(&pair.receiver.stats), damaged);
        for (uint32_t i = 0; i < 33; i++) {
            if (writes[i].corrupt_bit != 0)
                deliver_range(&pair, message, 32 + i, 1);
        }
        deliver_range(&pair, message, 0, 32);
        udp_message_assert_whole(message);
        udp_pair_close(&pair);
    }
}

/* What an earlier use of a slot left on the way changes nothing, neither in the old buffer nor in the new.
 */
static void test_late(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    udp_pair_open(&pair, devices[0], &attr);
    struct udp_message *old = udp_pair_bind(&pair, 7, 2, 50 * 4096);
    deliver_range(&pair, old, 0, 20);
    udp_pair_unbind(&pair, old);
    uint8_t *handed_back = malloc(old->bytes);
    assert_non_null(handed_back);
    memcpy(handed_back, old->buffer, old->bytes);

    send_range(&pair, old, 20, 10); /* the slot is closed */
    udp_pair_settle(&pair);
    assert_int_equal(pair.receiver.stats.rx_late_packets, 10);

    struct udp_message *new = udp_pair_bind(&pair, 7, 3, 50 * 4096);
    assert_int_not_equal(new->key.rkey, old->key.rkey);
    send_range(&pair, old, 30, 10); /* another generation's queue pair */
    udp_pair_settle(&pair);
    assert_int_equal(pair.receiver.stats.rx_late_packets, 20);
    assert_int_equal(lh_stats_bad_packets(&pair.receiver.stats), 0);

    old->generation = 3; /* a former binding's key in the right generation */
    send_range(&pair, old, 40, 10);
    udp_pair_settle(&pair);
    assert_int_equal(pair.receiver.stats.bad_key, 10);
    assert_int_equal(pair.arrivals, 20);
    assert_memory_equal(old->buffer, handed_back, old->bytes);
    udp_message_assert_guards(old);

    deliver_range(&pair, new, 0, new->packets);
    udp_message_assert_whole(new);
    free(handed_back);
    udp_message_free(old);
    udp_pair_close(&pair);
}

/* Another address, and another port of the right address. */
static void test_foreign_source(void **state)
{
    (void)state;
    static const char *const foreign[] = {"udp:[::1]", "udp:127.0.0.3"};
    for (size_t device = 0; device < 2; device++) {
        struct fabric_endpoint_attr attr = udp_pair_attr();
        struct udp_pair pair;
        udp_pair_open(&pair, devices[device], &attr);
        struct udp_pair other;
        udp_pair_open(&other, foreign[device], &attr);
        struct udp_message *message = udp_pair_bind(&pair, 0, 0, 100 * 4096);

        struct udp_side stranger;
        memset(&stranger, 0, sizeof stranger);
        stranger.fabric = other.sender.fabric;
        attr.stats = &stranger.stats;
        assert_int_equal(stranger.fabric->ops->endpoint_create(stranger.fabric, &attr, &stranger.endpoint),
                         0);
        assert_int_equal(stranger.fabric->ops->endpoint_connect(stranger.endpoint, &pair.receiver.info), 0);
        struct fabric_write write[2] = {udp_pair_write(&pair, message, 0),
                                        udp_pair_write(&pair, message, 1)};
        assert_int_equal(stranger.fabric->ops->post_writes(stranger.endpoint, 0, write, 2), 2);
        struct fabric_datagram datagram = {(const uint8_t *)"hello", 5, 0};
        assert_int_equal(stranger.fabric->ops->control_send(stranger.endpoint, &datagram, 1), 1);
        udp_pair_settle(&pair);
        struct fabric_control_arrival arrival;
        struct udp_side *receiver = &pair.receiver;
        assert_int_equal(receiver->fabric->ops->control_poll(receiver->endpoint, &arrival, 1), 0);
        assert_int_equal(pair.arrivals, 0);
        assert_int_equal(receiver->stats.bad_source, 2); /* the two packets are one burst */

        stranger.fabric->ops->endpoint_destroy(stranger.endpoint);
        udp_pair_close(&other);
        deliver_range(&pair, message, 0, message->packets);
        udp_message_assert_whole(message);
        udp_pair_close(&pair);
    }
}

#define JUNK_BYTES 62464u

static uint8_t junk_bytes[JUNK_BYTES];

/* Of the first bytes, the header of a write of this queue pair, with a payload of that length. */
static void set_junk_header(uint32_t qpn, uint32_t payload_bytes)
{
    const struct roce_packet packet = {
        .opcode = ROCE_UC_WRITE_ONLY_IMM, .dest_qpn = qpn, .payload_bytes = payload_bytes};
    roce_encode_header(&packet, junk_bytes);
}

/* From a socket at this address, on any port. */
static void throw_from(const char *address, const struct qp_info_endpoint *to, size_t bytes)
{
    union udp_address from, there;
    assert_int_equal(udp_address_parse(address, &from), 0);
    there = udp_address_make(to->family, to->address, to->channel_port[0], &from);
    int fd = socket(from.any.sa_family, SOCK_DGRAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, &from.any, udp_address_size(&from)), 0);
    assert_int_equal(sendto(fd, junk_bytes, bytes, 0, &there.any, udp_address_size(&there)), bytes);
    close(fd);
}

static void assert_no_byte_landed(const struct udp_message *message)
{
    for (uint64_t i = 0; i < message->bytes; i++)
        if (message->buffer[i] != message->guarded[0])
            fail_msg("byte %llu of slot %u was written", (unsigned long long)i, message->slot);
}

/* Whatever does not look like the peer's to the kernel writes no byte into a posted buffer, not even for a
 * moment: foreign addresses and ports, and of the peer's what is for other queue pairs, no write, or too
 * long. */
static void test_junk_lands_nowhere(void **state)
{
    (void)state;
    static const char *const foreign[] = {"[::1]", "127.0.0.3"};
    static uint8_t bytes[UDP_PACKET_MAX];
    for (size_t device = 0; device < 2; device++) {
        memset(junk_bytes, 0x77, sizeof junk_bytes);
        struct fabric_endpoint_attr attr = udp_pair_attr();
        attr.mtu_bytes = 1024;
        struct udp_pair pair;
        udp_pair_open(&pair, devices[device], &attr);
        struct udp_message *first = udp_pair_bind(&pair, 0, 0, 30 * 1024);
        struct udp_message *second = udp_pair_bind(&pair, 1, 3, 60 * 1024);
        const struct roce_packet good = udp_pair_packet(&pair, first, 3);
        struct lh_stats *stats = &pair.receiver.stats;
        throw_from(foreign[device], &pair.receiver.info, sizeof junk_bytes); /* names nobody */
        udp_pair_settle(&pair);
        assert_int_equal(stats->bad_header, 1);
        set_junk_header(pair.receiver.info.qpn[0][0], 1024);
        throw_from(foreign[device], &pair.receiver.info, sizeof junk_bytes);
        throw_from(foreign[device], &pair.receiver.info, 32 + 1024 + 4);
        udp_pair_settle(&pair);
        assert_int_equal(stats->bad_source, 2);
        for (uint32_t i = 0; i < 4; i++) {
            struct roce_packet packet = good;
            packet.opcode = i == 0 ? ROCE_UC_WRITE_ONLY : packet.opcode;
            packet.dest_qpn ^= i == 1;
            udp_pair_forge(&pair, 0, &packet, bytes);
            memcpy(junk_bytes, bytes, 32);
            lh_put_be32(junk_bytes + 24, i == 2 ? 1028 : i == 3 ? JUNK_BYTES : 1024);
            /* What names no queue pair is read by others than the peer's socket: it needs a right length. */
            udp_pair_throw(&pair, 0, junk_bytes,
                           i == 3   ? 1000
                           : i == 1 ? 32 + 1024 + 4
                                    : sizeof junk_bytes,
                           0);
            udp_pair_settle(&pair);
        }
        udp_pair_throw(&pair, 0, junk_bytes, 32 + 3, 0);
        udp_pair_settle(&pair);
        assert_int_equal(stats->bad_header, 2);
        assert_int_equal(stats->bad_qpn, 1);
        assert_int_equal(stats->bad_length, 3);
        assert_int_equal(stats->rx_socket_drops, 0);
        assert_no_byte_landed(first);
        assert_no_byte_landed(second);
        deliver_range(&pair, first, 0, first->packets);
        deliver_range(&pair, second, 0, second->packets);
        udp_message_assert_whole(first);
        udp_message_assert_whole(second);
        udp_pair_close(&pair);
    }
}

/* What came before the peer was known does not either. */
static void test_junk_from_before_lands_nowhere(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    struct udp_side late;
    struct fabric_slot_key key;
    struct fabric_arrival arrivals[FABRIC_BATCH_MAX];
    static uint8_t buffer[32 * 4096], before[32 * 4096];
    static _Atomic uint64_t received[1];
    memset(junk_bytes, 0x77, sizeof junk_bytes);
    udp_pair_open(&pair, devices[0], &attr);
    memset(&late, 0, sizeof late);
    late.fabric = pair.receiver.fabric;
    attr.stats = &late.stats;
    assert_int_equal(late.fabric->ops->endpoint_create(late.fabric, &attr, &late.endpoint), 0);
    late.fabric->ops->endpoint_info(late.endpoint, &late.info);
    set_junk_header(late.info.qpn[0][0], 4096);
    throw_from("[::1]", &late.info, 32 + 4096 + 4);
    throw_from("[::1]", &late.info, 32 + 4096 + 4);
    assert_int_equal(late.fabric->ops->endpoint_connect(late.endpoint, &pair.sender.info), 0);
    struct fabric_slot what = {.base = buffer, .length_bytes = sizeof buffer, .received = received};
    assert_int_equal(late.fabric->ops->slot_bind(late.endpoint, 0, &what, &key), 0);
    while (late.stats.bad_source < 2) /* the test's time limit ends what hangs */
        assert_true(
            late.fabric->ops->poll(late.endpoint, 0, arrivals, FABRIC_BATCH_MAX) % FABRIC_POLL_AGAIN == 0);
    assert_memory_equal(buffer, before, sizeof buffer);
    late.fabric->ops->endpoint_destroy(late.endpoint);
    udp_pair_close(&pair);
}

/* Random bytes of every length up to two packets, and of the largest, from the peer's own socket. */
static void test_garbage(void **state)
{
    (void)state;
    for (size_t device = 0; device < 2; device++) {
        struct fabric_endpoint_attr attr = udp_pair_attr();
        attr.mtu_bytes = 256;
        struct udp_pair pair;
        udp_pair_open(&pair, devices[device], &attr);
        struct udp_message *message = udp_pair_bind(&pair, 0, 0, 100 * 256);
        struct lh_prng prng;
        lh_prng_seed(&prng, 7);
        static uint8_t garbage[65000];
        for (size_t i = 0; i < sizeof garbage; i++)
            garbage[i] = (uint8_t)lh_prng_next(&prng);
        uint32_t thrown = 0;
        for (size_t bytes = 0; bytes < 600; bytes++) {
            garbage[0] = bytes % 2 != 0 ? ROCE_UC_WRITE_ONLY_IMM : garbage[bytes];
            garbage[1] = 0x40;
            memset(garbage + 2, 0xFF, 2);
            udp_pair_throw(&pair, 0, garbage, bytes, 0);
            thrown++;
            if (bytes % 50 == 0)
                udp_pair_settle(&pair);
        }
        udp_pair_throw(&pair, 0, garbage, sizeof garbage, 0);
        udp_pair_throw(&pair, 0, garbage, 1 + 2 * 64 * 20,
                       2 * 64 * 20 / 40); /* a burst of what is no packet */
        udp_pair_settle(&pair);
        assert_int_equal(pair.arrivals, 0);
        assert_int_equal(lh_stats_bad_packets(&pair.receiver.stats), thrown + 1 + 41);
        deliver_range(&pair, message, 0, message->packets);
        udp_message_assert_whole(message);
        udp_pair_close(&pair);
    }
}

/* Well-made packets in which one thing is wrong; each goes to the counter of its own. */
static void test_wrong_fields(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    attr.channels = 2;
    struct udp_pair pair;
    udp_pair_open(&pair, devices[0], &attr);
    struct udp_message *message = udp_pair_bind(&pair, 2, 1, 40 * 4096 + 100);
    const struct roce_packet good = udp_pair_packet(&pair, message, 3);
    struct lh_stats *stats = &pair.receiver.stats;
    static uint8_t bytes[UDP_PACKET_MAX];
#define THROW(change, counter)                                                                             \
    do {                                                                                                   \
        struct roce_packet packet = good;                                                                  \
        change;                                                                                            \
        uint64_t counted = stats->counter;                                                                 \
        udp_pair_throw(&pair, 0, bytes, udp_pair_forge(&pair, 0, &packet, bytes), 0);                      \
        udp_pair_settle(&pair);                                                                            \
        assert_int_equal(stats->counter, counted + 1);                                                     \
    } while (0)
    THROW(packet.dest_qpn ^= 1, bad_qpn);
    THROW(packet.dest_qpn = pair.receiver.info.qpn[1][1], bad_qpn); /* the other channel's */
    THROW(packet.dest_qpn = pair.receiver.info.qpn[2][0], rx_late_packets);
    THROW(packet.opcode = ROCE_UC_WRITE_ONLY, bad_header);
    THROW(packet.rkey ^= 1, bad_key);
    THROW(packet.va += 4096, bad_range);
    THROW(packet.va += attr.slot_bytes, rx_late_packets); /* slot 3, which is closed */
    THROW(packet.va = attr.slot_bytes * 16, bad_range);
    THROW(packet.immediate += 1u << 22, bad_range);
    THROW((packet.va += 37 * 4096, packet.immediate += 37u << 4), bad_range); /* over the end */
    THROW((packet.va += 16 * 4096, packet.immediate += 16u << 4), bad_channel);
    THROW(packet.payload_bytes = 0, bad_length);
#undef THROW
    assert_int_equal(pair.arrivals, 0);
    assert_int_equal(lh_stats_bad_packets(stats), 10);
    udp_pair_settle(&pair);
    deliver_range(&pair, message, 0, message->packets);
    udp_message_assert_whole(message);
    udp_pair_close(&pair);
}

/* Bursts of valid packets with random bits flipped and the iCRC made again, among a real transfer. */
static void test_mutated(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    attr.mtu_bytes = 512;
    struct udp_pair pair;
    udp_pair_open(&pair, devices[0], &attr);
    struct udp_message *message = udp_pair_bind(&pair, 1, 0, 1000 * 512);
    struct udp_message *closed = udp_pair_bind(&pair, 0, 0, 1000 * 512);
    udp_pair_unbind(&pair, closed);
    uint8_t *handed_back = malloc(closed->bytes);
    assert_non_null(handed_back);
    memcpy(handed_back, closed->buffer, closed->bytes);
    struct lh_prng prng;
    lh_prng_seed(&prng, 11);
    static uint8_t junk[ROCE_MTU_MAX];
    static uint8_t bytes[UDP_PACKET_MAX];
    for (uint32_t i = 0; i < message->packets; i++) {
        for (uint32_t k = 0; k < 4; k++) {
            struct roce_packet packet = udp_pair_packet(&pair, k % 2 != 0 ? message : closed,
                                                        (uint32_t)lh_prng_below(&prng, message->packets));
            packet.payload = junk;
            packet.payload_bytes = (uint32_t)lh_prng_below(&prng, 1000);
            /* One bit of each field at most: the key never fits, so nothing of this may pass. */
            packet.rkey ^= 1u << lh_prng_below(&prng, 32);
            packet.va ^= lh_prng_below(&prng, 2) << lh_prng_below(&prng, 64);
            packet.immediate ^= (uint32_t)lh_prng_below(&prng, 2) << lh_prng_below(&prng, 32);
            udp_pair_throw(&pair, 0, bytes, udp_pair_forge(&pair, 0, &packet, bytes), 0);
        }
        deliver_range(&pair, message, i, 1);
    }
    udp_message_assert_whole(message);
    assert_memory_equal(closed->buffer, handed_back, closed->bytes);
    udp_message_assert_guards(closed);
    assert_int_equal(lh_stats_bad_packets(&pair.receiver.stats) + pair.receiver.stats.rx_late_packets,
                     4000);
    free(handed_back);
    udp_message_free(closed);
    udp_pair_close(&pair);
}

static int poll_few(struct udp_pair *pair, uint32_t count, struct fabric_arrival *arrivals)
{
    return pair->receiver.fabric->ops->poll(pair->receiver.endpoint, 0, arrivals, count);
}

/* One message of the kernel holds more arrivals than the caller takes: the rest waits, save when its slot
 * closes. */
static void test_more_arrivals_than_room(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    attr.mtu_bytes = 256;
    struct udp_pair pair;
    udp_pair_open(&pair, devices[0], &attr);
    struct udp_message *message = udp_pair_bind(&pair, 4, 0, 60 * 256);
    struct fabric_write writes[60];
    for (uint32_t i = 0; i < 60; i++)
        writes[i] = udp_pair_write(&pair, message, i);
    udp_pair_send(&pair, writes, 60);
    for (uint32_t i = 0; i < 40;) {
        struct fabric_arrival arrivals[3];
        int got = poll_few(&pair, i % 3 + 1, arrivals);
        for (int k = 0; k < got; k++)
            assert_int_equal(immediate_part(attr.split, arrivals[k].immediate).packet, i++);
    }
    udp_pair_unbind(&pair, message);
    struct fabric_arrival arrivals[FABRIC_BATCH_MAX];
    assert_int_equal(poll_few(&pair, FABRIC_BATCH_MAX, arrivals), 0);
    assert_in_range(pair.receiver.stats.rx_late_packets, 18, 20);
    assert_memory_equal(message->buffer, message->source, message->bytes);
    udp_message_assert_guards(message);
    udp_message_free(message);
    udp_pair_close(&pair);
}

/* Packets that were received but not yet returned have no bit. Garbage must not land on them for all that.
 */
static void test_waiting_arrivals_stay(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    attr.mtu_bytes = 256;
    struct udp_pair pair;
    udp_pair_open(&pair, devices[0], &attr);
    struct udp_message *message = udp_pair_bind(&pair, 0, 0, 60 * 256);
    struct fabric_write writes[60];
    for (uint32_t i = 0; i < 60; i++)
        writes[i] = udp_pair_write(&pair, message, i);
    udp_pair_send(&pair, writes, 60);
    struct fabric_arrival arrivals[FABRIC_BATCH_MAX];
    while (poll_few(&pair, 1, arrivals) == 0) {
    }
    static uint8_t garbage[60 * (256 + 36)];
    memset(garbage, 0xEE, sizeof garbage);
    const struct roce_packet good = udp_pair_packet(&pair, message, 0);
    udp_pair_forge(&pair, 0, &good, garbage); /* the kernel filters a burst by its first header */
    garbage[40] ^= 1;
    udp_pair_throw(&pair, 0, garbage, sizeof garbage, 256 + 36);
    uint64_t bad = 0;
    uint32_t got = 1;
    while (bad < 60) { /* the test's time limit ends what hangs */
        got += (uint32_t)poll_few(&pair, FABRIC_BATCH_MAX, arrivals);
        bad = lh_stats_bad_packets(&pair.receiver.stats);
        if (got == 60 && bad == 0) /* all are returned: now their bits are set */
            atomic_store(message->received, ((uint64_t)1 << 60) - 1);
    }
    assert_int_equal(got, 60);
    assert_memory_equal(message->buffer, message->source, message->bytes);
    udp_message_assert_guards(message);
    udp_pair_close(&pair);
}

/* Damaged packets with the key of a receive: one whose good copy has come, but has no bit yet, among the
 * arrivals that are returned and among those that wait; and one that has not come otherwise. */
static void test_damaged_packets_change_no_byte(void **state)
{
    (void)state;
    enum { PACKETS = 8, PACKET_BYTES = 256 + 36 };
    for (uint32_t missing = 0; missing < PACKETS; missing++) {
        for (uint32_t room = 1; room <= PACKETS; room++) {
            struct fabric_endpoint_attr attr = udp_pair_attr();
            attr.mtu_bytes = 256;
            struct udp_pair pair;
            udp_pair_open(&pair, devices[missing % 2], &attr);
            struct udp_message *message = udp_pair_bind(&pair, 0, 0, PACKETS * 256);
            static uint8_t burst[(PACKETS + 1) * PACKET_BYTES], before[256];
            memcpy(before, message->buffer + missing * 256, sizeof before);
            for (uint32_t i = 0; i <= PACKETS; i++) {
                const struct roce_packet packet =
                    udp_pair_packet(&pair, message, (missing + 1 + i) % PACKETS);
                uint8_t *at = burst + i * PACKET_BYTES;
                assert_int_equal(udp_pair_forge(&pair, 0, &packet, at), PACKET_BYTES);
                if (i < PACKETS - 1)
                    continue;
                /* From the last byte of the header on, the fragment of the immediate, or behind it. */
                at[31 + room % 2] ^= 1;
                at[32 + room % 2] ^= 4;
            }
            udp_pair_throw(&pair, 0, burst, sizeof burst, PACKET_BYTES);
            uint32_t got = 0, seen = 0;
            while (got < PACKETS - 1) { /* the test's time limit ends what hangs */
                struct fabric_arrival arrivals[PACKETS];
                int few = poll_few(&pair, room, arrivals);
                for (int k = 0; k < few; k++, got++)
                    seen |= 1u << immediate_part(attr.split, arrivals[k].immediate).packet;
            }
            assert_int_equal(seen, 0xFFu & ~(1u << missing));
            assert_int_equal(pair.receiver.stats.bad_icrc, 2);
            for (uint32_t i = 0; i < PACKETS; i++)
                assert_memory_equal(message->buffer + i * 256,
                                    i == missing ? before : message->source + i * 256, 256);
            udp_message_assert_guards(message);
            udp_pair_close(&pair);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_foreign_source),
        cmocka_unit_test(test_junk_lands_nowhere),
        cmocka_unit_test(test_junk_from_before_lands_nowhere),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_wrong_fields),
        cmocka_unit_test(test_mutated),
        cmocka_unit_test(test_more_arrivals_than_room),
        cmocka_unit_test(test_waiting_arrivals_stay),
        cmocka_unit_test(test_damaged_packets_change_no_byte),
    };
    own_network();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
