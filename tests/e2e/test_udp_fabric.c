/*
 * The udp fabric over the loopback interface: every byte of what is sent in order, shuffled, twice and in
 * parts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/udp/udp_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/prng.h"
#include "support/own_network.h"
#include "support/udp_pair.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define MIB ((uint64_t)1 << 20)

static const char *const devices[] = {"udp:[::1]", "udp:127.0.0.1"};

/* 0, 1, 2 … */
static uint32_t *packets_in_order(uint32_t count)
{
    uint32_t *packets = malloc(count * sizeof *packets);
    assert_non_null(packets);
    for (uint32_t i = 0; i < count; i++)
        packets[i] = i;
    return packets;
}

static void shuffle(uint32_t *packets, uint32_t count, uint64_t seed)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, seed);
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = (uint32_t)lh_prng_below(&prng, i);
        uint32_t swapped = packets[i - 1];
        packets[i - 1] = packets[j];
        packets[j] = swapped;
    }
}

static void assert_no_bad(const struct udp_pair *pair)
{
    udp_pair_assert_no_bad(pair);
    assert_int_equal(pair->receiver.stats.rx_socket_drops, 0);
}

static void force_plain_sends(struct udp_pair *pair)
{
    struct udp_endpoint *endpoint = (struct udp_endpoint *)pair->sender.endpoint;
    for (uint32_t i = 0; i < pair->attr.channels; i++)
        endpoint->channels[i]->tx.gso = false;
}

static void deliver_in_order(const char *device, const struct fabric_endpoint_attr *attr, uint64_t bytes,
                             bool gso)
{
    struct udp_pair pair;
    udp_pair_open(&pair, device, attr);
    if (!gso)
        force_plain_sends(&pair);
    struct udp_message *message = udp_pair_bind(&pair, 3, 1, bytes);
    uint32_t *packets = packets_in_order(message->packets);
    udp_pair_deliver(&pair, message, packets, message->packets);
    udp_message_assert_whole(message);
    assert_no_bad(&pair);
    assert_int_equal(message->repeated, 0);
    free(packets);
    udp_pair_close(&pair);
}

static void test_in_order(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    for (size_t i = 0; i < 2; i++) {
        deliver_in_order(devices[i], &attr, 64 * MIB, true);
        deliver_in_order(devices[i], &attr, 8 * MIB + 4321, false);
    }
}

/* Sizes around each boundary, all MTUs, one channel and several, with GSO and without. */
static void test_shapes(void **state)
{
    (void)state;
    static const uint64_t tails[] = {0, 1, 2, 3, 4, 255, 256, 257};
    for (size_t device = 0; device < 2; device++) {
        for (uint32_t mtu = ROCE_PAYLOAD_MIN; mtu <= ROCE_MTU_MAX; mtu *= 2) {
            for (uint32_t channels = 1; channels <= 4; channels += 3) {
                struct fabric_endpoint_attr attr = udp_pair_attr();
                attr.mtu_bytes = mtu;
                attr.slot_bytes = MIB; /* small packets, and an offset of so many bits, reach no further */
                attr.channels = channels;
                for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
                    deliver_in_order(devices[device], &attr, 100 * (uint64_t)mtu + tails[i], i % 2 == 0);
                    deliver_in_order(devices[device], &attr, tails[i], i % 2 != 0);
                }
            }
        }
    }
}

/* The receiver's kernel joins nothing, so each packet comes by itself, and on IPv4 with an ID that must be
 * solved for. */
static void test_without_gro(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct fabric_endpoint_attr attr = udp_pair_attr();
        struct udp_pair pair;
        udp_pair_open(&pair, devices[i], &attr);
        struct udp_endpoint *receiver = (struct udp_endpoint *)pair.receiver.endpoint;
        int off = 0;
        assert_int_equal(
            setsockopt(udp_channel_fd(receiver->channels[0]), IPPROTO_UDP, UDP_GRO, &off, sizeof off), 0);
        struct udp_message *message = udp_pair_bind(&pair, 3, 1, 4 * MIB + 1);
        uint32_t *packets = packets_in_order(message->packets);
        udp_pair_deliver(&pair, message, packets, message->packets);
        udp_message_assert_whole(message);
        assert_no_bad(&pair);
        free(packets);
        udp_pair_close(&pair);
    }
}

/* Shuffled whole, then with repeats: half of the packets twice, in another order, over several channels. */
static void deliver_shuffled(const char *device, uint32_t channels, uint32_t mtu, uint64_t bytes, bool gso)
{
    struct fabric_endpoint_attr attr = udp_pair_attr();
    attr.channels = channels;
    attr.mtu_bytes = mtu;
    struct udp_pair pair;
    udp_pair_open(&pair, device, &attr);
    if (!gso)
        force_plain_sends(&pair);
    struct udp_message *message = udp_pair_bind(&pair, 0, 0, bytes);
    uint32_t *packets = packets_in_order(message->packets);
    shuffle(packets, message->packets, bytes + channels);
    udp_pair_deliver(&pair, message, packets, message->packets / 2); /* first half */
    shuffle(packets, message->packets, bytes);
    udp_pair_deliver(&pair, message, packets, message->packets); /* all: half of them again */
    udp_message_assert_whole(message);
    assert_int_equal(message->repeated, message->packets / 2);
    assert_no_bad(&pair);
    free(packets);
    udp_pair_close(&pair);
}

static void test_shuffled(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        deliver_shuffled(devices[i], 1, 4096, 64 * MIB, true);
        deliver_shuffled(devices[i], 3, 4096, 8 * MIB + 77, true);
        deliver_shuffled(devices[i], 8, 1024, 4 * MIB + 1, false);
        deliver_shuffled(devices[i], 2, 256, MIB + 255, true);
    }
}

/* A loss here and there, repaired at the end: what a real link does to the order. */
static void test_repair(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct fabric_endpoint_attr attr = udp_pair_attr();
        attr.channels = 2;
        struct udp_pair pair;
        udp_pair_open(&pair, devices[i], &attr);
        struct udp_message *message = udp_pair_bind(&pair, 15, 3, 16 * MIB + 5);
        uint32_t *packets = packets_in_order(message->packets);
        uint32_t first = 0, second = 0;
        uint32_t *lost = malloc(message->packets * sizeof *lost);
        assert_non_null(lost);
        for (uint32_t p = 0; p < message->packets; p++) {
            if (p % 23 == 5)
                lost[second++] = p;
            else
                packets[first++] = p;
        }
        udp_pair_deliver(&pair, message, packets, first);
        udp_pair_deliver(&pair, message, lost, second);
        udp_message_assert_whole(message);
        assert_no_bad(&pair);
        free(packets);
        free(lost);
        udp_pair_close(&pair);
    }
}

/* Messages one after the other, shorter than their buffers; every slot is used with every generation. */
static void test_slots_in_turn(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    attr.slots = 5;
    struct udp_pair pair;
    udp_pair_open(&pair, devices[0], &attr);
    struct udp_message *window[3] = {NULL};
    for (uint32_t i = 0; i < 60; i++) {
        struct udp_message *message = window[i % 3];
        if (message != NULL) {
            uint32_t *packets = packets_in_order(message->packets);
            udp_pair_deliver(&pair, message, packets, message->packets);
            udp_message_assert_whole(message);
            udp_pair_unbind(&pair, message);
            udp_message_free(message);
            free(packets);
        }
        window[i % 3] = udp_pair_bind(&pair, i % 5, (uint8_t)(i / 5 % 4), 300000);
    }
    assert_no_bad(&pair);
    udp_pair_close(&pair);
}

/* What the receiver says that its sockets hold, they hold; and what they do not, is counted. */
static void overfill(const char *device, uint32_t mtu, bool gso)
{
    struct fabric_endpoint_attr attr = udp_pair_attr();
    attr.mtu_bytes = mtu;
    struct udp_pair pair;
    udp_pair_open(&pair, device, &attr);
    if (!gso)
        force_plain_sends(&pair);
    struct udp_message *message = udp_pair_bind(&pair, 0, 0, 64 * MIB);
    uint32_t fits = (uint32_t)(pair.receiver.info.receive_buffer_bytes / mtu);
    assert_in_range(fits, 1, message->packets - 1);
    for (uint32_t p = 0; p < fits;) {
        struct fabric_write writes[FABRIC_BATCH_MAX];
        uint32_t count = 0;
        for (; count < FABRIC_BATCH_MAX && p < fits; count++, p++)
            writes[count] = udp_pair_write(&pair, message, p);
        udp_pair_send(&pair, writes, count);
    }
    udp_pair_await(&pair, 0, fits);
    assert_no_bad(&pair);
    uint32_t sent = fits;
    for (uint32_t round = 0; round < 6; round++) {
        for (uint32_t p = 0; p < fits; p++, sent++) {
            struct fabric_write write = udp_pair_write(&pair, message, p);
            udp_pair_send(&pair, &write, 1);
        }
    }
    udp_pair_settle(&pair);
    struct fabric_write last = udp_pair_write(&pair, message, fits); /* brings the kernel's count */
    udp_pair_send(&pair, &last, 1);
    udp_pair_settle(&pair);
    assert_true(pair.receiver.stats.rx_socket_drops > 0);
    assert_int_equal(pair.arrivals + pair.receiver.stats.rx_socket_drops, sent + 1);
    udp_pair_close(&pair);
}

static void test_receive_buffer(void **state)
{
    (void)state;
    overfill(devices[0], 4096, false);
    overfill(devices[0], 4096, true);
    overfill(devices[1], 4096, false);
    overfill(devices[0], 1024, false);
    overfill(devices[0], 256, true);
}

static bool waits(const struct udp_pair *pair)
{
    const struct udp_endpoint *receiver = (const struct udp_endpoint *)pair->receiver.endpoint;
    uint8_t byte;
    return recv(udp_channel_fd(receiver->channels[0]), &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
}

/* A poll that finds nothing has looked at everything: who waits for a message must be able to tell that it
 * is not in the socket. Here it lies behind packets that are dropped, as behind late parity. */
static void test_behind_late_packets(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    udp_pair_open(&pair, devices[0], &attr);
    force_plain_sends(&pair);
    struct udp_message *late = udp_pair_bind(&pair, 0, 0, 4 * MIB);
    struct udp_message *message = udp_pair_bind(&pair, 1, 0, 4096);
    udp_pair_unbind(&pair, late);
    for (uint32_t i = 0; i < 400; i++) {
        struct fabric_write write = udp_pair_write(&pair, late, i);
        udp_pair_send(&pair, &write, 1);
    }
    struct fabric_write write = udp_pair_write(&pair, message, 0);
    udp_pair_send(&pair, &write, 1);
    while (pair.arrivals == 0) { /* bounded by the test's own time */
        nanosleep(&(struct timespec){.tv_nsec = 20 * LH_NS_PER_MS}, NULL);
        if (udp_pair_poll(&pair) == 0)
            assert_false(waits(&pair));
    }
    assert_int_equal(pair.receiver.stats.rx_late_packets, 400);
    udp_message_assert_whole(message);
    udp_message_free(late);
    udp_pair_close(&pair);
}

/* However late it was read. A question that the scheduler interrupts gets a later time: one of many does
 * not. */
static void test_arrival_time(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    udp_pair_open(&pair, devices[0], &attr);
    struct fabric *fabric = pair.receiver.fabric;
    struct udp_message *message = udp_pair_bind(&pair, 0, 0, 4096);
    struct fabric_write write = udp_pair_write(&pair, message, 0);
    lh_time sent_ns = fabric->ops->now(fabric);
    udp_pair_send(&pair, &write, 1);
    while (!waits(&pair))
        ; /* bounded by the test's own time */
    lh_time there_ns = fabric->ops->now(fabric), arrived_ns = LH_TIME_NEVER;
    nanosleep(&(struct timespec){.tv_nsec = 20 * LH_NS_PER_MS}, NULL);
    udp_pair_await(&pair, 0, 1);
    for (uint32_t i = 0; i < 100; i++) {
        lh_time answer_ns = fabric->ops->arrived(pair.receiver.endpoint, 0);
        arrived_ns = answer_ns < arrived_ns ? answer_ns : arrived_ns;
    }
    assert_in_range(arrived_ns, sent_ns, there_ns);
    udp_pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),       cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_without_gro),    cmocka_unit_test(test_shuffled),
        cmocka_unit_test(test_receive_buffer), cmocka_unit_test(test_repair),
        cmocka_unit_test(test_slots_in_turn),  cmocka_unit_test(test_behind_late_packets),
        cmocka_unit_test(test_arrival_time),
    };
    own_network();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
