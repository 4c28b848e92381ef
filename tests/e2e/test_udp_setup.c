/*
 * The udp fabric before and beside the data: addresses, ports, refusals, control datagrams, and peers that
 * take us for RoCE hardware (everything to one port).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "device/device_registry.h"
#include "fabric/udp/udp_state.h"

#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "message/connection_state.h"
#include "sdr/qp.h"
#include "support/own_network.h"
#include "support/udp_pair.h"

static void test_device_names(void **state)
{
    (void)state;
    static const struct {
        const char *device;
        int code;
        const char *says;
    } cases[] = {
        {NULL, LH_EDEVICE, "udp:"},
        {"", LH_EDEVICE, "udp:"},
        {"mlx5_0", LH_EDEVICE, "mlx5_0"},
        {"verbs:no-such-device", LH_EDEVICE, "no-such-device"},
        {"udp", LH_EDEVICE, "udp:"},
        {"127.0.0.1", LH_EDEVICE, "udp:"},
        {"[::1]", LH_EDEVICE, "udp:"},
        {"tcp:[::1]", LH_EDEVICE, "udp:"},
        {"ud:[::1]", LH_EDEVICE, "udp:"},
        {"udp:", LH_EADDR, "[2001:db8::1]"},
        {"udp:localhost", LH_EADDR, "localhost"},
        {"udp:[::1", LH_EADDR, "[::1"},
        {"udp:[127.0.0.1]", LH_EADDR, "127.0.0.1"},
        {"udp:[::]", LH_EADDR, "wildcard"},
        {"udp:0.0.0.0", LH_EADDR, "wildcard"},
        {"udp:224.0.0.1", LH_EADDR, "unicast"},
        {"udp:[ff02::1]", LH_EADDR, "unicast"},
        {"udp:255.255.255.255", LH_EADDR, "unicast"},
        {"udp:[::ffff:127.0.0.1]", LH_EADDR, "IPv4"},
        {"udp:[fe80::1]", LH_EADDR, "interface"},
        {"udp:[fe80::1%nosuchif]", LH_EADDR, "nosuchif"},
        {"udp:192.0.2.1", LH_EADDR, "192.0.2.1"}, /* documentation addresses are nobody's */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fabric *fabric = NULL;
        assert_int_equal(fabric_open(cases[i].device, 0, &fabric), -cases[i].code);
        assert_null(fabric);
        if (strstr(lh_last_error(), cases[i].says) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", lh_last_error(), cases[i].says);
    }
    static const char *const good[] = {"udp:[::1]", "udp:::1", "udp:127.0.0.1", "udp:[::1%lo]"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct fabric *fabric;
        if (fabric_open(good[i], 0, &fabric) != 0)
            fail_msg("%s: %s", good[i], lh_last_error());
        assert_string_equal(fabric->ops->name, "udp");
        fabric->ops->close(fabric);
    }
}

/* The second on an address gets another port for control, and both work. */
static void test_two_fabrics(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    attr.channels = QP_INFO_CHANNELS_MAX;
    attr.generations = QP_INFO_GENERATIONS_MAX;
    struct udp_pair pair;
    udp_pair_open(&pair, "udp:127.66.0.1", &attr);
    assert_int_equal(pair.sender.info.control_port, ROCE_UDP_PORT);
    assert_in_range(pair.receiver.info.control_port, 49152, 65535); /* what firewalls let through */
    for (uint32_t i = 0; i < attr.channels; i++) {
        assert_in_range(pair.sender.info.channel_port[i], UDP_DATA_PORT_MIN, UDP_DATA_PORT_MAX);
        assert_int_not_equal(pair.sender.info.channel_port[i], pair.receiver.info.channel_port[i]);
        for (uint32_t g = 0; g < attr.generations; g++)
            assert_in_range(pair.sender.info.qpn[g][i], 2, ROCE_QPN_MASK - 1);
    }
    assert_int_equal(pair.sender.info.fabric, QP_INFO_UDP);
    assert_int_equal(pair.sender.info.family, 4);
    assert_memory_equal(pair.sender.info.address, "\x7F\x42\0\1\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    assert_true(pair.sender.info.receive_buffer_bytes > 0);
    udp_pair_close(&pair);
}

static void test_attributes(void **state)
{
    (void)state;
    struct fabric *fabric;
    assert_int_equal(fabric_open("udp:[::1]", 0, &fabric), 0);
    struct lh_stats stats;
    struct fabric_endpoint *endpoint;
    struct fabric_endpoint_attr good = udp_pair_attr();
    good.stats = &stats;
#define REFUSED(field, value, code)                                                                        \
    do {                                                                                                   \
        struct fabric_endpoint_attr attr = good;                                                           \
        attr.field = value;                                                                                \
        assert_int_equal(fabric->ops->endpoint_create(fabric, &attr, &endpoint), -(code));                 \
    } while (0)
    REFUSED(channels, 0, LH_ERANGE);
    REFUSED(channels, QP_INFO_CHANNELS_MAX + 1, LH_ERANGE);
    REFUSED(generations, 0, LH_ERANGE);
    REFUSED(generations, QP_INFO_GENERATIONS_MAX + 1, LH_ERANGE);
    REFUSED(mtu_bytes, ROCE_PAYLOAD_MIN - 4, LH_EMTU);
    REFUSED(mtu_bytes, ROCE_MTU_MAX + 4, LH_EMTU);
    REFUSED(mtu_bytes, 1022, LH_EMTU);
    REFUSED(slots, 0, LH_ERANGE);
    REFUSED(slots, 1025, LH_ERANGE);
    REFUSED(slot_bytes, 0, LH_ERANGE);
    REFUSED(slot_bytes, ((uint64_t)4096 << 18) + 1, LH_ERANGE);
    REFUSED(stripe_packets, 0, LH_EINVAL);
    REFUSED(split.message_bits, 9, LH_EINVAL);
    REFUSED(stats, NULL, LH_EINVAL);
#undef REFUSED
    fabric->ops->close(fabric);
}

static void test_connect_refusals(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    udp_pair_open(&pair, "udp:[::1]", &attr);
    struct fabric *fabric = pair.sender.fabric;
    struct lh_stats stats;
    attr.stats = &stats;
    struct fabric_endpoint *endpoint;
    assert_int_equal(fabric->ops->endpoint_create(fabric, &attr, &endpoint), 0);
    const struct qp_info_endpoint good = pair.receiver.info;
#define REFUSED(change, code)                                                                              \
    do {                                                                                                   \
        struct qp_info_endpoint peer = good;                                                               \
        change;                                                                                            \
        assert_int_equal(fabric->ops->endpoint_connect(endpoint, &peer), -(code));                         \
    } while (0)
    REFUSED(peer.fabric = QP_INFO_SIM, LH_EHANDSHAKE);
    REFUSED(peer.fabric = 0, LH_EHANDSHAKE);
    REFUSED(peer.family = 4, LH_EADDR);
    REFUSED(peer.channels = 2, LH_EHANDSHAKE);
    REFUSED(peer.generations = 3, LH_EHANDSHAKE);
    REFUSED(peer.control_port = 0, LH_EHANDSHAKE);
    REFUSED(peer.control_qpn = 0, LH_EHANDSHAKE);
    REFUSED(peer.channel_port[0] = 0, LH_EHANDSHAKE);
    REFUSED(peer.qpn[3][0] = 1u << 24, LH_EHANDSHAKE);
#undef REFUSED
    assert_int_equal(fabric->ops->endpoint_connect(endpoint, &good), 0);
    assert_int_equal(fabric->ops->endpoint_connect(endpoint, &good), -LH_ESTATE);
    fabric->ops->endpoint_destroy(endpoint);
    udp_pair_close(&pair);
}

static void test_slot_refusals(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    udp_pair_open(&pair, "udp:[::1]", &attr);
    const struct fabric_ops *ops = pair.receiver.fabric->ops;
    _Atomic uint64_t received = 0;
    static uint8_t buffer[64];
    struct fabric_slot what = {.base = buffer, .length_bytes = sizeof buffer, .received = &received};
    struct fabric_slot_key key;
    assert_int_equal(ops->slot_bind(pair.receiver.endpoint, 16, &what, &key), -LH_ERANGE);
    what.generation = 4;
    assert_int_equal(ops->slot_bind(pair.receiver.endpoint, 15, &what, &key), -LH_ERANGE);
    what.generation = 3;
    what.length_bytes = attr.slot_bytes + 1;
    assert_int_equal(ops->slot_bind(pair.receiver.endpoint, 15, &what, &key), -LH_ERANGE);
    what.length_bytes = sizeof buffer;
    assert_int_equal(ops->slot_bind(pair.receiver.endpoint, 15, &what, &key), 0);
    assert_int_equal(ops->slot_bind(pair.receiver.endpoint, 15, &what, &key), -LH_ESTATE);
    ops->slot_unbind(pair.receiver.endpoint, 15);
    udp_pair_close(&pair);
}

static uint32_t poll_control(struct udp_side *side, struct fabric_control_arrival *arrivals, uint32_t room,
                             uint32_t wanted)
{
    uint32_t got = 0;
    lh_time start = side->fabric->ops->now(side->fabric);
    while (got < wanted && side->fabric->ops->now(side->fabric) < start + 10 * LH_NS_PER_S) {
        int some = side->fabric->ops->control_poll(side->endpoint, arrivals + got, room - got);
        assert_true(some >= 0);
        got += (uint32_t)some;
    }
    return got;
}

static uint32_t woken_channels[8];
static uint32_t woken_count;

static void on_wake(void *context, uint32_t channel)
{
    (void)context;
    woken_channels[woken_count++ % 8] = channel;
}

#define BURST 1024u
/* x packets of an inbox are at most a quarter of the pool without them. */
#define INBOX_HOLDS ((UDP_POOL_PACKETS + UDP_INBOX_SHARE) / (UDP_INBOX_SHARE + 1))

/* Each endpoint gets its own, whoever reads; every length; damage is counted. */
static void exchange_control(const char *device, bool shared)
{
    struct fabric_endpoint_attr attr = udp_pair_attr();
    attr.wake = on_wake;
    struct udp_pair pair;
    assert_true(udp_pair_open_as(&pair, device, shared ? NULL : device, &attr, false));
    struct udp_side *a = &pair.sender, *b = &pair.receiver;
    const struct fabric_ops *ops = a->fabric->ops;
    static uint8_t text[CONTROL_MESSAGE_MAX];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)(i * 31);
    static const uint32_t lengths[] = {0, 1, 2, 3, 4, 32, 1023, 1024};
    struct fabric_datagram datagrams[8];
    for (size_t i = 0; i < 8; i++)
        datagrams[i] = (struct fabric_datagram){text, lengths[i], 0};
    woken_count = 0;
    assert_int_equal(ops->control_send(a->endpoint, datagrams, 8), 8);
    static struct fabric_control_arrival arrivals[INBOX_HOLDS];
    if (shared) {
        usleep(20000); /* the other endpoint finds them, and keeps none */
        assert_int_equal(ops->control_poll(a->endpoint, arrivals, 8), 0);
        assert_int_equal(woken_count, 1);
        assert_int_equal(woken_channels[0], FABRIC_CONTROL);
    }
    assert_int_equal(poll_control(b, arrivals, 8, 8), 8);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(arrivals[i].bytes, lengths[i]);
        assert_memory_equal(arrivals[i].data, text, lengths[i]);
    }
    /* A damaged one among good ones. */
    datagrams[2].corrupt_bit = 1 + 8 * 12 + 5;
    assert_int_equal(ops->control_send(b->endpoint, datagrams, 3), 3);
    assert_int_equal(poll_control(a, arrivals, 2, 2), 2);
    usleep(20000);
    assert_int_equal(ops->control_poll(a->endpoint, arrivals, 2), 0);
    assert_int_equal(a->stats.bad_icrc + b->stats.bad_icrc, 1);
    /* More than the inbox holds, when another endpoint is the one that reads. */
    if (shared) {
        for (uint32_t i = 0; i < INBOX_HOLDS + 6; i++)
            assert_int_equal(ops->control_send(a->endpoint, datagrams, 1), 1);
        usleep(20000);
        for (uint32_t i = 0; i < INBOX_HOLDS; i++)
            ops->control_poll(a->endpoint, arrivals, 8);
        assert_int_equal(poll_control(b, arrivals, INBOX_HOLDS, INBOX_HOLDS), INBOX_HOLDS);
        assert_int_equal(b->stats.rx_inbox_overflow, 6);
    }
    assert_int_equal(a->stats.bad_source + b->stats.bad_source, 0);
    udp_pair_close(&pair);
}

static void test_control(void **state)
{
    (void)state;
    exchange_control("udp:[::1]", false);
    exchange_control("udp:127.0.0.1", false);
    exchange_control("udp:[::1]", true);
    exchange_control("udp:127.0.0.1", true);
}

/* A burst that the kernel joins to a few long messages: what its reader cannot hold stays in the socket. */
static void test_control_burst(void **state)
{
    (void)state;
    static struct fabric_control_arrival arrivals[BURST];
    struct fabric_datagram datagrams[FABRIC_BATCH_MAX];
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    udp_pair_open(&pair, "udp:127.0.0.1", &attr);
    struct udp_side *a = &pair.sender, *b = &pair.receiver;
    for (uint32_t sent = 0; sent < BURST; sent += FABRIC_BATCH_MAX) {
        for (uint32_t i = 0; i < FABRIC_BATCH_MAX; i++)
            datagrams[i] = (struct fabric_datagram){(const uint8_t *)"one of many", 11, 0};
        assert_int_equal(a->fabric->ops->control_send(a->endpoint, datagrams, FABRIC_BATCH_MAX),
                         FABRIC_BATCH_MAX);
    }
    for (uint32_t got = 0; got < BURST; got += 16)
        assert_int_equal(poll_control(b, arrivals, 16, 16), 16);
    assert_int_equal(b->stats.rx_inbox_overflow, 0);
    udp_pair_close(&pair);
}

/* A control datagram that comes before we know the peer waits for that; of a flood, a few do. */
static void test_control_before_connect(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    udp_pair_open(&pair, "udp:[::1]", &attr);
    struct udp_side early = {.fabric = pair.receiver.fabric};
    attr.stats = &early.stats;
    const struct fabric_ops *ops = early.fabric->ops;
    assert_int_equal(ops->endpoint_create(early.fabric, &attr, &early.endpoint), 0);
    ops->endpoint_info(early.endpoint, &early.info);
    struct udp_side other = {.fabric = pair.sender.fabric};
    attr.stats = &other.stats;
    assert_int_equal(ops->endpoint_create(other.fabric, &attr, &other.endpoint), 0);
    ops->endpoint_info(other.endpoint, &other.info);
    assert_int_equal(ops->endpoint_connect(other.endpoint, &early.info), 0);
    struct fabric_datagram datagram = {(const uint8_t *)"ping", 4, 0};
    for (uint32_t i = 0; i < UDP_EARLY_INBOX + 3; i++)
        assert_int_equal(ops->control_send(other.endpoint, &datagram, 1), 1);
    usleep(20000);
    struct fabric_control_arrival arrival;
    assert_int_equal(ops->control_poll(early.endpoint, &arrival, 1), 0);
    const struct udp_fabric *fabric = udp_fabric_of((const struct udp_endpoint *)early.endpoint);
    assert_int_equal(fabric->early, UDP_EARLY_INBOX);
    assert_int_equal(early.stats.rx_inbox_overflow, 3);
    assert_int_equal(ops->endpoint_connect(early.endpoint, &other.info), 0);
    assert_int_equal(fabric->early, 0);
    for (uint32_t i = 0; i < UDP_EARLY_INBOX; i++) {
        assert_int_equal(poll_control(&early, &arrival, 1, 1), 1);
        assert_memory_equal(arrival.data, "ping", 4);
    }
    ops->endpoint_destroy(early.endpoint);
    ops->endpoint_destroy(other.endpoint);
    udp_pair_close(&pair);
}

/* So many endpoints that are not connected that all of them together have their share; each gives it back. */
static void test_control_before_many_connect(void **state)
{
    (void)state;
    enum { COUNT = UDP_EARLY_MAX / UDP_EARLY_INBOX + 1 };
    static struct udp_side early[COUNT], other[COUNT];
    const struct fabric_datagram datagram = {(const uint8_t *)"ping", 4, 0};
    struct fabric_control_arrival arrival;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    udp_pair_open(&pair, "udp:127.0.0.1", &attr);
    const struct fabric_ops *ops = pair.receiver.fabric->ops;
    const struct udp_fabric *fabric = (const struct udp_fabric *)pair.receiver.fabric;
    uint64_t refused = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        attr.stats = &early[i].stats;
        assert_int_equal(ops->endpoint_create(pair.receiver.fabric, &attr, &early[i].endpoint), 0);
        ops->endpoint_info(early[i].endpoint, &early[i].info);
        attr.stats = &other[i].stats;
        assert_int_equal(ops->endpoint_create(pair.sender.fabric, &attr, &other[i].endpoint), 0);
        assert_int_equal(ops->endpoint_connect(other[i].endpoint, &early[i].info), 0);
        for (uint32_t n = 0; n < UDP_EARLY_INBOX; n++)
            assert_int_equal(ops->control_send(other[i].endpoint, &datagram, 1), 1);
    }
    for (uint32_t turn = 0; refused < UDP_EARLY_INBOX && turn < 10000; turn++) {
        ops->control_poll(pair.receiver.endpoint, &arrival, 1); /* reads for all */
        refused = early[COUNT - 1].stats.rx_inbox_overflow;
    }
    assert_int_equal(refused, UDP_EARLY_INBOX);
    assert_int_equal(fabric->early, UDP_EARLY_MAX);
    for (uint32_t i = 0; i < COUNT; i++) {
        ops->endpoint_destroy(early[i].endpoint);
        ops->endpoint_destroy(other[i].endpoint);
    }
    assert_int_equal(fabric->early, 0);
    udp_pair_close(&pair);
}

/* Both take the other for hardware: data goes to the front, and from there to the channels. */
static void deliver_as_hardware(const char *sender, const char *receiver)
{
    struct fabric_endpoint_attr attr = udp_pair_attr();
    attr.channels = 2;
    attr.wake = on_wake;
    struct udp_pair pair;
    if (!udp_pair_open_as(&pair, sender, receiver, &attr, true))
        skip(); /* another process has the RoCE port */
    woken_count = 0;
    struct udp_message *message = udp_pair_bind(&pair, 1, 2, 500 * 4096 + 17);
    for (uint32_t i = 0; i < message->packets; i++)
        udp_pair_deliver(&pair, message, &i, 1);
    for (uint32_t i = 0; i < message->packets; i += 7)
        udp_pair_deliver(&pair, message, &i, 1);
    udp_message_assert_whole(message);
    assert_int_equal(message->repeated, (message->packets + 6) / 7);
    udp_pair_assert_no_bad(&pair);
    assert_true(woken_count > 0);
    udp_pair_close(&pair);
}

static void test_hardware_peer(void **state)
{
    (void)state;
    deliver_as_hardware("udp:127.66.0.2", "udp:127.66.0.3");
}

static void test_hardware_peer_v6(void **state)
{
    (void)state;
    deliver_as_hardware("udp:[::1]", NULL);
}

/* More late packets in an inbox than one poll judges, and a good one behind them. */
static void test_good_behind_late(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    if (!udp_pair_open_as(&pair, "udp:127.66.0.12", "udp:127.66.0.13", &attr, true))
        skip();
    assert_int_equal(udp_pair_poll(&pair), 0); /* from now on the shared socket is read now and then */
    struct udp_message *late = udp_pair_bind(&pair, 1, 0, 64);
    udp_pair_unbind(&pair, late);
    struct udp_message *good = udp_pair_bind(&pair, 2, 0, 64);
    struct udp_inbox *inbox = &((struct udp_endpoint *)pair.receiver.endpoint)->channels[0]->inbox;
    for (uint32_t i = 0; i <= 300; i++) {
        const struct fabric_write write = udp_pair_write(&pair, i < 300 ? late : good, 0);
        udp_pair_send(&pair, &write, 1);
        while (udp_inbox_waiting(inbox) <= i) /* the test's time limit ends what hangs */
            pair.receiver.fabric->ops->shared_poll(pair.receiver.fabric);
    }
    assert_int_equal(udp_pair_poll(&pair), 1);
    assert_int_equal(pair.receiver.stats.rx_late_packets, 300);
    udp_message_assert_whole(good);
    udp_message_free(late);
    udp_pair_close(&pair);
}

static void test_hardware_peer_needs_the_port(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    udp_pair_open(&pair, "udp:127.66.0.4", &attr);
    struct fabric *second = pair.receiver.fabric; /* the first has the port */
    struct lh_stats stats;
    attr.stats = &stats;
    struct fabric_endpoint *endpoint;
    assert_int_equal(second->ops->endpoint_create(second, &attr, &endpoint), 0);
    struct qp_info_endpoint peer = pair.sender.info;
    peer.fabric = QP_INFO_VERBS;
    peer.control_port = peer.channel_port[0] = ROCE_UDP_PORT;
    assert_int_equal(second->ops->endpoint_connect(endpoint, &peer), -LH_EADDR);
    assert_non_null(strstr(lh_last_error(), "4791"));
    second->ops->endpoint_destroy(endpoint);
    udp_pair_close(&pair);
}

/* The kernel refuses to segment: found out while sending, and every packet still arrives. */
static void test_gso_refused(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    udp_pair_open(&pair, "udp:127.0.0.1", &attr);
    struct udp_channel *channel = ((struct udp_endpoint *)pair.sender.endpoint)->channels[0];
    int on = 1;
    assert_int_equal(setsockopt(udp_channel_fd(channel), SOL_SOCKET, SO_NO_CHECK, &on, sizeof on), 0);
    assert_true(channel->tx.gso);
    struct udp_message *message = udp_pair_bind(&pair, 0, 0, 100 * 4096 + 1);
    uint32_t packets[101];
    for (uint32_t i = 0; i < 101; i++)
        packets[i] = i;
    udp_pair_deliver(&pair, message, packets, 101);
    assert_false(channel->tx.gso);
    udp_message_assert_whole(message);
    udp_pair_assert_no_bad(&pair);
    udp_pair_close(&pair);
}

static void test_warning(void **state)
{
    (void)state;
    struct fabric *fabric;
    assert_int_equal(fabric_open("udp:[::1]", 4096, &fabric), 0);
    assert_null(fabric_warning(fabric));
    fabric->ops->close(fabric);
    assert_int_equal(fabric_open("udp:[::1]", UINT64_MAX, &fabric), 0);
    if (geteuid() != 0) {
        assert_non_null(fabric_warning(fabric));
        assert_non_null(strstr(fabric_warning(fabric), "net.core.rmem_max="));
    }
    fabric->ops->close(fabric);
}

/* Bytes a second that the kernel's fair queue would let the channel send, from its next send on. */
static unsigned long kernel_rate(struct fabric_endpoint *endpoint, uint32_t channel)
{
    assert_int_equal(endpoint->fabric->ops->post_writes(endpoint, channel, NULL, 0), 0);
    unsigned long rate = 0;
    socklen_t size = sizeof rate;
    int fd = udp_channel_fd(udp_endpoint_of(endpoint)->channels[channel]);
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, &size), 0);
    assert_int_equal(size, sizeof rate);
    return rate;
}

/* Never below 9/8 of the owner's rate, headers counted; every channel may have it all. */
static void test_pace(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    attr.channels = 2;
    attr.mtu_bytes = 256;
    struct udp_pair pair;
    udp_pair_open(&pair, "udp:[::1]", &attr);
    const struct fabric_ops *ops = pair.sender.fabric->ops;
    static const uint64_t rates[] = {8000, 1000000000, 400000000000};
    for (uint32_t channel = 0; channel < 2; channel++)
        assert_true(kernel_rate(pair.sender.endpoint, channel) == ~0ul);
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        uint64_t wire_bytes = rates[i] / 8 * (256 + ROCE_WRITE_IMM_OVERHEAD_V6) / 256;
        ops->pace(pair.sender.endpoint, rates[i]);
        for (uint32_t channel = 0; channel < 2; channel++)
            assert_in_range(kernel_rate(pair.sender.endpoint, channel), wire_bytes * 9 / 8,
                            wire_bytes * 11 / 8);
    }
    ops->pace(pair.sender.endpoint, UINT64_MAX);
    for (uint32_t channel = 0; channel < 2; channel++)
        assert_true(kernel_rate(pair.sender.endpoint, channel) == ~0ul);
    udp_pair_close(&pair);
}

/* The kernel hears of a rate that the user told. */
static void test_pace_of_a_told_rate(void **state)
{
    (void)state;
    struct lh_connection *ends[2];
    struct lh_attr attr;
    uint8_t blob[LH_BLOB_MAX];
    lh_time next;
    lh_attr_init(&attr);
    attr.workers = LH_NO_WORKERS;
    attr.device = "udp:[::1]";
    for (uint32_t i = 0; i < 2; i++) {
        attr.rate_bps = i == 0 ? 800000000 : 0;
        attr.rate_max_bps = i == 0 ? 0 : 80000000;
        attr.congestion = "fixed";
        if (lh_open(&attr, &ends[i]) != 0)
            fail_msg("%s", lh_last_error());
    }
    for (uint32_t i = 0; i < 2; i++) {
        size_t bytes = sizeof blob;
        assert_int_equal(lh_blob(ends[1 - i], blob, &bytes), 0);
        assert_int_equal(lh_attach(ends[i], blob, bytes), 0);
        assert_true(kernel_rate(ends[i]->qp->endpoint, 0) == ~0ul);
    }
    while (!atomic_load(&ends[0]->qp->proven) || !atomic_load(&ends[1]->qp->proven))
        for (uint32_t i = 0; i < 2; i++)
            assert_int_equal(lh_progress(ends[i], &next), 0);
    assert_in_range(kernel_rate(ends[0]->qp->endpoint, 0), 100000000 * 9 / 8, 100000000 * 11 / 8);
    assert_in_range(kernel_rate(ends[1]->qp->endpoint, 0), 10000000 * 9 / 8, 10000000 * 11 / 8);
    for (uint32_t i = 0; i < 2; i++)
        lh_close(ends[i]);
}

/* In a network namespace of its own, whose loopback interface has this MTU. 0: refused with the right
 * words. */
static int connect_at_mtu(int interface_mtu, const char *device, uint32_t mtu, int code, const char *says)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq request = {.ifr_name = "lo", .ifr_mtu = interface_mtu};
    if (ioctl(fd, SIOCSIFMTU, &request) != 0)
        return 77;
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    if (ioctl(fd, SIOCSIFFLAGS, &request) != 0)
        return 77;
    close(fd);
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct lh_stats stats;
    attr.stats = &stats;
    attr.mtu_bytes = mtu;
    struct fabric *fabric;
    struct fabric_endpoint *endpoint;
    if (fabric_open(device, 0, &fabric) != 0 || fabric->ops->endpoint_create(fabric, &attr, &endpoint) != 0)
        return 2;
    struct qp_info_endpoint own;
    fabric->ops->endpoint_info(endpoint, &own);
    int error = fabric->ops->endpoint_connect(endpoint, &own);
    if (error == code && (says == NULL || strstr(lh_last_error(), says) != NULL))
        return 0;
    fprintf(stderr, "%s at %d: %d %s\n", device, interface_mtu, error, lh_last_error());
    return 3;
}

static void expect_at_mtu(int interface_mtu, const char *device, uint32_t mtu, int code, const char *says)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
            _exit(77);
        _exit(connect_at_mtu(interface_mtu, device, mtu, code, says));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip(); /* no namespaces here */
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_mtu(void **state)
{
    (void)state;
    expect_at_mtu(1500, "udp:127.0.0.1", 4096, -LH_EMTU, "takes 1500; the largest MTU that fits is 1408");
    expect_at_mtu(1500, "udp:127.0.0.1", 4096, -LH_EMTU, "IP packets of 4160 bytes");
    expect_at_mtu(1500, "udp:127.0.0.1", 1408, 0, NULL);
    expect_at_mtu(1500, "udp:[::1]", 2048, -LH_EMTU, "the largest MTU that fits is 1408");
    expect_at_mtu(4096 + 84, "udp:[::1]", 4096, 0, NULL);
    expect_at_mtu(4096 + 83, "udp:[::1]", 4096, -LH_EMTU, "is 4032");
    expect_at_mtu(4096 + 64, "udp:127.0.0.1", 4096, 0, NULL);
    expect_at_mtu(4096 + 63, "udp:127.0.0.1", 4096, -LH_EMTU, "is 4032");
    expect_at_mtu(300, "udp:127.0.0.1", 256, -LH_EMTU, "smallest RoCE MTU");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device_names),
        cmocka_unit_test(test_two_fabrics),
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_connect_refusals),
        cmocka_unit_test(test_slot_refusals),
        cmocka_unit_test(test_control),
        cmocka_unit_test(test_control_burst),
        cmocka_unit_test(test_control_before_connect),
        cmocka_unit_test(test_control_before_many_connect),
        cmocka_unit_test(test_hardware_peer),
        cmocka_unit_test(test_hardware_peer_v6),
        cmocka_unit_test(test_good_behind_late),
        cmocka_unit_test(test_hardware_peer_needs_the_port),
        cmocka_unit_test(test_gso_refused),
        cmocka_unit_test(test_warning),
        cmocka_unit_test(test_pace),
        cmocka_unit_test(test_pace_of_a_told_rate),
        cmocka_unit_test(test_mtu),
    };
    own_network();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
