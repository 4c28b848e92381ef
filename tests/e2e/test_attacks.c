/*
 * test_attacks.c - a host on the path of encrypted connections: it changes, cuts, lengthens, combines,
 * repeats, reflects, delays, reorders and drops packets, and records of TLS, as a seed says. Each byte that
 * is delivered is one that was sent; strangers get no answer that is larger than their question.
 *
 * test_attacks [PACKETS [RECORDS [SEED]]]: at least that number of attacks on each.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/connection.h>
#include <longhaul/onesided.h>

#include "base/prng.h"
#include "keys/key_file.h"
#include "launch/tls_channel.h"
#include "support/attach_pair.h"
#include "support/sanitized.h"
#include "support/sim_engines.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define PACKET_MAX  9216u
#define HELD        32u
#define REMEMBERED  256u
#define PEERS_MAX   256
#define BYTES_MAX   (200u * 1024)
#define GUARD       64u
#define LIMIT_NS    (120 * LH_NS_PER_S)
#define RECORD_MAX  17000u
#define HEADER      5u /* of a record of TLS */
#define APPLICATION 200u
#define KINDS       9

enum attack { CHANGE, CUT, LENGTHEN, COMBINE, REPEAT, REFLECT, DELAY, STRANGER, DROP };

static const char *const names[KINDS] = {"changed",   "cut",     "lengthened",      "combined", "repeated",
                                         "reflected", "delayed", "from a stranger", "dropped"};

static uint64_t wanted_packets = SANITIZED ? 3000 : 10000;
static uint64_t wanted_handshakes = SANITIZED ? 300 : 1500;
static uint64_t seed = 1;

/* ---- the host on the path of packets ------------------------------------------------------------------- */

struct packet {
    uint8_t bytes[PACKET_MAX];
    size_t count;
    int fd; /* that it left by */
    struct sockaddr_in6 to;
};

static struct {
    pthread_mutex_t lock;
    bool attacks;
    int stranger; /* a socket of another program */
    struct sockaddr_in6 stranger_address;
    struct lh_prng prng;
    struct packet held[HELD];
    bool is_held[HELD];
    struct packet old[REMEMBERED]; /* also of connections that have ended */
    uint64_t packets;              /* so many were remembered */
    uint64_t counts[KINDS];
    uint64_t total;
    uint64_t answers; /* to the stranger */
} path = {.lock = PTHREAD_MUTEX_INITIALIZER, .stranger = -1};

static uint32_t draw(uint32_t below)
{
    return (uint32_t)((lh_prng_next(&path.prng) >> 33) % below);
}

static void emit(int fd, const struct sockaddr_in6 *to, const void *bytes, size_t count)
{
    struct sockaddr_in6 address = *to;
    struct iovec iov = {(void *)(uintptr_t)bytes, count};
    const struct msghdr message = {
        .msg_name = &address, .msg_namelen = sizeof address, .msg_iov = &iov, .msg_iovlen = 1};
    (void)syscall(SYS_sendmsg, fd, &message, MSG_DONTWAIT); /* what the kernel does not take is lost */
}

static bool address_of(int fd, struct sockaddr_in6 *out)
{
    socklen_t size = sizeof *out;
    return getsockname(fd, (struct sockaddr *)out, &size) == 0 && size == sizeof *out &&
           out->sin6_family == AF_INET6;
}

/* Back to the socket that it left by, with the source that answers have. */
static void reflect(const struct packet *packet)
{
    struct sockaddr_in6 home, other;
    if (!address_of(packet->fd, &home))
        return;
    home.sin6_addr = in6addr_loopback;
    for (int fd = 3; fd < PEERS_MAX; fd++)
        if (address_of(fd, &other) && other.sin6_port == packet->to.sin6_port) {
            emit(fd, &home, packet->bytes, packet->count);
            return;
        }
}

static void change(uint8_t *bytes, size_t count)
{
    for (uint32_t flips = 1 + draw(3); flips > 0 && count > 0; flips--)
        bytes[draw(2) ? draw((uint32_t)count) : draw(count < 48 ? (uint32_t)count : 48)] ^=
            (uint8_t)(1u << draw(8));
}

static void throw_changed(struct packet packet, enum attack attack)
{
    const struct packet *old =
        &path.old[draw(path.packets < REMEMBERED ? (uint32_t)path.packets : REMEMBERED)];
    if (attack == CHANGE)
        change(packet.bytes, packet.count);
    if (attack == CUT)
        packet.count = draw((uint32_t)packet.count);
    if (attack == LENGTHEN) {
        size_t more = 1 + draw(64);
        if (packet.count + more > sizeof packet.bytes)
            return;
        memset(packet.bytes + packet.count, (int)draw(256), more);
        packet.count += more;
    }
    if (attack == COMBINE) {
        size_t both = old->count < packet.count ? old->count : packet.count;
        size_t at = both ? draw((uint32_t)both) : 0;
        memcpy(packet.bytes + at, old->bytes + at, both - at);
    }
    emit(packet.fd, &packet.to, packet.bytes, packet.count);
}

/* True: it is kept, to be passed on after others. */
static bool hold(const struct packet *packet)
{
    uint32_t place = draw(HELD);
    if (path.is_held[place])
        emit(path.held[place].fd, &path.held[place].to, path.held[place].bytes, path.held[place].count);
    path.held[place] = *packet;
    return path.is_held[place] = true;
}

static void attack_one(const struct packet *packet)
{
    enum attack attack = (enum attack)draw(KINDS);
    bool passes = true;
    if (attack == DROP && draw(8) != 0)
        attack = REPEAT; /* or there is more loss than transfers bear */
    if (attack == DELAY && draw(4) != 0)
        attack = CHANGE;
    path.old[path.packets++ % REMEMBERED] = *packet;
    if (attack <= COMBINE)
        throw_changed(*packet, attack);
    if (attack == REFLECT)
        reflect(packet);
    if (attack == DELAY)
        passes = !hold(packet);
    if (attack == DROP)
        passes = false;
    if (passes)
        emit(packet->fd, &packet->to, packet->bytes, packet->count);
    if (attack == STRANGER)
        emit(path.stranger, &packet->to, packet->bytes, packet->count);
    if (attack == REPEAT) {
        const struct packet *old =
            &path.old[draw(path.packets < REMEMBERED ? (uint32_t)path.packets : REMEMBERED)];
        emit(packet->fd, &packet->to, packet->bytes, packet->count);
        emit(packet->fd, &packet->to, old->bytes, old->count);
    }
    path.counts[attack]++;
    path.total++;
}

/* One call may send several packets (GSO). */
static void attack_message(int fd, const struct msghdr *message)
{
    static uint8_t whole[70000];
    size_t bytes = 0, segment;
    struct packet packet = {.fd = fd};
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        memcpy(whole + bytes, message->msg_iov[i].iov_base, message->msg_iov[i].iov_len);
        bytes += message->msg_iov[i].iov_len;
    }
    segment = bytes;
    const struct cmsghdr *control = message->msg_controllen > 0 ? CMSG_FIRSTHDR(message) : NULL;
    if (control && control->cmsg_level == IPPROTO_UDP && control->cmsg_type == UDP_SEGMENT) {
        uint16_t size;
        memcpy(&size, CMSG_DATA(control), sizeof size);
        segment = size;
    }
    memcpy(&packet.to, message->msg_name, sizeof packet.to);
    if (packet.to.sin6_port == path.stranger_address.sin6_port)
        path.answers++;
    for (size_t at = 0; at < bytes; at += segment) {
        packet.count = bytes - at < segment ? bytes - at : segment;
        memcpy(packet.bytes, whole + at, packet.count);
        attack_one(&packet);
    }
}

static bool is_attacked(const struct msghdr *message)
{
    return path.attacks && message->msg_namelen == sizeof(struct sockaddr_in6);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    ssize_t bytes = 0;
    if (!is_attacked(message))
        return syscall(SYS_sendmsg, fd, message, flags);
    for (size_t i = 0; i < message->msg_iovlen; i++)
        bytes += (ssize_t)message->msg_iov[i].iov_len;
    pthread_mutex_lock(&path.lock);
    attack_message(fd, message);
    pthread_mutex_unlock(&path.lock);
    return bytes;
}

int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    if (count == 0 || !is_attacked(&messages[0].msg_hdr))
        return (int)syscall(SYS_sendmmsg, fd, messages, count, flags);
    for (unsigned i = 0; i < count; i++)
        messages[i].msg_len = (unsigned)sendmsg(fd, &messages[i].msg_hdr, flags);
    return (int)count;
}

ssize_t sendto(int fd, const void *data, size_t bytes, int flags, __CONST_SOCKADDR_ARG to, socklen_t size)
{
    struct iovec iov = {(void *)(uintptr_t)data, bytes};
    const struct msghdr message = {.msg_name = (void *)(uintptr_t)to.__sockaddr__,
                                   .msg_namelen = size,
                                   .msg_iov = &iov,
                                   .msg_iovlen = 1};
    return sendmsg(fd, &message, flags);
}

/* ---- connections -------------------------------------------------------------------------------------- */

static uint8_t source[BYTES_MAX], target[BYTES_MAX + GUARD];

static void fill(size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        source[i] = (uint8_t)(rand() >> 7); /* any bytes; the seed is that of attacks */
    memset(target, 0xA5, sizeof target);
}

static void expect_whole(size_t bytes)
{
    assert_memory_equal(source, target, bytes);
    for (size_t i = bytes; i < sizeof target; i++)
        assert_int_equal(target[i], 0xA5);
}

static void finish(struct lh_request *request)
{
    struct lh_result result;
    sim_engines_must(lh_wait(request, LIMIT_NS, &result), "lh_wait");
    assert_int_equal(result.error, 0);
    lh_request_free(request);
}

static void deliver(struct lh_connection *from, struct lh_connection *to, size_t bytes)
{
    struct lh_request *send, *receive;
    fill(bytes);
    sim_engines_must(lh_recv(to, target, bytes, NULL, &receive), "lh_recv");
    sim_engines_must(lh_send(from, source, bytes, NULL, &send), "lh_send");
    finish(receive);
    finish(send);
    expect_whole(bytes);
}

/* Writes into the memory of the other end, and reads it from there. That end may send what was read once
 * more, until its region is revoked. */
static void write_and_read(struct lh_connection *from, struct lh_connection *to, size_t bytes)
{
    static uint8_t again[BYTES_MAX];
    const struct lh_part exposed = {.address = target, .bytes = BYTES_MAX};
    struct lh_part part = {.address = source, .bytes = bytes};
    struct lh_onesided asked = {.parts = &part, .count = 1};
    struct lh_request *request;
    struct lh_region *region;
    fill(bytes);
    sim_engines_must(lh_expose(to, &exposed, LH_ACCESS_WRITE | LH_ACCESS_READ, NULL, 0, &region),
                     "lh_expose");
    lh_region_key(region, &asked.key);
    sim_engines_must(lh_write(from, &asked, &request), "lh_write");
    finish(request);
    expect_whole(bytes);
    part.address = again;
    sim_engines_must(lh_read(from, &asked, &request), "lh_read");
    finish(request);
    lh_revoke(region);
    assert_memory_equal(again, source, bytes);
}

static struct lh_connection *open_end(void)
{
    struct lh_connection *end;
    struct lh_security security;
    struct lh_attr attr;
    lh_attr_init(&attr);
    lh_security_init(&security);
    security.secret = "of both ends, and of no host between them";
    attr.device = "udp:[::1]";
    attr.security = &security;
    sim_engines_must(lh_open(&attr, &end), "lh_open");
    return end;
}

/* What is held was sent through sockets that are closed with the connection. */
static void forget_held(void)
{
    pthread_mutex_lock(&path.lock);
    memset(path.is_held, 0, sizeof path.is_held);
    pthread_mutex_unlock(&path.lock);
}

static void one_connection(uint64_t *failures, uint64_t *replays)
{
    static const size_t sizes[] = {1, 64, 900, 5000, 70000, BYTES_MAX};
    struct lh_connection *ends[2] = {open_end(), open_end()};
    attach_pair(ends[0], ends[1]);
    for (uint32_t i = 0; i < 12; i++)
        deliver(ends[i % 2], ends[1 - i % 2], sizes[i / 2]);
    for (uint32_t i = 0; i < 6; i++)
        write_and_read(ends[0], ends[1], sizes[i]);
    for (int i = 0; i < 2; i++) {
        struct lh_stats stats;
        sim_engines_must(lh_connection_stats(ends[i], &stats), "lh_connection_stats");
        *failures += stats.rx_auth_failures;
        *replays += stats.rx_replays;
    }
    forget_held();
    for (int i = 0; i < 2; i++)
        lh_close(ends[i]);
    forget_held();
}

static void report(const char *what, const uint64_t *counts, uint64_t total)
{
    print_message("%s: %llu attacks:", what, (unsigned long long)total);
    for (int i = 0; i < KINDS; i++)
        print_message(" %llu %s%s", (unsigned long long)counts[i], names[i], i < KINDS - 1 ? "," : "\n");
}

static void packets(void **state)
{
    uint64_t failures = 0, replays = 0;
    uint8_t answer;
    (void)state;
    path.stranger_address = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    path.stranger = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(
        bind(path.stranger, (struct sockaddr *)&path.stranger_address, sizeof(struct sockaddr_in6)), 0);
    assert_true(address_of(path.stranger, &path.stranger_address));
    lh_prng_seed(&path.prng, seed);
    path.attacks = true;
    while (path.total < wanted_packets)
        one_connection(&failures, &replays);
    path.attacks = false;
    report("packets", path.counts, path.total);
    print_message("rx_auth_failures: %llu, rx_replays: %llu\n", (unsigned long long)failures,
                  (unsigned long long)replays);
    assert_true(failures > 0 && replays > 0);
    assert_int_equal(path.answers, 0);
    assert_int_equal(recv(path.stranger, &answer, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    close(path.stranger);
}

/* ---- records of TLS ------------------------------------------------------------------------------------ */

/* One direction: what its sender has sent and the path has not yet cut into records. */
struct flow {
    int from, to, back; /* back: to its sender */
    uint8_t bytes[4 * RECORD_MAX];
    size_t count;
    uint8_t held[RECORD_MAX];
    size_t held_count;
    uint8_t old[RECORD_MAX];
    size_t old_count;
    size_t total; /* that came from its sender */
    size_t reflected;
    size_t passed; /* to the other end */
};

static uint64_t handshakes[KINDS], handshake_attacks;

static void pass_on(int fd, const uint8_t *bytes, size_t count, size_t *total)
{
    *total += count;
    if (count > 0)
        (void)send(fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT); /* the end may be gone */
}

/* A record, with an attack on one of three. */
static void attack_record(struct flow *flow, size_t count)
{
    uint8_t record[RECORD_MAX + GUARD];
    enum attack attack = draw(3) == 0 ? (enum attack)draw(KINDS) : KINDS;
    memcpy(record, flow->bytes, count);
    size_t passed = count;
    if (attack == STRANGER)
        attack = CHANGE;
    if (attack == CHANGE)
        change(record, count);
    if (attack == CUT)
        passed = draw((uint32_t)count);
    if (attack == LENGTHEN)
        record[passed++] = (uint8_t)draw(256);
    if (attack == COMBINE && flow->old_count > HEADER) {
        size_t both = flow->old_count < count ? flow->old_count : count;
        size_t at = draw((uint32_t)both);
        memcpy(record + at, flow->old + at, both - at);
    }
    if (attack == REFLECT)
        pass_on(flow->back, record, count, &flow->reflected);
    if (attack == DELAY && flow->held_count == 0) {
        memcpy(flow->held, record, count);
        flow->held_count = count;
        passed = 0;
    } else if (attack != DROP) {
        pass_on(flow->to, record, passed, &flow->passed);
        if (attack == REPEAT)
            pass_on(flow->to, record, passed, &flow->passed);
        pass_on(flow->to, flow->held, flow->held_count, &flow->passed); /* in another order */
        flow->held_count = 0;
    }
    memcpy(flow->old, flow->bytes, flow->old_count = count);
    if (attack < KINDS) {
        handshakes[attack]++;
        handshake_attacks++;
    }
}

/* True: something was passed on, or attacked. */
static bool relay(struct flow *flow)
{
    bool moved = false;
    ssize_t got =
        recv(flow->from, flow->bytes + flow->count, sizeof flow->bytes - flow->count, MSG_DONTWAIT);
    if (got > 0) {
        flow->count += (size_t)got;
        flow->total += (size_t)got;
    }
    while (flow->count >= HEADER) {
        size_t whole = HEADER + ((size_t)flow->bytes[3] << 8 | flow->bytes[4]);
        if (whole > RECORD_MAX || whole > flow->count)
            break;
        attack_record(flow, whole);
        flow->count -= whole;
        memmove(flow->bytes, flow->bytes + whole, flow->count);
        moved = true;
    }
    return moved || got > 0;
}

struct end {
    struct channel channel;
    int shaken; /* 1, 0 or the error */
    bool sent, failed;
    uint8_t sends[APPLICATION], received[2 * APPLICATION];
    size_t got;
};

static bool step_end(struct end *end)
{
    bool moved = false;
    ssize_t got;
    if (end->shaken == 0)
        moved = (end->shaken = channel_handshake(&end->channel)) != 0;
    if (end->shaken != 1 || end->failed)
        return moved;
    if (!end->sent)
        moved = end->sent = channel_send(&end->channel, end->sends, APPLICATION) == APPLICATION;
    got = channel_receive(&end->channel, end->received + end->got, sizeof end->received - end->got);
    if (got > 0)
        end->got += (size_t)got;
    end->failed = got == 0 || (got < 0 && errno != EAGAIN);
    return moved || got > 0;
}

static struct tls_context *context_of(uint8_t byte)
{
    struct key_secret secret;
    struct tls_context *context;
    uint8_t key[KEY_BYTES];
    memset(key, byte, sizeof key);
    assert_int_equal(key_derive(key, &secret), 0);
    assert_int_equal(tls_context_of(&secret, LH_ENCRYPTION_FULL, CHANNEL_REMEDY, &context), 0);
    return context;
}

/* Whatever came through is a beginning of what the other end sent. */
static void expect_beginning(const struct end *end, const struct end *peer)
{
    assert_true(end->got <= APPLICATION);
    assert_memory_equal(end->received, peer->sends, end->got);
    assert_true(end->got == 0 || end->shaken == 1);
}

/* One client and one server; `own`: whether the client has the key. Returns whether all came through. */
static bool one_handshake(struct tls_context *client, struct tls_context *server, bool own)
{
    static struct flow up, down;
    static struct end ends[2];
    static const uint8_t greeting[] = "a greeting of the client";
    int near[2], far[2];
    memset(ends, 0, sizeof ends);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, near), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, far), 0);
    up = (struct flow){.from = near[1], .to = far[0], .back = near[1]};
    down = (struct flow){.from = far[0], .to = near[1], .back = far[0]};
    ends[0].channel.fd = near[0];
    ends[1].channel.fd = far[1];
    for (size_t i = 0; i < 2 * APPLICATION; i++)
        ends[i / APPLICATION].sends[i % APPLICATION] = (uint8_t)draw(256);
    assert_int_equal(channel_secure(&ends[1].channel, server, true), 0);
    assert_int_equal(channel_secure_greeting(&ends[0].channel, client, greeting, sizeof greeting), 0);
    for (bool moved = true; moved;) {
        moved = step_end(&ends[0]);
        moved |= relay(&up);
        moved |= step_end(&ends[1]);
        moved |= relay(&down);
        if (ends[1].shaken != 1) /* no larger answer than question, before the client is known */
            assert_true(down.total <= up.passed + down.reflected);
    }
    assert_true(own || (ends[0].shaken != 1 && ends[1].shaken != 1));
    expect_beginning(&ends[0], &ends[1]);
    expect_beginning(&ends[1], &ends[0]);
    bool whole = ends[0].got == APPLICATION && ends[1].got == APPLICATION;
    for (int i = 0; i < 2; i++) {
        channel_close(&ends[i].channel);
        close(i ? far[0] : near[1]);
    }
    return whole;
}

static void records(void **state)
{
    struct tls_context *key = context_of(1), *server = context_of(1), *other = context_of(2);
    uint64_t whole = 0, all = 0;
    (void)state;
    lh_prng_seed(&path.prng, seed);
    for (; handshake_attacks < wanted_handshakes; all++) {
        bool own = all % 4 != 0;
        bool through = one_handshake(own ? key : other, server, own);
        assert_true(own || !through);
        whole += through;
    }
    report("records of TLS", handshakes, handshake_attacks);
    print_message("%llu of %llu connections delivered all\n", (unsigned long long)whole,
                  (unsigned long long)all);
    assert_true(whole > 0 && whole < all);
    tls_context_free(key);
    tls_context_free(server);
    tls_context_free(other);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(packets), cmocka_unit_test(records)};
    uint64_t *const numbers[] = {&wanted_packets, &wanted_handshakes, &seed};
    for (int i = 1; i < argc && i <= 3; i++)
        *numbers[i - 1] = strtoull(argv[i], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
