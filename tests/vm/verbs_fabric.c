/*
 * The verbs fabric on a device, through the interface of fabrics: two endpoints of one process, connected
 * to each other. Runs in a virtual machine on Soft-RoCE.
 *
 *   verbs_fabric DEVICE [PACKETS]   DEVICE: verbs:rxe0/srq=no; PACKETS of the flood
 *                                   DEVICE/protect=indirect: late packets may be told of, but go nowhere
 *   verbs_fabric DEVICE port-down   takes eth0 down, and leaves it so
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "device/device_registry.h"

#define MTU         1024u
#define SLOTS       4u
#define PACKETS     64u /* of a message */
#define SLOT_BYTES  ((size_t)PACKETS * MTU)
#define GENERATIONS 2u
#define CHANNELS    2u
#define STRIPE      8u
#define UNTOUCHED   0xEEu

struct side {
    struct fabric *fabric;
    struct fabric_endpoint *endpoint;
    struct lh_stats stats;
    uint8_t *memory; /* SLOTS + 1 messages */
    uint32_t lkey;
    void *handle;
};

static const char *device;
static uint32_t flood = 40000; /* more than a completion queue of Soft-RoCE has entries */
static struct side sender;
static struct side receiver;
static const _Atomic uint64_t nothing_received[PACKETS / 64];

static void open_side(struct side *side)
{
    *side = (struct side){0};
    if (fabric_open(device, 0, &side->fabric) != 0)
        fail_msg("%s", lh_last_error());
    const struct fabric_endpoint_attr attr = {
        .channels = CHANNELS,
        .generations = GENERATIONS,
        .mtu_bytes = MTU,
        .slots = SLOTS,
        .slot_bytes = SLOT_BYTES,
        .stripe_packets = STRIPE,
        .split = IMMEDIATE_SPLIT_10_18_4,
        .stats = &side->stats,
    };
    const struct fabric_ops *ops = side->fabric->ops;
    if (ops->endpoint_create(side->fabric, &attr, &side->endpoint) != 0)
        fail_msg("%s", lh_last_error());
    side->memory = aligned_alloc(4096, (SLOTS + 1) * SLOT_BYTES);
    assert_int_equal(ops->memory_register(side->fabric, side->memory, (SLOTS + 1) * SLOT_BYTES, &side->lkey,
                                          &side->handle),
                     0);
}

static void connect_side(struct side *side, const struct side *peer)
{
    struct qp_info_endpoint info;
    peer->fabric->ops->endpoint_info(peer->endpoint, &info);
    if (side->fabric->ops->endpoint_connect(side->endpoint, &info) != 0)
        fail_msg("%s", lh_last_error());
}

static int open_pair(void **state)
{
    (void)state;
    open_side(&sender);
    open_side(&receiver);
    connect_side(&sender, &receiver);
    connect_side(&receiver, &sender);
    for (size_t i = 0; i < (SLOTS + 1) * SLOT_BYTES; i++)
        sender.memory[i] = (uint8_t)(i * 7 + i / MTU);
    memset(receiver.memory, UNTOUCHED, (SLOTS + 1) * SLOT_BYTES);
    return 0;
}

static void close_side(struct side *side)
{
    const struct fabric_ops *ops = side->fabric->ops;
    ops->endpoint_destroy(side->endpoint);
    ops->memory_deregister(side->fabric, side->handle);
    ops->close(side->fabric);
    free(side->memory);
}

static int close_pair(void **state)
{
    (void)state;
    close_side(&sender);
    close_side(&receiver);
    return 0;
}

static uint8_t *place(uint32_t message)
{
    return receiver.memory + message * SLOT_BYTES;
}

static struct fabric_slot_key bind_slot(uint32_t slot, uint8_t *base, size_t bytes, uint8_t generation)
{
    const struct fabric_slot what = {base, bytes, receiver.lkey, generation, nothing_received};
    struct fabric_slot_key key;
    if (receiver.fabric->ops->slot_bind(receiver.endpoint, slot, &what, &key) != 0)
        fail_msg("%s", lh_last_error());
    return key;
}

static void unbind_slot(uint32_t slot)
{
    receiver.fabric->ops->slot_unbind(receiver.endpoint, slot);
}

static struct fabric_write write_of(uint32_t slot, uint32_t packet, struct fabric_slot_key key,
                                    uint8_t generation)
{
    return (struct fabric_write){
        .payload = sender.memory + (size_t)packet % PACKETS * MTU,
        .bytes = MTU,
        .lkey = sender.lkey,
        .va = key.base + (uint64_t)packet * MTU,
        .rkey = key.rkey,
        .immediate = immediate_join(IMMEDIATE_SPLIT_10_18_4, (struct immediate_fields){slot, packet, 0}),
        .generation = generation,
    };
}

static uint32_t channel_of(uint32_t packet)
{
    return fabric_channel_of(packet, STRIPE, CHANNELS);
}

static lh_time now(void)
{
    return sender.fabric->ops->now(sender.fabric);
}

/* Until it is taken; what holds a test for ever ends by the time limit of all. */
static void post(uint32_t channel, const struct fabric_write *write)
{
    int taken = 0;
    while (taken == 0)
        taken = sender.fabric->ops->post_writes(sender.endpoint, channel, write, 1);
    if (taken != 1)
        fail_msg("%s", lh_last_error());
}

static void wait_released(uint32_t channel, uint64_t writes)
{
    while (sender.fabric->ops->released(sender.endpoint, channel) < writes)
        continue;
    assert_int_equal(sender.fabric->ops->released(sender.endpoint, channel), writes);
}

/* Arrivals of all channels until `wanted` are there, or none came for a while. */
static uint32_t drain(uint32_t wanted, uint8_t generation)
{
    struct fabric_arrival arrivals[FABRIC_BATCH_MAX];
    uint32_t found = 0;
    lh_time quiet_since = now();
    while (found < wanted && now() - quiet_since < 300 * LH_NS_PER_MS) {
        for (uint32_t channel = 0; channel < CHANNELS; channel++) {
            int count = receiver.fabric->ops->poll(receiver.endpoint, channel, arrivals, FABRIC_BATCH_MAX);
            if (count < 0)
                fail_msg("%s", lh_last_error());
            for (int i = 0; i < count; i++)
                assert_int_equal(arrivals[i].generation, generation);
            found += (uint32_t)count;
            if (count > 0)
                quiet_since = now();
        }
    }
    return found;
}

/* Nothing, or of what is sent to an indirect key at most its completion: it leads to the null key. */
static void assert_none_entered(void)
{
    assert_in_range(drain(1, 0), 0, strstr(device, "protect=indirect") != NULL ? 1 : 0);
}

static void assert_untouched(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != UNTOUCHED)
            fail_msg("byte %zu was written", i);
}

/* One whole message, every byte checked: nothing that went before has wedged anything. */
static void assert_works(uint32_t slot, uint8_t generation)
{
    memset(place(SLOTS), UNTOUCHED, SLOT_BYTES);
    struct fabric_slot_key key = bind_slot(slot, place(SLOTS), SLOT_BYTES, generation);
    for (uint32_t packet = 0; packet < PACKETS; packet++) {
        struct fabric_write write = write_of(slot, packet, key, generation);
        post(channel_of(packet), &write);
    }
    assert_int_equal(drain(PACKETS, generation), PACKETS);
    assert_memory_equal(place(SLOTS), sender.memory, SLOT_BYTES);
    unbind_slot(slot);
}

static void test_traffic(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 40; i++)
        assert_works(i % SLOTS, (uint8_t)(i % GENERATIONS));
    for (uint32_t channel = 0; channel < CHANNELS; channel++)
        wait_released(channel, 40 * PACKETS / CHANNELS);
}

/* What is lent may be overwritten as soon as it was taken; what an emulated link damages is lost. */
static void test_lent_and_damaged(void **state)
{
    (void)state;
    struct fabric_slot_key key = bind_slot(0, place(0), SLOT_BYTES, 0);
    uint8_t lent[MTU];
    for (uint32_t packet = 0; packet < STRIPE; packet++) {
        memset(lent, (int)packet, sizeof lent);
        struct fabric_write write = write_of(0, packet, key, 0);
        write.payload = lent;
        write.lkey = 0;
        write.borrowed = true;
        write.bytes = packet % 2 == 0 ? MTU : 16; /* the device itself copies short ones */
        write.corrupt_bit = packet == 5 ? 99 : 0;
        post(0, &write);
        memset(lent, 0x99, sizeof lent);
    }
    assert_int_equal(drain(STRIPE - 1, 0), STRIPE - 1);
    assert_int_equal(sender.stats.link_dropped, 1);
    wait_released(0, STRIPE);
    for (uint32_t packet = 0; packet < STRIPE; packet++) {
        uint8_t expected[16];
        memset(expected, packet == 5 ? (int)UNTOUCHED : (int)packet, sizeof expected);
        assert_memory_equal(place(0) + packet * MTU, expected, sizeof expected);
    }
    unbind_slot(0);
}

/* A receive that is over: nothing enters its buffer, nor that of the next one of its slot. */
static void test_late_packets(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 8; round++) {
        memset(place(0), UNTOUCHED, 2 * SLOT_BYTES);
        struct fabric_slot_key old = bind_slot(1, place(0), SLOT_BYTES, 0);
        unbind_slot(1);
        struct fabric_write late = write_of(1, 3, old, 0);
        post(channel_of(3), &late);
        assert_none_entered();
        struct fabric_slot_key fresh = bind_slot(1, place(1), SLOT_BYTES, 1);
        post(channel_of(3), &late);
        assert_none_entered();
        assert_untouched(place(0), 2 * SLOT_BYTES);
        struct fabric_write good = write_of(1, 3, fresh, 1);
        post(channel_of(3), &good);
        assert_int_equal(drain(1, 1), 1);
        assert_memory_equal(place(1) + 3 * MTU, sender.memory + 3 * MTU, MTU);
        unbind_slot(1);
    }
    assert_works(1, 0);
}

static void test_wrong_writes(void **state)
{
    (void)state;
    struct fabric_slot_key key = bind_slot(2, place(0), SLOT_BYTES, 0);
    struct fabric_write wrong = write_of(2, 0, key, 0);
    wrong.rkey ^= 0x40;
    post(0, &wrong);
    wrong = write_of(2, 0, key, 0);
    wrong.rkey += 0x10000;
    post(0, &wrong);
    wrong = write_of(2, 0, key, 0);
    wrong.va = key.base + (UINT64_C(1) << 60); /* a key may begin at 0 */
    post(0, &wrong);
    assert_int_equal(drain(1, 0), 0);
    assert_untouched(place(0), SLOT_BYTES);
    /* It goes where it belongs, but its immediate names no slot, or a packet of another channel. */
    wrong = write_of(SLOTS, 0, key, 0);
    post(0, &wrong);
    wrong = write_of(2, STRIPE, key, 0);
    post(0, &wrong);
    assert_int_equal(drain(1, 0), 0);
    assert_int_equal(receiver.stats.bad_range, 1);
    assert_int_equal(receiver.stats.bad_channel, 1);
    unbind_slot(2);
    assert_works(2, 1);
}

/* Nobody polls: receives run out, packets are lost, the completion queue does not overflow. */
static void test_flood(void **state)
{
    (void)state;
    struct fabric_slot_key key = bind_slot(0, place(0), SLOT_BYTES, 0);
    struct fabric_write batch[FABRIC_BATCH_MAX];
    for (uint32_t i = 0; i < FABRIC_BATCH_MAX; i++) {
        batch[i] = write_of(0, i % STRIPE, key, 0);
        batch[i].bytes = 32;
    }
    for (uint32_t posted = 0; posted < flood;) {
        int taken = sender.fabric->ops->post_writes(sender.endpoint, 0, batch, FABRIC_BATCH_MAX);
        if (taken < 0)
            fail_msg("%s", lh_last_error());
        posted += (uint32_t)taken;
        sender.fabric->ops->released(sender.endpoint, 0);
    }
    uint32_t got = drain(flood, 0);
    print_message("%u of %u packets found a receive\n", got, flood);
    assert_in_range(got, 1000, flood - 1);
    unbind_slot(0);
    for (uint8_t generation = 0; generation < GENERATIONS; generation++)
        assert_works(0, generation);
}

static void test_control(void **state)
{
    (void)state;
    uint8_t message[CONTROL_MESSAGE_MAX];
    struct fabric_control_arrival arrivals[16];
    const struct fabric_datagram datagram = {.data = message, .bytes = sizeof message};
    for (uint32_t i = 0; i < 600; i++) { /* more than receives are posted */
        memset(message, (int)(i % 251), sizeof message);
        while (sender.fabric->ops->control_send(sender.endpoint, &datagram, 1) == 0)
            continue;
    }
    usleep(300000);
    for (uint32_t found = 1; found > 0;) {
        int count = receiver.fabric->ops->control_poll(receiver.endpoint, arrivals, 16);
        assert_in_range(count, 0, 16);
        found = (uint32_t)count;
    }
    memset(message, 77, sizeof message);
    assert_int_equal(sender.fabric->ops->control_send(sender.endpoint, &datagram, 1), 1);
    int count = 0;
    while (count == 0)
        count = receiver.fabric->ops->control_poll(receiver.endpoint, arrivals, 16);
    assert_int_equal(count, 1);
    assert_int_equal(arrivals[0].bytes, sizeof message);
    assert_memory_equal(arrivals[0].data, message, sizeof message);
}

/* A packet that is read only when its slot and generation have come back is none of the new receive's. */
static void test_a_generation_comes_back(void **state)
{
    (void)state;
    struct fabric_arrival arrivals[FABRIC_BATCH_MAX];
    struct fabric_slot_key key = bind_slot(1, place(0), SLOT_BYTES, 0);
    struct fabric_write write = write_of(1, 3, key, 0);
    post(channel_of(3), &write);
    usleep(100000);
    for (uint8_t use = 1; use <= GENERATIONS; use++) {
        unbind_slot(1);
        bind_slot(1, place(1), SLOT_BYTES, use % GENERATIONS);
    }
    assert_int_equal(
        receiver.fabric->ops->poll(receiver.endpoint, channel_of(3), arrivals, FABRIC_BATCH_MAX), 0);
    assert_int_equal(place(1)[3 * MTU], UNTOUCHED);
    unbind_slot(1);
}

static bool rings(uint32_t channel)
{
    int fds[FABRIC_POLL_FDS_MAX];
    struct pollfd ready[FABRIC_POLL_FDS_MAX];
    uint32_t count = receiver.fabric->ops->poll_fds(receiver.endpoint, channel, fds);
    for (uint32_t i = 0; i < count; i++)
        ready[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    return poll(ready, count, 2000) > 0;
}

/* As open_pair(), but the sender takes the receiver's first data queue pair for its control, and the other
 * way round: what a stranger may send. */
static int open_crossed(void **state)
{
    (void)state;
    struct qp_info_endpoint info;
    open_side(&sender);
    open_side(&receiver);
    receiver.fabric->ops->endpoint_info(receiver.endpoint, &info);
    uint32_t control_qpn = info.control_qpn;
    info.control_qpn = info.qpn[0][0];
    info.qpn[0][0] = control_qpn;
    if (sender.fabric->ops->endpoint_connect(sender.endpoint, &info) != 0)
        fail_msg("%s", lh_last_error());
    connect_side(&receiver, &sender);
    return 0;
}

/* Messages at a data queue pair, and writes at that of control: each is counted, wakes who sleeps, and
 * stops nothing. */
static void test_strays(void **state)
{
    (void)state;
    const struct fabric_ops *ops = receiver.fabric->ops;
    static const uint8_t message[100];
    const struct fabric_datagram datagram = {.data = message, .bytes = sizeof message};
    struct fabric_write empty = write_of(0, 0, (struct fabric_slot_key){0}, 0);
    struct fabric_arrival arrival;
    struct fabric_control_arrival control;
    empty.bytes = 0;
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(ops->poll(receiver.endpoint, 0, &arrival, 1), 0);
        assert_int_equal(sender.fabric->ops->control_send(sender.endpoint, &datagram, 1), 1);
        assert_true(rings(0));
        assert_int_equal(ops->poll(receiver.endpoint, 0, &arrival, 1), 0);
        assert_int_equal(receiver.stats.bad_header, 2 * i + 1);
        assert_int_equal(ops->control_poll(receiver.endpoint, &control, 1), 0);
        post(0, &empty);
        assert_true(rings(FABRIC_CONTROL));
        assert_int_equal(ops->control_poll(receiver.endpoint, &control, 1), 0);
        assert_int_equal(receiver.stats.bad_header, 2 * i + 2);
    }
}

/* A receive that cannot be bound leaves the others as they are: they still can be closed to late packets.
 */
static void test_a_bind_that_fails(void **state)
{
    (void)state;
    struct fabric_slot_key key = bind_slot(1, place(0), SLOT_BYTES, 0);
    const struct fabric_slot elsewhere = {place(0) - 1000000, SLOT_BYTES, receiver.lkey, 0,
                                          nothing_received};
    struct fabric_slot_key none;
    struct fabric_arrival arrival;
    if (receiver.fabric->ops->slot_bind(receiver.endpoint, 0, &elsewhere, &none) == 0)
        unbind_slot(0); /* registrations do not look at what the user registered */
    unbind_slot(1);
    assert_int_equal(receiver.fabric->ops->poll(receiver.endpoint, 0, &arrival, 1), 0);
    struct fabric_write late = write_of(1, 0, key, 0);
    post(0, &late);
    usleep(100000);
    assert_int_equal(place(0)[0], UNTOUCHED);
    bind_slot(1, place(0), SLOT_BYTES, 1);
    unbind_slot(1);
}

/* The port goes down: an error that names it, from every call, and no hang. Last: it stays down. */
static void test_port_down(void **state)
{
    (void)state;
    assert_int_equal(system("ip link set eth0 down"), 0);
    struct fabric_control_arrival control;
    int status = 0;
    lh_time begin = now();
    while (status == 0 && now() - begin < 10 * LH_NS_PER_S)
        status = receiver.fabric->ops->control_poll(receiver.endpoint, &control, 1);
    assert_int_equal(status, -LH_EDEVICE);
    assert_non_null(strstr(lh_last_error(), "port 1 of device rxe0"));
    struct fabric_arrival arrival;
    assert_int_equal(receiver.fabric->ops->poll(receiver.endpoint, 0, &arrival, 1), -LH_EDEVICE);
    struct fabric_write write = write_of(0, 0, (struct fabric_slot_key){0}, 0);
    assert_int_equal(receiver.fabric->ops->post_writes(receiver.endpoint, 0, &write, 1), -LH_EDEVICE);
    print_message("%s\n", lh_last_error());
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_traffic, open_pair, close_pair),
        cmocka_unit_test_setup_teardown(test_lent_and_damaged, open_pair, close_pair),
        cmocka_unit_test_setup_teardown(test_late_packets, open_pair, close_pair),
        cmocka_unit_test_setup_teardown(test_wrong_writes, open_pair, close_pair),
        cmocka_unit_test_setup_teardown(test_flood, open_pair, close_pair),
        cmocka_unit_test_setup_teardown(test_control, open_pair, close_pair),
        cmocka_unit_test_setup_teardown(test_a_generation_comes_back, open_pair, close_pair),
        cmocka_unit_test_setup_teardown(test_strays, open_crossed, close_pair),
        cmocka_unit_test_setup_teardown(test_a_bind_that_fails, open_pair, close_pair),
    };
    const struct CMUnitTest last[] = {
        cmocka_unit_test_setup_teardown(test_port_down, open_pair, close_pair),
    };
    device = argc > 1 ? argv[1] : "verbs";
    setvbuf(stdout, NULL, _IONBF, 0);
    if (argc > 2 && strcmp(argv[2], "port-down") == 0)
        return cmocka_run_group_tests(last, NULL, NULL);
    if (argc > 2)
        flood = (uint32_t)strtoul(argv[2], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
