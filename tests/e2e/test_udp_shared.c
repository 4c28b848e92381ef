/*
 * Endpoints of one fabric on the sockets that they share: each gets its own packets and nobody else's, with a
 * direct socket or without, and while that changes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/udp/udp_state.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "base/prng.h"
#include "device/device_registry.h"
#include "support/own_network.h"
#include "support/udp_pair.h"

static const char *const devices[] = {"udp:[::1]", "udp:127.0.0.1"};

static struct fabric *open_device(const char *device)
{
    struct fabric *fabric;
    if (fabric_open(device, 0, &fabric) != 0)
        fail_msg("%s", lh_last_error());
    return fabric;
}

static struct udp_channel *channel_of(const struct udp_side *side)
{
    return ((struct udp_endpoint *)side->endpoint)->channels[0];
}

static bool is_direct(const struct udp_pair *pair)
{
    return udp_direct_of(channel_of(&pair->receiver)) != NULL;
}

/* From now on the fabric makes no more direct sockets than this on channel 0. The port is there once an
 * endpoint was. */
static void limit_direct(struct fabric *fabric, uint32_t socket_slots)
{
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct lh_stats stats = {0};
    struct fabric_endpoint *endpoint;
    attr.stats = &stats;
    assert_int_equal(fabric->ops->endpoint_create(fabric, &attr, &endpoint), 0);
    ((struct udp_fabric *)fabric)->ports[0]->slots_max = socket_slots;
    fabric->ops->endpoint_destroy(endpoint);
}

static void send_range(struct udp_pair *pair, const struct udp_message *message, uint32_t first,
                       uint32_t count)
{
    struct fabric_write writes[UDP_PAIR_WINDOW];
    assert_true(count <= UDP_PAIR_WINDOW);
    for (uint32_t i = 0; i < count; i++)
        writes[i] = udp_pair_write(pair, message, first + i);
    udp_pair_send(pair, writes, count);
}

static void deliver_range(struct udp_pair *pair, const struct udp_message *message, uint32_t first,
                          uint32_t count)
{
    for (uint32_t done = 0; done < count;) {
        uint32_t window = count - done < UDP_PAIR_WINDOW ? count - done : UDP_PAIR_WINDOW;
        uint32_t before = pair->arrivals;
        send_range(pair, message, first + done, window);
        udp_pair_await(pair, before, window);
        done += window;
    }
}

static void assert_no_byte_landed(const struct udp_message *message, uint32_t from_packet, uint32_t mtu)
{
    for (uint64_t i = (uint64_t)from_packet * mtu; i < message->bytes; i++)
        if (message->buffer[i] != message->guarded[0])
            fail_msg("byte %llu of slot %u was written", (unsigned long long)i, message->slot);
}

/* A packet of a message of `to`, exactly as its peer would send it, but by the peer of `by`. */
static void send_as_other(const struct udp_pair *by, const struct udp_pair *to,
                          const struct udp_message *message, uint32_t number, uint32_t change)
{
    static uint8_t bytes[UDP_PACKET_MAX];
    struct roce_packet packet = udp_pair_packet(to, message, number);
    packet.dest_qpn ^= change == 1;
    packet.rkey ^= change == 2;
    udp_pair_throw(by, 0, bytes, udp_pair_forge(by, 0, &packet, bytes), 0);
}

/* Two peers with sockets of their own; one knows all of the other's numbers and keys. */
static void run_hostile(const char *device, uint32_t socket_slots)
{
    struct fabric *server = open_device(device);
    struct fabric *clients[2] = {open_device(device), open_device(device)};
    struct udp_pair pairs[2];
    struct udp_message *messages[2];
    struct fabric_endpoint_attr attr = udp_pair_attr();
    attr.mtu_bytes = 1024;
    limit_direct(server, socket_slots);
    for (uint32_t i = 0; i < 2; i++) {
        udp_pair_join(&pairs[i], clients[i], server, &attr);
        pairs[i].seed = 10 + i;
        messages[i] = udp_pair_bind(&pairs[i], i, 0, 400 * 1024 + 17);
        assert_int_equal(is_direct(&pairs[i]), i < socket_slots);
    }
    assert_int_equal(pairs[0].receiver.info.channel_port[0], pairs[1].receiver.info.channel_port[0]);
    for (uint32_t round = 0; round < 20; round++) {
        for (uint32_t i = 0; i < 2; i++)
            send_range(&pairs[i], messages[i], 10 * round, 10);
        /* What the other may send next, and what it has sent already. */
        send_as_other(&pairs[1], &pairs[0], messages[0], 300 + round, 0);
        send_as_other(&pairs[1], &pairs[0], messages[0], 10 * round, 0);
        send_as_other(&pairs[1], &pairs[0], messages[0], 300, 1); /* no queue pair, or not both's */
        send_as_other(&pairs[1], &pairs[1], messages[1], 300, 2); /* the right one, with a bad key */
        for (uint32_t i = 0; i < 2; i++)
            udp_pair_await(&pairs[i], 10 * round, 10);
    }
    for (uint32_t i = 0; i < 2; i++)
        udp_pair_settle(&pairs[i]);
    assert_int_equal(pairs[0].receiver.stats.bad_source, 40);
    assert_int_equal(pairs[1].receiver.stats.bad_source, 0);
    assert_int_equal(pairs[0].receiver.stats.bad_key, 0);
    assert_int_equal(pairs[1].receiver.stats.bad_key, 20);
    assert_int_equal(pairs[0].receiver.stats.bad_qpn + pairs[1].receiver.stats.bad_qpn, 20);
    assert_no_byte_landed(messages[0], 200, attr.mtu_bytes);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(pairs[i].arrivals, 200);
        assert_int_equal(messages[i]->repeated, 0);
        deliver_range(&pairs[i], messages[i], 200, messages[i]->packets - 200);
        udp_message_assert_whole(messages[i]);
        udp_pair_leave(&pairs[i]);
        clients[i]->ops->close(clients[i]);
    }
    server->ops->close(server);
}

static void test_a_peer_forges_anothers(void **state)
{
    (void)state;
    for (size_t device = 0; device < 2; device++) {
        run_hostile(devices[device], 0);
        run_hostile(devices[device], 1);
        run_hostile(devices[device], 2);
    }
}

/* All connections of two fabrics have the same addresses and ports. What the kernel joins of them may hold
 * packets of several. */
static void test_joined_packets_of_two(void **state)
{
    (void)state;
    static uint8_t burst[24 * UDP_PACKET_MAX];
    for (size_t device = 0; device < 2; device++) {
        for (uint32_t socket_slots = 0; socket_slots < 3; socket_slots++) {
            struct fabric *server = open_device(devices[device]), *client = open_device(devices[device]);
            struct udp_pair pairs[2];
            struct udp_message *messages[2];
            struct fabric_endpoint_attr attr = udp_pair_attr();
            attr.mtu_bytes = 1024;
            limit_direct(server, socket_slots);
            for (uint32_t i = 0; i < 2; i++) {
                udp_pair_join(&pairs[i], client, server, &attr);
                messages[i] = udp_pair_bind(&pairs[i], 3, 1, 48 * 1024);
            }
            size_t bytes = 0;
            uint32_t one = 0;
            for (uint32_t p = 0; p < 24; p++) {
                const struct udp_pair *pair = &pairs[p % 3 == 1];
                struct roce_packet packet = udp_pair_packet(pair, messages[p % 3 == 1], p);
                one = udp_pair_forge(pair, 0, &packet, burst + bytes);
                bytes += one;
            }
            udp_pair_throw(&pairs[0], 0, burst, bytes, (uint16_t)one);
            udp_pair_await(&pairs[0], 0, 16);
            udp_pair_await(&pairs[1], 0, 8);
            for (uint32_t i = 0; i < 2; i++) {
                udp_pair_assert_no_bad(&pairs[i]);
                for (uint32_t p = 0; p < 48; p++)
                    if (p >= 24 || (p % 3 == 1) != (i == 1))
                        deliver_range(&pairs[i], messages[i], p, 1);
                udp_message_assert_whole(messages[i]);
                assert_int_equal(messages[i]->repeated, 0);
                udp_pair_leave(&pairs[i]);
            }
            client->ops->close(client);
            server->ops->close(server);
        }
    }
}

/* One direct socket for two, which each takes from the other again and again, with packets in it, before it
 * and behind it: none is lost. */
static void test_changes_lose_nothing(void **state)
{
    (void)state;
    for (size_t device = 0; device < 2; device++) {
        struct fabric *server = open_device(devices[device]), *client = open_device(devices[device]);
        struct udp_pair pairs[2];
        struct udp_message *messages[2];
        struct fabric_endpoint_attr attr = udp_pair_attr();
        attr.mtu_bytes = 256;
        limit_direct(server, 1);
        for (uint32_t i = 0; i < 2; i++) {
            udp_pair_join(&pairs[i], client, server, &attr);
            messages[i] = udp_pair_bind(&pairs[i], i, 0, 256 * 250000);
        }
        uint32_t sent[2] = {0};
        for (uint32_t change = 0; change < 12; change++) {
            struct udp_pair *has = &pairs[change % 2], *wants = &pairs[1 - change % 2];
            assert_true(is_direct(has));
            assert_false(is_direct(wants));
            uint32_t before = has->arrivals;
            send_range(has, messages[change % 2], sent[change % 2], 24);
            /* As for one that has been quiet for long. */
            atomic_store(&udp_direct_of(channel_of(&has->receiver))->leave, true);
            udp_pair_poll(has);
            send_range(has, messages[change % 2], sent[change % 2] + 24, 24);
            udp_pair_await(has, before, 48);
            sent[change % 2] += 48;
            while (is_direct(has))
                udp_pair_poll(has);
            while (!is_direct(wants)) { /* once the socket has rested */
                assert_true(sent[1 - change % 2] + 48 < messages[0]->packets);
                deliver_range(wants, messages[1 - change % 2], sent[1 - change % 2], 48);
                sent[1 - change % 2] += 48;
            }
        }
        for (uint32_t i = 0; i < 2; i++) {
            assert_int_equal(messages[i]->arrived, sent[i]);
            assert_int_equal(messages[i]->repeated, 0);
            assert_memory_equal(messages[i]->buffer, messages[i]->source, (size_t)256 * sent[i]);
            udp_pair_assert_no_bad(&pairs[i]);
            assert_int_equal(pairs[i].receiver.stats.rx_socket_drops, 0);
            udp_pair_leave(&pairs[i]);
        }
        client->ops->close(client);
        server->ops->close(server);
    }
}

static uint32_t open_descriptors(void)
{
    uint32_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

#define MANY 1000u

/* A peer may take no more for granted than there is, and descriptors do not grow with endpoints. */
static void test_a_thousand_endpoints(void **state)
{
    (void)state;
    struct fabric *server = open_device(devices[0]), *client = open_device(devices[0]);
    struct udp_pair *pairs = calloc(MANY, sizeof *pairs);
    struct fabric_endpoint_attr attr = udp_pair_attr();
    uint32_t at_first = 0;
    assert_non_null(pairs);
    attr.mtu_bytes = 1024;
    for (uint32_t i = 0; i < MANY; i++) {
        udp_pair_join(&pairs[i], client, server, &attr);
        if (i == UDP_SOCKET_SLOTS_MAX)
            at_first = open_descriptors();
    }
    assert_int_equal(open_descriptors(), at_first);
    assert_true(pairs[0].receiver.info.receive_buffer_bytes >
                4 * pairs[MANY - 1].receiver.info.receive_buffer_bytes);
    for (uint32_t i = 0; i < MANY; i += 111) {
        struct udp_message *message = udp_pair_bind(&pairs[i], 0, 0, 100 * 1024 + i);
        deliver_range(&pairs[i], message, 0, message->packets);
        udp_message_assert_whole(message);
        udp_pair_assert_no_bad(&pairs[i]);
    }
    for (uint32_t i = 0; i < MANY; i++)
        udp_pair_leave(&pairs[i]);
    client->ops->close(client);
    server->ops->close(server);
    free(pairs);
}

static uint32_t wakes[2];

static void on_wake(void *context, uint32_t channel)
{
    assert_int_equal(channel, 0);
    wakes[*(const uint32_t *)context]++;
}

/* Whoever reads for all puts aside what is others', and wakes them; one that reads nothing loses what is
 * beyond its share, and nobody else does. */
static void test_shared_poll(void **state)
{
    (void)state;
    static const uint32_t numbers[2] = {0, 1};
    struct fabric *server = open_device(devices[0]), *client = open_device(devices[0]);
    const struct fabric_ops *ops = server->ops;
    struct udp_pair pairs[2];
    struct udp_message *messages[2];
    limit_direct(server, 0);
    for (uint32_t i = 0; i < 2; i++) {
        struct fabric_endpoint_attr attr = udp_pair_attr();
        attr.mtu_bytes = 256;
        attr.wake = on_wake;
        attr.wake_context = (void *)(uintptr_t)&numbers[i];
        udp_pair_join(&pairs[i], client, server, &attr);
        messages[i] = udp_pair_bind(&pairs[i], 0, 0, 256 * 4000);
        wakes[i] = 0;
    }
    assert_false(ops->shared_poll(server));
    uint32_t packets = messages[0]->packets, delivered = 0;
    for (uint32_t sent = 0; sent < packets; sent += 40) {
        send_range(&pairs[0], messages[0], sent, 40);
        send_range(&pairs[1], messages[1], delivered, 8);
        while (udp_inbox_waiting(&channel_of(&pairs[1].receiver)->inbox) < 8)
            ops->shared_poll(server);
        udp_pair_await(&pairs[1], delivered, 8);
        delivered += 8;
    }
    assert_true(wakes[0] >= 1);
    assert_int_equal(wakes[1], packets / 40);
    uint64_t lost = pairs[0].receiver.stats.rx_inbox_overflow;
    assert_in_range(lost, 1, packets - 1);
    assert_int_equal(pairs[1].receiver.stats.rx_inbox_overflow, 0);
    assert_int_equal(pairs[1].arrivals, delivered);
    udp_pair_await(&pairs[0], 0, packets - (uint32_t)lost);
    udp_pair_settle(&pairs[0]);
    assert_int_equal(pairs[0].arrivals, packets - lost);
    for (uint32_t i = 0; i < 2; i++) {
        udp_pair_assert_no_bad(&pairs[i]);
        udp_pair_leave(&pairs[i]);
    }
    client->ops->close(client);
    server->ops->close(server);
}

/* Anything from anywhere. It is counted once, whoever reads, and harms nobody. */
static void test_junk(void **state)
{
    (void)state;
    static uint8_t junk[9000];
    struct lh_prng prng;
    lh_prng_seed(&prng, 11);
    for (size_t device = 0; device < 2; device++) {
        struct fabric *server = open_device(devices[device]), *client = open_device(devices[device]);
        struct fabric_endpoint_attr attr = udp_pair_attr();
        struct udp_pair pair;
        limit_direct(server, (uint32_t)device);
        udp_pair_join(&pair, client, server, &attr);
        struct udp_message *message = udp_pair_bind(&pair, 0, 0, 100 * 4096);
        union udp_address from;
        assert_int_equal(udp_address_parse(devices[device] + 4, &from), 0);
        union udp_address to = from;
        udp_address_set_port(&to, pair.receiver.info.channel_port[0]);
        int fd = socket(from.any.sa_family, SOCK_DGRAM, 0);
        assert_true(fd >= 0);
        struct lh_stats *stats = &pair.receiver.stats;
        for (uint32_t i = 0; i < 1000; i++) {
            for (size_t k = 0; k < 48; k++)
                junk[k] = (uint8_t)lh_prng_next(&prng);
            size_t bytes = i % 10 == 0 ? sizeof junk : lh_prng_next(&prng) % 60;
            if (i % 2 == 0) { /* nearly one of ours */
                junk[0] = ROCE_UC_WRITE_ONLY_IMM;
                junk[1] = 0x40;
                memset(junk + 2, 0xFF, 2);
                memset(junk + 24, 0, 4);
                bytes = 36;
            }
            assert_int_equal(sendto(fd, junk, bytes, 0, &to.any, udp_address_size(&to)), bytes);
            if (i % 3 == 0)
                udp_pair_poll(&pair);
            else
                server->ops->shared_poll(server);
        }
        while (lh_stats_bad_packets(stats) < 1000) { /* the test's time limit ends what hangs */
            server->ops->shared_poll(server);
            udp_pair_poll(&pair);
            server->ops->count_drops(pair.receiver.endpoint);
        }
        assert_true(stats->bad_header > 0 && stats->bad_qpn > 0);
        assert_int_equal(stats->bad_source + stats->bad_icrc + stats->rx_socket_drops, 0);
        server->ops->count_drops(pair.receiver.endpoint);
        assert_int_equal(lh_stats_bad_packets(stats), 1000);
        assert_no_byte_landed(message, 0, attr.mtu_bytes);
        deliver_range(&pair, message, 0, message->packets);
        udp_message_assert_whole(message);
        close(fd);
        udp_pair_leave(&pair);
        client->ops->close(client);
        server->ops->close(server);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_peer_forges_anothers),
        cmocka_unit_test(test_joined_packets_of_two),
        cmocka_unit_test(test_changes_lose_nothing),
        cmocka_unit_test(test_a_thousand_endpoints),
        cmocka_unit_test(test_shared_poll),
        cmocka_unit_test(test_junk),
    };
    own_network();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
