/*
 * test_udp_sealed.c - encrypted endpoints of the udp fabric, and a host on the path that reads, changes,
 * withholds, repeats and reflects their packets. It stands between the fabric and the kernel: the calls that
 * send are this file's.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "fabric/udp/udp_parts.h"
#include "support/udp_pair.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

static const char *const devices[] = {"udp:[::1]", "udp:127.0.0.1"};

/* ---- the host on the path ---------------------------------------------------------------------------- */

#define CAPTURED_MAX 40000u

struct captured {
    uint8_t *bytes;
    uint32_t count;
    int fd; /* that it left by */
    union udp_address to;
};

static struct {
    pthread_mutex_t lock;
    bool captures;
    bool withholds;     /* what is captured is not sent */
    uint32_t fail_each; /* not 0: one call of so many sends part of it, or nothing */
    uint32_t calls;
    uint32_t count;
    struct captured packets[CAPTURED_MAX];
} path = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void forget_captured(void)
{
    for (uint32_t i = 0; i < path.count; i++)
        free(path.packets[i].bytes);
    path.count = 0;
    path.captures = path.withholds = false;
    path.fail_each = 0;
}

static void capture_one(int fd, const struct msghdr *message, const uint8_t *bytes, uint32_t count)
{
    if (path.count == CAPTURED_MAX)
        return;
    struct captured *packet = &path.packets[path.count++];
    packet->bytes = malloc(count);
    assert_non_null(packet->bytes);
    memcpy(packet->bytes, bytes, count);
    packet->count = count;
    packet->fd = fd;
    memcpy(&packet->to, message->msg_name, message->msg_namelen);
}

static void capture(int fd, const struct msghdr *message)
{
    static uint8_t whole[70000];
    uint32_t bytes = 0, segment = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        memcpy(whole + bytes, message->msg_iov[i].iov_base, message->msg_iov[i].iov_len);
        bytes += (uint32_t)message->msg_iov[i].iov_len;
    }
    segment = bytes;
    if (message->msg_controllen > 0) {
        const struct cmsghdr *control = CMSG_FIRSTHDR(message);
        uint16_t size;
        memcpy(&size, CMSG_DATA(control), sizeof size);
        if (control->cmsg_level == IPPROTO_UDP && control->cmsg_type == UDP_SEGMENT)
            segment = size;
    }
    for (uint32_t at = 0; at < bytes; at += segment)
        capture_one(fd, message, whole + at, bytes - at < segment ? bytes - at : segment);
}

/* 1: send all; 0: send the first half; -1: fail with errno. */
static int on_call(void)
{
    if (path.fail_each == 0 || ++path.calls % path.fail_each != 0)
        return 1;
    static const int errors[] = {EAGAIN, EINTR, ENOBUFS};
    errno = errors[path.calls / path.fail_each % 3];
    return path.calls / path.fail_each % 4 == 0 ? 0 : -1;
}

/* Captures all that reaches the kernel, also what that does not take. */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    pthread_mutex_lock(&path.lock);
    bool withholds = path.withholds;
    if (path.captures)
        capture(fd, message);
    int verdict = on_call();
    pthread_mutex_unlock(&path.lock);
    if (verdict < 1)
        return -1;
    return withholds ? 1 : syscall(SYS_sendmsg, fd, message, flags);
}

int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    pthread_mutex_lock(&path.lock);
    bool withholds = path.withholds;
    for (unsigned i = 0; path.captures && i < count; i++)
        capture(fd, &messages[i].msg_hdr);
    int verdict = on_call();
    pthread_mutex_unlock(&path.lock);
    if (verdict < 0)
        return -1;
    if (verdict == 0 && count > 1)
        count /= 2;
    return withholds ? (int)count : (int)syscall(SYS_sendmmsg, fd, messages, count, flags);
}

ssize_t sendto(int fd, const void *data, size_t bytes, int flags, __CONST_SOCKADDR_ARG to, socklen_t size)
{
    struct iovec iov = {(void *)(uintptr_t)data, bytes};
    const struct msghdr message = {.msg_name = (void *)(uintptr_t)to.__sockaddr__,
                                   .msg_namelen = size,
                                   .msg_iov = &iov,
                                   .msg_iovlen = 1};
    return sendmsg(fd, &message, flags) < 0 ? -1 : (ssize_t)bytes;
}

/* As if it had left by that socket, for where that packet went. */
static void throw_bytes(const struct captured *as, int fd, const uint8_t *bytes, uint32_t count)
{
    union udp_address to = as->to;
    struct iovec iov = {(void *)(uintptr_t)bytes, count};
    const struct msghdr message = {
        .msg_name = &to, .msg_namelen = udp_address_size(&to), .msg_iov = &iov, .msg_iovlen = 1};
    assert_int_equal(syscall(SYS_sendmsg, fd, &message, 0), count);
}

static void throw_again(const struct captured *packet)
{
    throw_bytes(packet, packet->fd, packet->bytes, packet->count);
}

/* ---- helpers ----------------------------------------------------------------------------------------- */

static struct udp_endpoint *udp_of(const struct udp_side *side)
{
    return (struct udp_endpoint *)side->endpoint;
}

static void send_control(const struct udp_side *side, const char *text)
{
    const struct fabric_datagram datagram = {(const uint8_t *)text, (uint32_t)strlen(text) + 1, 0};
    int taken;
    do
        taken = side->fabric->ops->control_send(side->endpoint, &datagram, 1);
    while (taken == 0);
    assert_int_equal(taken, 1);
}

/* The number of datagrams that wait; the last one's text in out. A poll that reads only what it drops gives
 * nothing. */
static uint32_t poll_control(const struct udp_side *side, struct fabric_control_arrival *out)
{
    static struct fabric_control_arrival arrivals[8];
    uint32_t count = 0;
    for (uint32_t polls = 0; polls < 100; polls++) {
        int got = side->fabric->ops->control_poll(side->endpoint, arrivals, 8);
        assert_true(got >= 0);
        if (got > 0)
            *out = arrivals[got - 1];
        count += (uint32_t)got;
    }
    return count;
}

/* On loopback a datagram that was sent has arrived; with a busy kernel thread it may take a moment. */
static uint32_t await_control(const struct udp_side *side, uint32_t wanted,
                              struct fabric_control_arrival *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < 1000 && count < wanted; i++)
        count += poll_control(side, out);
    return count;
}

static void send_all(struct udp_pair *pair, const struct udp_message *message)
{
    for (uint32_t i = 0; i < message->packets; i++) {
        struct fabric_write write = udp_pair_write(pair, message, i);
        udp_pair_send(pair, &write, 1);
    }
}

static void deliver_all(struct udp_pair *pair, const struct udp_message *message)
{
    uint32_t *packets = malloc(message->packets * sizeof *packets);
    assert_non_null(packets);
    for (uint32_t i = 0; i < message->packets; i++)
        packets[i] = i;
    udp_pair_deliver(pair, message, packets, message->packets);
    free(packets);
}

/* Whether these bytes lie in any packet. */
static bool was_seen(const void *bytes, size_t count)
{
    for (uint32_t i = 0; i < path.count; i++)
        if (memmem(path.packets[i].bytes, path.packets[i].count, bytes, count))
            return true;
    return false;
}

static void assert_nothing_dropped(const struct udp_side *side)
{
    assert_int_equal(side->stats.rx_auth_failures, 0);
    assert_int_equal(side->stats.rx_replays, 0);
    assert_int_equal(lh_stats_bad_packets(&side->stats), 0);
}

/* ---- what is sent arrives ---------------------------------------------------------------------------- */

static void test_delivery(void **state)
{
    static const uint32_t mtus[] = {64, 1024, 4096, 8896};
    (void)state;
    for (size_t i = 0; i < 8; i++) {
        struct fabric_endpoint_attr attr = udp_pair_attr();
        struct udp_pair pair;
        attr.mtu_bytes = mtus[i / 2];
        attr.slot_bytes = (uint64_t)16 << 20;
        attr.channels = 3;
        udp_pair_open_sealed(&pair, devices[i % 2], &attr, 0);
        struct udp_message *message = udp_pair_bind(&pair, 2, 1, 300 * (uint64_t)attr.mtu_bytes + 5);
        struct udp_message *empty = udp_pair_bind(&pair, 3, 0, 0);
        path.captures = true;
        deliver_all(&pair, message);
        deliver_all(&pair, empty);
        path.captures = false;
        udp_message_assert_whole(message);
        udp_message_assert_whole(empty);
        assert_nothing_dropped(&pair.receiver);
        assert_false(was_seen(message->source + 64 * attr.mtu_bytes, 12));
        uint64_t wire = 0;
        for (uint32_t k = 0; k < path.count; k++)
            wire += path.packets[k].count + (i % 2 ? 28u : 48u);
        assert_int_equal(pair.sender.stats.tx_wire_bytes, wire);
        assert_int_equal(wire, message->bytes +
                                   (uint64_t)(message->packets + 1) *
                                       ((i % 2 ? ROCE_WRITE_IMM_OVERHEAD_V4 : ROCE_WRITE_IMM_OVERHEAD_V6) +
                                        ROCE_SEALED_EXTRA));
        forget_captured();
        udp_pair_close(&pair);
    }
}

static void test_control(void **state)
{
    static uint8_t bytes[CONTROL_PROBE_MAX];
    static struct fabric_control_arrival arrival;
    (void)state;
    for (size_t device = 0; device < 2; device++) {
        struct fabric_endpoint_attr attr = udp_pair_attr();
        struct udp_pair pair;
        udp_pair_open_sealed(&pair, devices[device], &attr, 0);
        path.captures = true;
        for (uint32_t length = 1; length <= sizeof bytes; length += 1 + length / 7) {
            memset(bytes, (int)length, length);
            const struct fabric_datagram two[] = {{bytes, length, 0}, {bytes, length, 0}};
            const struct udp_side *from = length % 2 ? &pair.sender : &pair.receiver;
            const struct udp_side *to = length % 2 ? &pair.receiver : &pair.sender;
            assert_int_equal(from->fabric->ops->control_send(from->endpoint, two, 2), 2);
            assert_int_equal(await_control(to, 2, &arrival), 2);
            assert_int_equal(arrival.bytes, length);
            assert_memory_equal(arrival.data, bytes, length);
        }
        assert_false(was_seen(bytes, 16));
        assert_nothing_dropped(&pair.receiver);
        assert_nothing_dropped(&pair.sender);
        forget_captured();
        udp_pair_close(&pair);
    }
}

/* Without a socket of its own a channel gets its packets from the shared one, by an inbox. */
static void test_shared_socket(void **state)
{
    (void)state;
    for (size_t device = 0; device < 2; device++) {
        struct fabric_endpoint_attr attr = udp_pair_attr();
        struct udp_pair pair;
        udp_pair_open_sealed(&pair, devices[device], &attr, 0);
        struct udp_channel *channel = udp_of(&pair.receiver)->channels[0];
        struct udp_message *message = udp_pair_bind(&pair, 0, 0, 30 * 4096 + 1);
        atomic_store(&udp_direct_of(channel)->leave, true);
        for (uint32_t i = 0; i < 1000 && udp_direct_of(channel) != NULL; i++)
            udp_pair_poll(&pair);
        assert_null(udp_direct_of(channel));
        channel->port->slots_max = 0;
        channel->port->socket_slots.count = 0; /* none for later, either */
        path.captures = true;
        deliver_all(&pair, message);
        path.captures = false;
        udp_message_assert_whole(message);
        assert_nothing_dropped(&pair.receiver);
        path.packets[0].bytes[SEAL_KIND_OFFSET + 1] ^= 1; /* a number that none had */
        throw_again(&path.packets[0]);
        udp_pair_settle(&pair);
        assert_int_equal(pair.receiver.stats.rx_auth_failures, 1);
        channel->port->socket_slots.count = 1; /* it is closed with the port */
        forget_captured();
        udp_pair_close(&pair);
    }
}

/* ---- no number twice --------------------------------------------------------------------------------- */

#define LEDGER_CHANNELS 4u
#define LEDGER_COUNTS   200000u

static uint8_t ledger[SEAL_KINDS][LEDGER_CHANNELS][LEDGER_COUNTS];

struct poster {
    struct udp_pair *pair;
    struct udp_message *message;
    uint32_t channel;
};

/* Duplicates, packets of different lengths, and whatever the kernel does not take. */
static void *post_on_channel(void *argument)
{
    const struct poster *poster = argument;
    const struct udp_side *side = &poster->pair->sender;
    const struct fabric_endpoint_attr *attr = &poster->pair->attr;
    for (uint32_t round = 0; round < 60; round++) {
        struct fabric_write writes[64];
        uint32_t count = 0;
        for (uint32_t i = 0; i < poster->message->packets && count < 62; i++) {
            if (fabric_channel_of(i, attr->stripe_packets, attr->channels) != poster->channel)
                continue;
            writes[count] = udp_pair_write(poster->pair, poster->message, i);
            writes[count].bytes -= (i + round) % 5 == 0 ? 100 : 0;
            count++;
        }
        writes[count] = writes[0];
        count++;
        for (uint32_t done = 0; done < count;) {
            int taken = side->fabric->ops->post_writes(side->endpoint, poster->channel, writes + done,
                                                       count - done);
            assert_true(taken >= 0);
            done += (uint32_t)taken;
        }
    }
    return NULL;
}

static void *post_control(void *argument)
{
    const struct poster *poster = argument;
    for (uint32_t i = 0; i < 500; i++) {
        udp_of(&poster->pair->sender)->punch_at = 0; /* each time */
        send_control(&poster->pair->sender, "between data");
    }
    return NULL;
}

static uint32_t channel_of_qpn(const struct udp_pair *pair, uint32_t qpn)
{
    const struct qp_info_endpoint *info = &pair->receiver.info;
    for (uint32_t channel = 0; channel < info->channels; channel++)
        for (uint32_t generation = 0; generation < info->generations; generation++)
            if (info->qpn[generation][channel] == qpn)
                return channel;
    assert_int_equal(qpn, info->control_qpn);
    return 0;
}

/* Punches have one key for all channels. */
static void check_ledger(const struct udp_pair *pair, uint32_t kinds[SEAL_KINDS])
{
    memset(ledger, 0, sizeof ledger);
    for (uint32_t i = 0; i < path.count; i++) {
        struct seal_header header;
        assert_true(seal_read(path.packets[i].bytes, path.packets[i].count, 32, &header));
        uint32_t channel = channel_of_qpn(pair, header.spi & ROCE_QPN_MASK);
        channel = header.kind == SEAL_DATA ? channel : 0;
        assert_true(header.count < LEDGER_COUNTS);
        assert_int_equal(ledger[header.kind][channel][header.count]++, 0);
        kinds[header.kind]++;
    }
}

static void test_no_number_twice(void **state)
{
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    pthread_t threads[LEDGER_CHANNELS + 1];
    struct poster posters[LEDGER_CHANNELS + 1];
    uint32_t kinds[SEAL_KINDS] = {0};
    (void)state;
    attr.channels = LEDGER_CHANNELS;
    attr.stripe_packets = 2;
    attr.mtu_bytes = 1024;
    udp_pair_open_sealed(&pair, devices[1], &attr, 0);
    struct udp_message *message = udp_pair_bind(&pair, 0, 0, 300 * 1024);
    pair.sender.fabric->ops->punch(pair.sender.endpoint, 77);
    path.captures = path.withholds = true;
    path.fail_each = 3;
    for (uint32_t i = 0; i <= LEDGER_CHANNELS; i++) {
        posters[i] = (struct poster){&pair, message, i};
        assert_int_equal(pthread_create(&threads[i], NULL,
                                        i < LEDGER_CHANNELS ? post_on_channel : post_control, &posters[i]),
                         0);
    }
    for (uint32_t i = 0; i <= LEDGER_CHANNELS; i++)
        pthread_join(threads[i], NULL);
    assert_true(path.count < CAPTURED_MAX);
    check_ledger(&pair, kinds);
    assert_true(kinds[SEAL_DATA] > 4 * 60 * 63); /* some twice: the kernel did not take them */
    assert_true(kinds[SEAL_CONTROL] >= 500 && kinds[SEAL_PUNCH] >= 500 * LEDGER_CHANNELS);
    forget_captured();
    udp_pair_close(&pair);
}

/* ---- replays ----------------------------------------------------------------------------------------- */

static void throw_all_again(void)
{
    for (uint32_t i = 0; i < path.count; i++)
        throw_again(&path.packets[i]);
}

/* A whole transfer, three times: over the same receive, a later one in its slot, and none. */
static void test_replayed_transfer(void **state)
{
    static struct fabric_control_arrival arrival;
    (void)state;
    for (size_t device = 0; device < 2; device++) {
        struct fabric_endpoint_attr attr = udp_pair_attr();
        struct udp_pair pair;
        udp_pair_open_sealed(&pair, devices[device], &attr, 0);
        struct udp_message *message = udp_pair_bind(&pair, 0, 0, 40 * 4096);
        path.captures = true;
        deliver_all(&pair, message);
        for (uint32_t i = 0; i < 5; i++)
            send_control(&pair.sender, "close");
        path.captures = false;
        assert_int_equal(await_control(&pair.receiver, 5, &arrival), 5);
        memset(message->buffer, 0x11, message->bytes);
        uint32_t arrivals = pair.arrivals;
        throw_all_again();
        udp_pair_settle(&pair);
        assert_int_equal(poll_control(&pair.receiver, &arrival), 0);
        assert_int_equal(pair.receiver.stats.rx_replays, path.count);
        assert_int_equal(pair.arrivals, arrivals);
        for (uint64_t i = 0; i < message->bytes; i++)
            assert_int_equal(message->buffer[i], 0x11);
        udp_pair_unbind(&pair, message);
        struct udp_message *later = udp_pair_bind(&pair, 0, 0, 40 * 4096);
        memcpy(message->buffer, later->buffer, later->bytes);
        throw_all_again();
        udp_pair_settle(&pair);
        assert_int_equal(later->arrived, 0);
        assert_memory_equal(later->buffer, message->buffer, later->bytes);
        assert_int_equal(poll_control(&pair.receiver, &arrival), 0);
        udp_pair_unbind(&pair, later);
        throw_all_again();
        udp_pair_settle(&pair);
        assert_int_equal(poll_control(&pair.receiver, &arrival), 0);
        assert_int_equal(pair.receiver.stats.rx_replays, 3 * path.count);
        assert_int_equal(pair.arrivals, arrivals);
        udp_pair_assert_no_bad(&pair);
        udp_message_free(message);
        udp_message_free(later);
        forget_captured();
        udp_pair_close(&pair);
    }
}

/* So old that nothing is known of its number: it is taken if its receive misses it, and then no more. */
static void test_past_the_window(void **state)
{
    static uint32_t others[SEAL_WINDOW + 800];
    const uint32_t count = sizeof others / sizeof *others;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    (void)state;
    attr.mtu_bytes = 64;
    attr.slot_bytes = (uint64_t)1 << 20;
    udp_pair_open_sealed(&pair, devices[1], &attr, 0);
    struct udp_message *message = udp_pair_bind(&pair, 0, 0, (count + 2) * UINT64_C(64));
    struct udp_message *empty = udp_pair_bind(&pair, 1, 0, 0);
    struct fabric_write missed = udp_pair_write(&pair, message, 0),
                        came = udp_pair_write(&pair, message, 1);
    path.captures = path.withholds = true;
    udp_pair_send(&pair, &missed, 1);
    path.withholds = false;
    udp_pair_send(&pair, &came, 1);
    send_all(&pair, empty);
    path.captures = false;
    udp_pair_await(&pair, 0, 2);
    for (uint32_t i = 0; i < count; i++)
        others[i] = i + 2;
    udp_pair_deliver(&pair, message, others, count);
    assert_int_equal(path.count, 3);
    for (uint32_t i = 1; i < 3; i++)
        throw_again(&path.packets[i]);
    udp_pair_settle(&pair);
    assert_int_equal(pair.arrivals, count + 2);
    assert_int_equal(pair.receiver.stats.rx_replays, 2);
    throw_again(&path.packets[0]);
    udp_pair_await(&pair, count + 2, 1);
    udp_message_assert_whole(message);
    throw_all_again();
    udp_pair_unbind(&pair, message);
    struct udp_message *later = udp_pair_bind(&pair, 0, 0, (count + 2) * UINT64_C(64));
    memcpy(message->buffer, later->buffer, later->bytes);
    throw_all_again();
    udp_pair_settle(&pair);
    assert_memory_equal(later->buffer, message->buffer, later->bytes);
    assert_int_equal(pair.arrivals, count + 3);
    assert_int_equal(pair.receiver.stats.rx_replays, 8);
    udp_pair_assert_no_bad(&pair);
    udp_message_free(message);
    forget_captured();
    udp_pair_close(&pair);
}

static int open_stranger(void)
{
    union udp_address here;
    assert_int_equal(udp_address_parse("127.0.0.1", &here), 0);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, &here.any, udp_address_size(&here)), 0);
    return fd;
}

/* From another port of the peer's host, as NAT would: what is new moves the address, a replay does not. */
static void test_replays_move_no_address(void **state)
{
    static struct fabric_control_arrival arrival;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    (void)state;
    udp_pair_open_sealed(&pair, devices[1], &attr, 4711);
    int stranger = open_stranger();
    struct udp_channel *channel = udp_of(&pair.receiver)->channels[0];
    struct udp_message *message = udp_pair_bind(&pair, 0, 0, 8 * 4096);
    path.captures = true;
    deliver_all(&pair, message);
    pair.sender.fabric->ops->punch(pair.sender.endpoint, 4711);
    send_control(&pair.sender, "with a punch");
    path.captures = false;
    assert_int_equal(await_control(&pair.receiver, 1, &arrival), 1);
    udp_pair_settle(&pair);
    const union udp_address before = channel->tx.to;
    for (uint32_t i = 0; i < path.count; i++)
        throw_bytes(&path.packets[i], stranger, path.packets[i].bytes, path.packets[i].count);
    udp_pair_settle(&pair);
    assert_int_equal(poll_control(&pair.receiver, &arrival), 0);
    assert_memory_equal(&channel->tx.to, &before, sizeof before.v4);
    assert_true(pair.receiver.stats.rx_replays >= 1);
    forget_captured();
    /* It does move, when the packet is the newest. */
    path.captures = path.withholds = true;
    struct fabric_write write = udp_pair_write(&pair, message, 0);
    udp_pair_send(&pair, &write, 1);
    path.captures = path.withholds = false;
    throw_bytes(&path.packets[0], stranger, path.packets[0].bytes, path.packets[0].count);
    udp_pair_settle(&pair);
    assert_memory_not_equal(&channel->tx.to, &before, sizeof before.v4);
    close(stranger);
    forget_captured();
    udp_pair_close(&pair);
}

/* ---- changed packets --------------------------------------------------------------------------------- */

#define MUTATIONS 30000u

static struct lh_prng prng;

static uint32_t any(uint32_t below)
{
    return (uint32_t)(lh_prng_next(&prng) % below);
}

/* Changes something of it, or all. Returns its length. */
static uint32_t mutate(uint8_t *bytes, uint32_t count, const struct captured *other)
{
    uint32_t at = any(count);
    switch (any(8)) {
    case 0:
        bytes[at] ^= (uint8_t)(1u << any(8));
        return count;
    case 1: /* the header of PSP */
        bytes[any(SEAL_HEADER_BYTES)] ^= (uint8_t)(1 + any(255));
        return count;
    case 2:
        return 1 + any(count - 1);
    case 3:
        bytes[count] = (uint8_t)any(256);
        return count + 1;
    case 4: /* another packet's rest: it was encrypted with the same key */
        if (other->count != count || !memcmp(other->bytes, bytes, count))
            bytes[count - 1] ^= 1;
        else
            memcpy(bytes + SEAL_HEADER_BYTES, other->bytes + SEAL_HEADER_BYTES, count - SEAL_HEADER_BYTES);
        return count;
    case 5: /* another epoch */
        bytes[SEAL_SPI_OFFSET] = (uint8_t)(bytes[SEAL_SPI_OFFSET] + 1 + any(255));
        return count;
    case 6: /* another kind or number */
        bytes[SEAL_KIND_OFFSET + any(8)] ^= (uint8_t)(1 + any(255));
        return count;
    default:
        for (uint32_t i = 0; i < 1 + any(64); i++)
            bytes[any(count)] ^= (uint8_t)(1 + any(255));
        bytes[count - 1] ^= 0x80;
        return count;
    }
}

static bool is_same(const uint8_t *bytes, uint32_t count, const struct captured *as)
{
    return count == as->count && memcmp(bytes, as->bytes, count) == 0;
}

/* All counters of the receiver that are no drops. */
static uint64_t sum_of_effects(const struct lh_stats *stats)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < lh_stats_count(); i++)
        if (strncmp(lh_stats_name(i), "bad_", 4) != 0)
            sum += lh_stats_value(stats, i);
    return sum - stats->rx_auth_failures - stats->rx_replays - stats->rx_socket_drops;
}

static void settle_both(struct udp_pair *pair, uint32_t *control)
{
    static struct fabric_control_arrival arrival;
    udp_pair_poll(pair);
    *control += poll_control(&pair->receiver, &arrival);
}

/* Packets of all kinds that never arrived, changed at random: nothing comes of them, and then the packets
 * themselves are as good as ever. */
static void test_changed_packets(void **state)
{
    static uint8_t bytes[UDP_PACKET_MAX + 8];
    (void)state;
    for (size_t device = 0; device < 2; device++) {
        struct fabric_endpoint_attr attr = udp_pair_attr();
        struct udp_pair pair;
        uint32_t control = 0;
        attr.mtu_bytes = 1024;
        attr.channels = 2;
        lh_prng_seed(&prng, 5 + device);
        udp_pair_open_sealed(&pair, devices[device], &attr, 0);
        struct udp_message *message = udp_pair_bind(&pair, 0, 0, 40 * 1024 + 7);
        uint8_t *before = malloc(message->bytes);
        assert_non_null(before);
        memcpy(before, message->buffer, message->bytes);
        path.captures = path.withholds = true;
        send_all(&pair, message);
        pair.sender.fabric->ops->punch(pair.sender.endpoint, 1);
        for (uint32_t i = 0; i < 10; i++)
            send_control(&pair.sender, "a control message");
        uint32_t own = path.count;
        for (uint32_t i = 0; i < 10; i++)
            send_control(&pair.receiver, "to be reflected");
        path.captures = path.withholds = false;
        for (uint32_t i = 0; i < MUTATIONS; i++) {
            const struct captured *as = &path.packets[any(own)], *other = &path.packets[any(path.count)];
            const struct captured *from = i % 16 == 0 ? other : as; /* of the receiver itself, some */
            memcpy(bytes, from->bytes, from->count);
            uint32_t count = from == as || any(2) ? mutate(bytes, from->count, other) : from->count;
            if (from >= &path.packets[own] && any(2)) /* and as if it was for the receiver */
                memcpy(bytes + 5, path.packets[own - 1].bytes + 5, 3);
            if (!is_same(bytes, count, from) || from >= &path.packets[own])
                throw_bytes(as, as->fd, bytes, count);
            if (i % 8 == 0)
                settle_both(&pair, &control);
        }
        udp_pair_settle(&pair);
        settle_both(&pair, &control);
        assert_int_equal(pair.arrivals, 0);
        assert_int_equal(control, 0);
        assert_memory_equal(message->buffer, before, message->bytes);
        udp_message_assert_guards(message);
        assert_int_equal(sum_of_effects(&pair.receiver.stats), 0);
        assert_true(pair.receiver.stats.rx_auth_failures > MUTATIONS / 2);
        for (uint32_t i = 0; i < own; i++) {
            throw_again(&path.packets[i]);
            settle_both(&pair, &control);
        }
        udp_pair_settle(&pair);
        settle_both(&pair, &control);
        assert_int_equal(control, 10);
        udp_message_assert_whole(message);
        free(before);
        forget_captured();
        udp_pair_close(&pair);
    }
}

/* ---- clear text -------------------------------------------------------------------------------------- */

/* Of whoever knows all but the secret: keys of receives, queue pairs, addresses, and a valid iCRC. */
static void test_clear_to_encrypted(void **state)
{
    static uint8_t bytes[UDP_PACKET_MAX];
    static struct fabric_control_arrival arrival;
    (void)state;
    for (size_t device = 0; device < 2; device++) {
        struct fabric_endpoint_attr attr = udp_pair_attr();
        struct udp_pair pair;
        udp_pair_open_sealed(&pair, devices[device], &attr, 0);
        struct udp_message *message = udp_pair_bind(&pair, 0, 0, 4 * 4096);
        struct lh_stats *stats = &pair.receiver.stats;
        const struct roce_packet packet = udp_pair_packet(&pair, message, 1);
        uint32_t count = udp_pair_forge(&pair, 0, &packet, bytes);
        udp_pair_throw(&pair, 0, bytes, count, 0);
        udp_pair_settle(&pair);
        assert_int_equal(stats->rx_auth_failures, 1);
        /* To the front, where control datagrams and notifications come. */
        struct captured to_front = {.to = udp_of(&pair.sender)->peer_address};
        udp_address_set_port(&to_front.to, pair.receiver.info.control_port);
        struct roce_packet control = {.opcode = ROCE_UC_SEND_ONLY,
                                      .dest_qpn = pair.receiver.info.control_qpn,
                                      .payload = (const uint8_t *)"clear",
                                      .payload_bytes = 5};
        const struct udp_fabric *sender = (const struct udp_fabric *)pair.sender.fabric;
        throw_bytes(&to_front, sender->front.fd, bytes, udp_pair_forge(&pair, 0, &control, bytes));
        const struct roce_packet notification = {.opcode = ROCE_CNP,
                                                 .dest_qpn = pair.receiver.info.qpn[0][0]};
        throw_bytes(&to_front, sender->front.fd, bytes, udp_pair_forge(&pair, 0, &notification, bytes));
        udp_pair_settle(&pair);
        assert_int_equal(poll_control(&pair.receiver, &arrival), 0);
        assert_int_equal(stats->rx_auth_failures, 3);
        assert_int_equal(stats->rx_congestion_notifications, 0);
        assert_int_equal(message->arrived, 0);
        udp_message_assert_guards(message);
        deliver_all(&pair, message);
        udp_message_assert_whole(message);
        udp_pair_close(&pair);
    }
}

/* The other way round: an endpoint without keys. */
static void test_encrypted_to_clear(void **state)
{
    static struct fabric_control_arrival arrival;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair sealed, clear;
    (void)state;
    udp_pair_open_sealed(&sealed, devices[1], &attr, 0);
    udp_pair_open(&clear, devices[1], &attr);
    struct udp_message *message = udp_pair_bind(&clear, 0, 0, 4096);
    path.captures = path.withholds = true;
    struct udp_message *secret = udp_pair_bind(&sealed, 0, 0, 4096);
    send_all(&sealed, secret);
    send_control(&sealed.sender, "secret");
    path.captures = path.withholds = false;
    lh_put_be24(path.packets[0].bytes + 5, clear.receiver.info.qpn[0][0]);
    lh_put_be24(path.packets[1].bytes + 5, clear.receiver.info.control_qpn);
    udp_pair_throw(&clear, 0, path.packets[0].bytes, path.packets[0].count, 0);
    struct captured to_front = {.to = udp_of(&clear.sender)->peer_address};
    udp_address_set_port(&to_front.to, clear.receiver.info.control_port);
    throw_bytes(&to_front, ((struct udp_fabric *)clear.sender.fabric)->front.fd, path.packets[1].bytes,
                path.packets[1].count);
    udp_pair_settle(&clear);
    assert_int_equal(poll_control(&clear.receiver, &arrival), 0);
    assert_int_equal(clear.receiver.stats.bad_header, 2);
    assert_int_equal(clear.arrivals, 0);
    deliver_all(&clear, message);
    udp_message_assert_whole(message);
    forget_captured();
    udp_pair_close(&clear);
    udp_pair_close(&sealed);
}

/* Both ends with different secrets, or in the same role: as if nobody was there. */
static void test_wrong_secret(void **state)
{
    static struct fabric_control_arrival arrival;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    (void)state;
    udp_pair_open_sealed(&pair, devices[1], &attr, 0);
    struct udp_keys *keys = udp_of(&pair.sender)->keys;
    struct udp_message *message = udp_pair_bind(&pair, 0, 0, 4 * 4096);
    keys->direction = 1;
    send_all(&pair, message);
    send_control(&pair.sender, "of the wrong side");
    udp_pair_settle(&pair);
    assert_int_equal(poll_control(&pair.receiver, &arrival), 0);
    assert_int_equal(pair.arrivals, 0);
    assert_int_equal(pair.receiver.stats.rx_auth_failures, 5);
    udp_pair_close(&pair);
}

/* ---- epochs ------------------------------------------------------------------------------------------ */

/* The peer says which epoch it has: by a control packet. */
static void confirm(const struct udp_pair *pair)
{
    static struct fabric_control_arrival arrival;
    send_control(&pair->receiver, "what has come");
    assert_int_equal(await_control(&pair->sender, 1, &arrival), 1);
}

/* Through many epochs, with packets that get lost around each change, and late ones of the epoch before. */
static void test_epochs(void **state)
{
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    (void)state;
    attr.mtu_bytes = 1024;
    attr.channels = 2;
    udp_pair_open_sealed(&pair, devices[0], &attr, 0);
    struct udp_keys *keys = udp_of(&pair.sender)->keys, *theirs = udp_of(&pair.receiver)->keys;
    struct udp_message *message = udp_pair_bind(&pair, 0, 0, 600 * 1024);
    keys->packets = 40;
    for (uint32_t packet = 0; packet < message->packets; packet++) {
        struct fabric_write write = udp_pair_write(&pair, message, packet);
        if (packet % 5 == 0) { /* it is late, or lost */
            path.captures = path.withholds = true;
            udp_pair_send(&pair, &write, 1);
            path.captures = path.withholds = false;
        }
        uint32_t before = pair.arrivals;
        if (packet % 10 != 0) {
            udp_pair_send(&pair, &write, 1);
            udp_pair_await(&pair, before, 1);
        }
        if (packet % 7 == 0)
            confirm(&pair);
        if (packet % 50 == 49) { /* the late ones, across a change */
            before = pair.arrivals;
            for (uint32_t i = 0; i < path.count; i++)
                throw_again(&path.packets[i]);
            udp_pair_await(&pair, before, path.count);
            forget_captured();
        }
    }
    udp_message_assert_whole(message);
    assert_true(atomic_load(&keys->tx_epoch) >= 8);
    assert_int_equal(atomic_load(&theirs->rx_epoch), atomic_load(&keys->tx_epoch));
    assert_nothing_dropped(&pair.receiver);
    forget_captured();
    udp_pair_close(&pair);
}

/* More than 256 of them: the byte of the epoch wraps. */
static void test_epochs_wrap(void **state)
{
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    (void)state;
    attr.mtu_bytes = 64;
    attr.slot_bytes = (uint64_t)1 << 20;
    udp_pair_open_sealed(&pair, devices[1], &attr, 0);
    struct udp_keys *keys = udp_of(&pair.sender)->keys;
    struct udp_message *message = udp_pair_bind(&pair, 0, 0, 600 * 64);
    keys->packets = 2;
    path.captures = true;
    for (uint32_t packet = 0; packet < message->packets; packet++) {
        struct fabric_write write = udp_pair_write(&pair, message, packet);
        uint32_t before = pair.arrivals;
        udp_pair_send(&pair, &write, 1);
        udp_pair_await(&pair, before, 1);
        path.captures = false;
        confirm(&pair);
        path.captures = packet < 20;
    }
    udp_message_assert_whole(message);
    assert_true(atomic_load(&keys->tx_epoch) > 280);
    assert_nothing_dropped(&pair.receiver);
    /* The first ones name epochs that are held, 256 later; and as if their numbers were new. */
    udp_of(&pair.receiver)->keys->channel[0].window = (struct seal_window){0};
    for (uint32_t i = 0; i < path.count; i++)
        throw_again(&path.packets[i]);
    udp_pair_settle(&pair);
    assert_int_equal(pair.receiver.stats.rx_auth_failures, path.count);
    forget_captured();
    udp_pair_close(&pair);
}

/* Without a word of the peer the next epoch is the last, and a key ends at its bound: no packet leaves. */
static void test_unconfirmed(void **state)
{
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    (void)state;
    udp_pair_open_sealed(&pair, devices[1], &attr, 0);
    struct udp_keys *keys = udp_of(&pair.sender)->keys;
    struct udp_message *message = udp_pair_bind(&pair, 0, 0, 64 * 4096);
    const struct udp_side *side = &pair.sender;
    keys->packets = 10;
    keys->packets_max = 20;
    for (uint32_t i = 0; i < 20; i++) {
        struct fabric_write write = udp_pair_write(&pair, message, i);
        assert_int_equal(side->fabric->ops->post_writes(side->endpoint, 0, &write, 1), 1);
    }
    struct fabric_write write = udp_pair_write(&pair, message, 20);
    assert_int_equal(side->fabric->ops->post_writes(side->endpoint, 0, &write, 1), 0);
    assert_int_equal(atomic_load(&keys->tx_epoch), 0);
    confirm(&pair);
    assert_int_equal(side->fabric->ops->post_writes(side->endpoint, 0, &write, 1), 1);
    assert_int_equal(atomic_load(&keys->tx_epoch), 1);
    udp_pair_await(&pair, 0, 21);
    udp_pair_close(&pair);
}

/* What the epoch before has left on the way is taken for a while; then its secret is gone. */
static void test_old_epoch_ends(void **state)
{
    static const uint8_t zeros[SEAL_SECRET_BYTES];
    static struct fabric_control_arrival arrival;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    struct udp_pair pair;
    (void)state;
    udp_pair_open_sealed(&pair, devices[1], &attr, 0);
    struct udp_keys *keys = udp_of(&pair.sender)->keys, *theirs = udp_of(&pair.receiver)->keys;
    struct udp_message *message = udp_pair_bind(&pair, 0, 0, 8 * 4096);
    keys->packets = 3;
    path.captures = path.withholds = true;
    for (uint32_t i = 0; i < 3; i++) {
        struct fabric_write write = udp_pair_write(&pair, message, i);
        udp_pair_send(&pair, &write, 1);
    }
    path.captures = path.withholds = false;
    confirm(&pair);
    for (uint32_t i = 3; i < 5; i++) {
        struct fabric_write write = udp_pair_write(&pair, message, i);
        udp_pair_send(&pair, &write, 1);
    }
    udp_pair_await(&pair, 0, 2);
    assert_int_equal(atomic_load(&theirs->rx_epoch), 1);
    throw_again(&path.packets[0]);
    udp_pair_await(&pair, 2, 1);
    assert_memory_not_equal(theirs->rx_secret[0], zeros, sizeof zeros);
    atomic_store(&theirs->old_until, 1); /* long ago */
    throw_again(&path.packets[1]);
    udp_pair_settle(&pair);
    assert_int_equal(pair.receiver.stats.rx_auth_failures, 1);
    assert_int_equal(poll_control(&pair.receiver, &arrival), 0);
    assert_memory_equal(theirs->rx_secret[0], zeros, sizeof zeros);
    struct fabric_write write = udp_pair_write(&pair, message, 5);
    udp_pair_send(&pair, &write, 1);
    udp_pair_await(&pair, 3, 1);
    assert_false(theirs->channel[0].data_keys[0].set);
    throw_again(&path.packets[2]);
    udp_pair_settle(&pair);
    assert_int_equal(pair.receiver.stats.rx_auth_failures, 2);
    forget_captured();
    udp_pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_delivery),
        cmocka_unit_test(test_control),
        cmocka_unit_test(test_shared_socket),
        cmocka_unit_test(test_no_number_twice),
        cmocka_unit_test(test_replayed_transfer),
        cmocka_unit_test(test_past_the_window),
        cmocka_unit_test(test_replays_move_no_address),
        cmocka_unit_test(test_changed_packets),
        cmocka_unit_test(test_clear_to_encrypted),
        cmocka_unit_test(test_encrypted_to_clear),
        cmocka_unit_test(test_wrong_secret),
        cmocka_unit_test(test_epochs),
        cmocka_unit_test(test_epochs_wrap),
        cmocka_unit_test(test_unconfirmed),
        cmocka_unit_test(test_old_epoch_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
