/*
 * test_udp_rx_sharing.c - sockets that endpoints share: who reads them for whom, how long that waits for
 * room, and who gets a socket of its own. Time is this file's.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "fabric/udp/udp_parts.h"
#include "support/udp_pair.h"

#define MTU 4096u

static const char *const devices[] = {"udp:[::1]", "udp:127.0.0.1"};

static struct udp_endpoint *udp_of(const struct udp_side *side)
{
    return (struct udp_endpoint *)side->endpoint;
}

static struct udp_channel *channel_of(const struct udp_side *side)
{
    return udp_of(side)->channels[0];
}

/* ---- time, and who was woken --------------------------------------------------------------------------- */

static lh_time time_ns;
static struct fabric_ops ops_in_time;

static lh_time now(struct fabric *fabric)
{
    (void)fabric;
    return time_ns;
}

static void stop_clock(struct fabric *fabric)
{
    time_ns = LH_NS_PER_S;
    ops_in_time = fabric_udp_ops;
    ops_in_time.now = now;
    fabric->ops = &ops_in_time;
}

static uint32_t woken[8], woken_count;

static void on_wake(void *context, uint32_t channel)
{
    (void)context;
    woken[woken_count++ % 8] = channel;
}

static void expect_woken(uint32_t count, uint32_t channel)
{
    assert_int_equal(woken_count, count);
    if (count > 0)
        assert_int_equal(woken[count - 1], channel);
    woken_count = 0;
}

static void open_pair(struct udp_pair *pair, const char *device)
{
    struct fabric_endpoint_attr attr = udp_pair_attr();
    attr.wake = on_wake;
    udp_pair_open(pair, device, &attr);
    woken_count = 0;
}

static void send_control(const struct udp_pair *pair)
{
    const struct fabric_datagram datagram = {(const uint8_t *)"told", 4, 0};
    assert_int_equal(pair->sender.fabric->ops->control_send(pair->sender.endpoint, &datagram, 1), 1);
}

static int poll_control(const struct udp_pair *pair)
{
    struct fabric_control_arrival out;
    int got = pair->receiver.fabric->ops->control_poll(pair->receiver.endpoint, &out, 1);
    if (got > 0)
        assert_memory_equal(out.data, "told", 4);
    return got;
}

/* ---- for whom it is read ------------------------------------------------------------------------------- */

/* By nobody's endpoint: all is put aside, its owner woken once, and what is nobody's counted at whom asks. */
static void test_read_for_all(void **state)
{
    (void)state;
    struct udp_pair pair;
    for (unsigned device = 0; device < 2; device++) {
        open_pair(&pair, devices[device]);
        struct fabric *fabric = pair.receiver.fabric;
        assert_false(fabric->ops->shared_poll(fabric));
        for (unsigned i = 0; i < 3; i++)
            send_control(&pair);
        assert_false(fabric->ops->shared_poll(fabric));
        expect_woken(1, FABRIC_CONTROL);
        assert_int_equal(udp_inbox_waiting(&udp_of(&pair.receiver)->control), 3);
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(poll_control(&pair), 1);
        assert_int_equal(poll_control(&pair), 0);
        udp_pair_throw(&pair, 0, "no packet at all, however long", 30, 0);
        assert_false(fabric->ops->shared_poll(fabric));
        assert_int_equal(lh_stats_bad_packets(&pair.receiver.stats), 0);
        fabric->ops->count_drops(pair.receiver.endpoint);
        fabric->ops->count_drops(pair.receiver.endpoint);
        assert_int_equal(pair.receiver.stats.bad_header, 1);
        udp_pair_close(&pair);
    }
}

/* A poll takes four batches of eight messages, and says that there may be more. */
static void test_read_some(void **state)
{
    (void)state;
    struct udp_pair pair;
    open_pair(&pair, devices[1]);
    struct fabric *fabric = pair.receiver.fabric;
    for (unsigned i = 0; i < 40; i++)
        send_control(&pair);
    assert_true(fabric->ops->shared_poll(fabric));
    uint32_t read = udp_inbox_waiting(&udp_of(&pair.receiver)->control);
    assert_in_range(read, 32, 40); /* the kernel may join some */
    assert_false(fabric->ops->shared_poll(fabric));
    for (unsigned i = 0; i < 40; i++)
        assert_int_equal(poll_control(&pair), 1);
    assert_int_equal(poll_control(&pair), 0);
    udp_pair_close(&pair);
}

/* While another thread is at it, nobody waits for it. */
static void test_another_reads(void **state)
{
    (void)state;
    struct udp_pair pair;
    open_pair(&pair, devices[1]);
    struct udp_fabric *fabric = udp_fabric_of(udp_of(&pair.receiver));
    uint32_t messages = 0;
    send_control(&pair);
    pthread_mutex_lock(&fabric->lock);
    assert_false(fabric->base.ops->shared_poll(&fabric->base));
    udp_demux_try(udp_of(&pair.receiver));
    assert_int_equal(udp_demux_shared(channel_of(&pair.receiver), &messages), UDP_LEFT_UNKNOWN);
    pthread_mutex_unlock(&fabric->lock);
    assert_int_equal(udp_inbox_waiting(&udp_of(&pair.receiver)->control), 0);
    udp_demux_try(udp_of(&pair.receiver));
    assert_int_equal(udp_inbox_waiting(&udp_of(&pair.receiver)->control), 1);
    assert_int_equal(poll_control(&pair), 1);
    udp_pair_close(&pair);
}

/* The half of the memory is taken, and nobody gives any back: the front is read again after two asks of each
 * endpoint, and one. */
static void test_patience(void **state)
{
    (void)state;
    for (unsigned more = 0; more < 3; more++) {
        struct udp_pair pair, others[2];
        struct fabric_endpoint_attr attr = udp_pair_attr();
        open_pair(&pair, devices[1]);
        for (unsigned i = 0; i < more; i++)
            udp_pair_join(&others[i], pair.sender.fabric, pair.receiver.fabric, &attr);
        struct udp_fabric *fabric = udp_fabric_of(udp_of(&pair.receiver));
        assert_int_equal(fabric->endpoints, 1 + more);
        assert_int_equal(poll_control(&pair), 0);
        atomic_fetch_add(&fabric->control.in_use, UDP_POOL_PACKETS / 2);
        send_control(&pair);
        for (unsigned asks = 0; asks < 1 + 2 * (1 + more); asks++)
            assert_int_equal(poll_control(&pair), 0);
        assert_int_equal(poll_control(&pair), 1);
        atomic_fetch_sub(&fabric->control.in_use, UDP_POOL_PACKETS / 2);
        for (unsigned i = 0; i < more; i++)
            udp_pair_leave(&others[i]);
        udp_pair_close(&pair);
    }
}

/* ---- marks of what was put aside --------------------------------------------------------------------- */

static void put_aside(const struct udp_pair *pair, const struct udp_message *message, uint32_t damage)
{
    struct udp_channel *channel = channel_of(&pair->receiver);
    uint8_t data[UDP_PACKET_MAX];
    const struct roce_packet packet = udp_pair_packet(pair, message, 0);
    union udp_address from = udp_of(&pair->receiver)->peer_address;
    if (udp_of(&pair->receiver)->peer.fabric == QP_INFO_UDP)
        udp_address_set_port(&from, channel->peer_port);
    else
        udp_address_set_port(&from, channel_of(&pair->sender)->port->shared.port);
    struct udp_part part = {.from = &from, .data = data, .marked = true};
    part.bytes = udp_pair_forge(pair, 0, &packet, data);
    data[part.bytes - 1] ^= (uint8_t)damage;
    struct udp_packet_pool *pool = &udp_fabric_of(udp_of(&pair->receiver))->packets;
    assert_int_not_equal(udp_inbox_put(pool, &channel->inbox, &part), UDP_PUT_REFUSED);
}

/* Only what is the peer's tells of the path to it. */
static void test_marks(void **state)
{
    (void)state;
    struct udp_pair pair;
    open_pair(&pair, devices[0]);
    struct udp_message *message = udp_pair_bind(&pair, 0, 0, MTU);
    put_aside(&pair, message, 1);
    assert_int_equal(udp_pair_poll(&pair), 0);
    assert_int_equal(pair.receiver.stats.rx_marked_packets, 0);
    assert_int_equal(pair.receiver.stats.bad_icrc, 1);
    put_aside(&pair, message, 0);
    assert_int_equal(udp_pair_poll(&pair), 1);
    assert_int_equal(pair.receiver.stats.rx_marked_packets, 1);
    channel_of(&pair.receiver)->peer_port ^= 1;
    put_aside(&pair, message, 0);
    channel_of(&pair.receiver)->peer_port ^= 1;
    assert_int_equal(udp_pair_poll(&pair), 0);
    assert_int_equal(pair.receiver.stats.rx_marked_packets, 1);
    assert_int_equal(pair.receiver.stats.bad_source, 1);
    udp_message_assert_whole(message);
    udp_pair_close(&pair);
}

static void expect_notifications(const struct udp_pair *pair, uint64_t count)
{
    udp_demux_try(udp_of(&pair->sender));
    assert_int_equal(pair->sender.stats.rx_congestion_notifications, count);
    assert_int_equal(lh_stats_bad_packets(&pair->sender.stats), 0);
}

/* Hardware is told of a mark, of each queue pair at most once in 50 us, and from the clock's first moment on;
 * not of a packet that is not its. */
static void test_notifications(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    if (!udp_pair_open_as(&pair, "udp:127.66.4.4", "udp:127.66.4.5", &attr, true))
        skip(); /* another process has the RoCE port */
    stop_clock(pair.receiver.fabric);
    time_ns = 1;
    struct udp_message *first = udp_pair_bind(&pair, 0, 0, MTU), *second = udp_pair_bind(&pair, 1, 1, MTU);
    put_aside(&pair, first, 1);
    assert_int_equal(udp_pair_poll(&pair), 0);
    expect_notifications(&pair, 0);
    put_aside(&pair, first, 0);
    assert_int_equal(udp_pair_poll(&pair), 1);
    expect_notifications(&pair, 1);
    time_ns += UDP_CNP_INTERVAL_NS - 1;
    put_aside(&pair, first, 0);
    put_aside(&pair, second, 0);
    udp_pair_poll(&pair);
    expect_notifications(&pair, 2); /* of the second */
    time_ns++;
    put_aside(&pair, first, 0);
    udp_pair_poll(&pair);
    expect_notifications(&pair, 3);
    udp_pair_close(&pair);
}

/* Their data comes to the port of all control datagrams. */
static void test_data_of_hardware(void **state)
{
    (void)state;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    if (!udp_pair_open_as(&pair, "udp:127.66.4.6", "udp:127.66.4.7", &attr, true))
        skip(); /* another process has the RoCE port */
    struct udp_message *message = udp_pair_bind(&pair, 0, 0, 5 * MTU + 3);
    static const uint32_t packets[] = {0, 1, 2, 3, 4, 5};
    udp_pair_deliver(&pair, message, packets, 6);
    udp_message_assert_whole(message);
    udp_pair_assert_no_bad(&pair);
    udp_pair_close(&pair);
}

/* ---- who has a socket of its own --------------------------------------------------------------------- */

/* As many packets as one by one are enough for a socket of its own, from the shared one. */
static void send_many(struct udp_pair *pair, struct udp_message *message, unsigned packets)
{
    const struct fabric_write write = udp_pair_write(pair, message, 0);
    for (unsigned i = 0; i < packets; i++) {
        udp_pair_send(pair, &write, 1);
        for (unsigned polls = 0; udp_pair_poll(pair) == 0; polls++)
            assert_in_range(polls, 0, 1000000);
    }
}

static struct udp_pair quiet, busy;
static struct udp_message *message, *last;

/* There is one socket, which the quiet one has, and so the busy one has none. Returns it. */
static struct udp_direct *open_two(void)
{
    struct fabric_endpoint_attr attr = udp_pair_attr();
    attr.wake = on_wake;
    open_pair(&quiet, devices[1]);
    stop_clock(quiet.receiver.fabric);
    struct udp_direct *direct = udp_direct_of(channel_of(&quiet.receiver));
    assert_non_null(direct);
    channel_of(&quiet.receiver)->port->slots_max = 1;
    udp_pair_join(&busy, quiet.sender.fabric, quiet.receiver.fabric, &attr);
    assert_null(udp_direct_of(channel_of(&busy.receiver)));
    message = udp_pair_bind(&busy, 0, 0, MTU);
    last = udp_pair_bind(&quiet, 1, 1, MTU);
    woken_count = 0;
    return direct;
}

static void close_two(void)
{
    udp_message_assert_whole(message);
    udp_pair_assert_no_bad(&busy);
    udp_pair_assert_no_bad(&quiet);
    udp_pair_leave(&busy);
    udp_pair_close(&quiet);
}

/* Each 64 packets of the busy one look for a socket: the owner was active, then it is quiet since now, and is
 * asked once that was long. */
static void ask_for_it(struct udp_direct *direct)
{
    const struct udp_rx *rx = &channel_of(&busy.receiver)->rx;
    send_many(&busy, message, 63);
    assert_int_equal(rx->from_inbox, 63);
    for (unsigned sweep = 0; sweep < 2; sweep++) {
        send_many(&busy, message, 64 - 63 * !sweep);
        assert_int_equal(rx->from_inbox, 0);
        assert_false(atomic_load(&direct->leave));
    }
    time_ns += UDP_SOCKET_SLOT_QUIET_NS;
    send_many(&busy, message, 63);
    expect_woken(0, 0);
    send_many(&busy, message, 1);
    assert_true(atomic_load(&direct->leave));
    expect_woken(1, 0);
}

/* Its owner reads it to its end, and gives it up; then the other one, if it still gets as much, has it.
 * Nothing is lost by that. */
static void test_a_socket_changes_its_owner(void **state)
{
    (void)state;
    struct udp_direct *direct = open_two();
    struct udp_channel *channel = channel_of(&busy.receiver);
    ask_for_it(direct);
    const struct fabric_write write = udp_pair_write(&quiet, last, 0);
    udp_pair_send(&quiet, &write, 1);
    for (unsigned polls = 0; udp_direct_of(channel_of(&quiet.receiver)); polls++) {
        assert_in_range(polls, 0, 1000000);
        udp_pair_poll(&quiet);
    }
    expect_woken(1, FABRIC_FDS_CHANGED);
    udp_message_assert_whole(last);
    assert_null(direct->channel);
    send_many(&busy, message, 64);
    assert_null(udp_direct_of(channel)); /* it rests for a while */
    time_ns += UDP_SOCKET_SLOT_IDLE_NS;
    send_many(&busy, message, 64);
    assert_ptr_equal(udp_direct_of(channel), direct);
    expect_woken(1, FABRIC_FDS_CHANGED);
    send_many(&busy, message, 3); /* by its own socket */
    assert_int_equal(channel->rx.from_inbox, 0);
    close_two();
}

/* The kernel does not sort otherwise: its owner keeps it, and may be asked again. */
static void test_a_socket_that_cannot_be_left(void **state)
{
    (void)state;
    struct udp_direct *direct = open_two();
    struct udp_channel *owner = channel_of(&quiet.receiver);
    struct udp_port *port = owner->port;
    int fd = port->shared.fd;
    ask_for_it(direct);
    port->shared.fd = -1;
    assert_int_equal(udp_pair_poll(&quiet), 0);
    port->shared.fd = fd;
    assert_false(atomic_load(&direct->leave));
    assert_false(owner->rx.leaving);
    assert_ptr_equal(udp_direct_of(owner), direct);
    send_many(&busy, message, 64);
    assert_true(atomic_load(&direct->leave));
    expect_woken(1, 0);
    close_two();
}

static int poll_beside_another(void)
{
    struct udp_fabric *fabric = udp_fabric_of(udp_of(&quiet.receiver));
    struct fabric_arrival arrival;
    pthread_mutex_lock(&fabric->lock);
    int polled = ops_in_time.poll(quiet.receiver.endpoint, 0, &arrival, 1);
    pthread_mutex_unlock(&fabric->lock);
    return polled;
}

/* Another thread is at it: the owner polls again, which is no sign that it gets anything; it leaves later. */
static void test_a_poll_beside_another(void **state)
{
    (void)state;
    struct udp_direct *direct = open_two();
    struct udp_channel *owner = channel_of(&quiet.receiver);
    struct udp_socket_slot *slot = &owner->port->socket_slots.socket_slots[direct->socket_slot];
    atomic_store(&slot->active, false);
    assert_true(owner->rx.shared_unread);
    assert_int_equal(poll_beside_another(), FABRIC_POLL_AGAIN);
    assert_false(atomic_load(&slot->active));
    assert_int_equal(udp_pair_poll(&quiet), 0); /* the shared socket is empty */
    assert_false(owner->rx.shared_unread);
    ask_for_it(direct);
    assert_int_equal(poll_beside_another(), FABRIC_POLL_AGAIN);
    assert_false(owner->rx.leaving);
    assert_int_equal(udp_pair_poll(&quiet), 0);
    assert_null(udp_direct_of(owner));
    close_two();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_for_all),
        cmocka_unit_test(test_read_some),
        cmocka_unit_test(test_another_reads),
        cmocka_unit_test(test_patience),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_notifications),
        cmocka_unit_test(test_data_of_hardware),
        cmocka_unit_test(test_a_socket_changes_its_owner),
        cmocka_unit_test(test_a_socket_that_cannot_be_left),
        cmocka_unit_test(test_a_poll_beside_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
