/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/udp_socket.h"

#include <assert.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/sockios.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <longhaul/types.h>

#include "base/bytes.h"
#include "base/error.h"
#include "fabric/fabric.h"
#include "fabric/seal.h"
#include "fabric/udp/udp_address.h"
#include "wire/qp_info.h"
#include "wire/roce_packet.h"

/* ---- filter ---------------------------------------------------------------------------------------- */

/* Offsets of a data packet from its UDP header, where the kernel starts to count, and of the source address
 * in IP headers. See docs/wire.md. */
#define UDP_HEADER     8u
#define AT_SOURCE_PORT 0u
#define AT_OPCODE      (UDP_HEADER + 0u)
#define AT_QPN         (UDP_HEADER + ROCE_QPN_OFFSET - 1u) /* a reserved byte, then 24 bits */
#define AT_LENGTH      (UDP_HEADER + 24u)
#define AT_SOURCE_V4   12u
#define AT_SOURCE_V6   8u

#define CUT_BYTES (UDP_HEADER + ROCE_WRITE_IMM_HEADER_BYTES)
#define EMPTY     (UDP_HEADER + ROCE_WRITE_IMM_HEADER_BYTES + ROCE_ICRC_BYTES)
/* The SPI of a sealed packet ends in the QPN, where a BTH has it; its length is checked when it is opened. */
#define EMPTY_SEALED (UDP_HEADER + SEAL_BYTES + ROCE_WRITE_IMM_HEADER_BYTES)

/* A jump to the end of the program, where packets are cut; its distance is known last. */
#define TO_CUT 255u

/* NOLINTBEGIN(misc-redundant-expression): some of the kernel's flags are 0 */
static const uint16_t load_word = BPF_LD | BPF_ABS | BPF_W;
static const uint16_t load_half = BPF_LD | BPF_ABS | BPF_H;
static const uint16_t load_byte = BPF_LD | BPF_ABS | BPF_B;
static const uint16_t load_length = BPF_LD | BPF_W | BPF_LEN; /* of the message, from the UDP header on */
static const uint16_t add_constant = BPF_ALU | BPF_ADD | BPF_K;
/* NOLINTEND(misc-redundant-expression) */

struct program {
    struct sock_filter *steps;
    uint16_t count;
    uint32_t room;
};

static void add(struct program *program, uint16_t code, uint32_t k, uint32_t if_true, uint32_t if_false)
{
    assert(program->count < program->room);
    program->steps[program->count++] = (struct sock_filter){code, (uint8_t)if_true, (uint8_t)if_false, k};
}

/* Cuts the packet unless what lies there is this. */
static void require(struct program *program, uint16_t load, uint32_t offset, uint32_t value)
{
    add(program, load, offset, 0, 0);
    add(program, BPF_JMP | BPF_JEQ | BPF_K, value, 0, TO_CUT);
}

static void require_source(struct program *program, const union udp_address *address)
{
    bool ipv4 = udp_address_is_ipv4(address);
    uint32_t offset = (uint32_t)SKF_NET_OFF + (ipv4 ? AT_SOURCE_V4 : AT_SOURCE_V6);
    uint8_t bytes[16];
    udp_address_bytes(address, bytes);
    for (uint32_t i = 0; i < (ipv4 ? 4u : 16u); i += 4)
        require(program, load_word, offset + i, lh_get_be32(bytes + i));
    require(program, load_half, AT_SOURCE_PORT, udp_address_port(address));
}

/* From this host or that; ports do not count. The first word that differs from this one's leads to that. */
static void require_either(struct program *program, const union udp_address *this_one,
                           const union udp_address *that)
{
    const bool ipv4 = udp_address_is_ipv4(this_one);
    const uint32_t offset = (uint32_t)SKF_NET_OFF + (ipv4 ? AT_SOURCE_V4 : AT_SOURCE_V6);
    const uint32_t words = ipv4 ? 1 : 4;
    uint8_t bytes[16];
    udp_address_bytes(this_one, bytes);
    for (uint32_t i = 0; i < words; i++) {
        bool last = i == words - 1;
        uint32_t left = 2 * (words - 1 - i); /* steps of this host's other words */
        add(program, load_word, offset + 4 * i, 0, 0);
        add(program, BPF_JMP | BPF_JEQ | BPF_K, lh_get_be32(bytes + 4 * i), last ? 2 * words : 0, left);
    }
    udp_address_bytes(that, bytes);
    for (uint32_t i = 0; i < words; i++)
        require(program, load_word, offset + 4 * i, lh_get_be32(bytes + 4 * i));
}

static void require_qpn(struct program *program, const struct udp_filter_peer *peer)
{
    assert(peer->generations > 0 && peer->generations <= QP_INFO_GENERATIONS_MAX);
    add(program, load_word, AT_QPN, 0, 0);
    add(program, BPF_ALU | BPF_AND | BPF_K, ROCE_QPN_MASK, 0, 0);
    for (uint32_t left = peer->generations; left > 0; left--) /* the last one decides */
        add(program, BPF_JMP | BPF_JEQ | BPF_K, peer->qpn[left - 1], left - 1, left == 1 ? TO_CUT : 0);
}

/* The payload fits the MTU, and the message holds it. */
static void require_length(struct program *program, uint32_t mtu_bytes)
{
    add(program, load_word, AT_LENGTH, 0, 0);
    add(program, BPF_JMP | BPF_JGT | BPF_K, mtu_bytes, TO_CUT, 0);
    add(program, add_constant, EMPTY, 0, 0);
    add(program, BPF_MISC | BPF_TAX, 0, 0, 0);
    add(program, load_length, 0, 0, 0);
    add(program, BPF_JMP | BPF_JGE | BPF_X, 0, 0, TO_CUT);
}

static void resolve_cuts(const struct program *program, uint32_t end)
{
    for (uint32_t i = 0; i < end; i++) {
        struct sock_filter *step = &program->steps[i];
        if (BPF_CLASS(step->code) != BPF_JMP)
            continue;
        if (step->jt == TO_CUT)
            step->jt = (uint8_t)(end - i - 1);
        if (step->jf == TO_CUT)
            step->jf = (uint8_t)(end - i - 1);
    }
}

uint16_t udp_filter_make(const struct udp_filter_peer *peer, struct sock_filter steps[UDP_FILTER_STEPS_MAX])
{
    struct program program = {steps, 0, UDP_FILTER_STEPS_MAX};
    static_assert(SEAL_SPI_OFFSET == ROCE_QPN_OFFSET - 1, "AT_QPN is that of both kinds of packets");
    if (peer != NULL) {
        const uint32_t minimum = peer->sealed ? EMPTY_SEALED : EMPTY;
        add(&program, load_length, 0, 0, 0);
        add(&program, BPF_JMP | BPF_JGE | BPF_K, minimum, 0, TO_CUT); /* or loading would drop it */
        if (peer->translated)
            require_either(&program, &peer->address, &peer->seen_address);
        else
            require_source(&program, &peer->address);
        require(&program, load_byte, AT_OPCODE, peer->sealed ? SEAL_NEXT_HEADER : ROCE_UC_WRITE_ONLY_IMM);
        require_qpn(&program, peer);
        if (!peer->sealed)
            require_length(&program, peer->mtu_bytes);
        add(&program, BPF_RET | BPF_K, UINT32_MAX, 0, 0);
    }
    resolve_cuts(&program, program.count);
    add(&program, BPF_RET | BPF_K, CUT_BYTES, 0, 0);
    return program.count;
}

int udp_filter_attach(int fd, const struct udp_filter_peer *peer)
{
    struct sock_filter steps[UDP_FILTER_STEPS_MAX];
    struct sock_fprog program = {.filter = steps};
    program.len = udp_filter_make(peer, steps);
    if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0)
        return lh_fail(LH_ESYSTEM, "cannot attach a packet filter to a UDP socket: %s", strerror(errno));
    return 0;
}

/* The QPs of one bucket. A match returns at once, so jumps are short whatever the number of entries. */
static void add_bucket(struct program *program, uint32_t bucket, const struct udp_steer *entries,
                       uint32_t count)
{
    add(program, BPF_MISC | BPF_TXA, 0, 0, 0);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < entries[i].qpns; k++) {
            if (entries[i].qpn[k] % UDP_STEER_BUCKETS != bucket)
                continue;
            add(program, BPF_JMP | BPF_JEQ | BPF_K, entries[i].qpn[k], 0, 1);
            add(program, BPF_RET | BPF_K, entries[i].place, 0, 0);
        }
    }
    add(program, BPF_RET | BPF_K, 0, 0, 0);
}

/* Sixteen short searches in the place of a long one. Here the kernel counts from behind the UDP header. */
uint16_t udp_steer_make(const struct udp_steer *entries, uint32_t count, struct sock_filter *steps)
{
    struct program program = {steps, 0, UDP_STEER_STEPS(count)};
    if (count > 0) {
        add(&program, load_word, AT_QPN - UDP_HEADER, 0, 0);
        add(&program, BPF_ALU | BPF_AND | BPF_K, ROCE_QPN_MASK, 0, 0);
        add(&program, BPF_MISC | BPF_TAX, 0, 0, 0);
        add(&program, BPF_ALU | BPF_AND | BPF_K, UDP_STEER_BUCKETS - 1, 0, 0);
    }
    for (uint32_t bucket = 0; count > 0 && bucket < UDP_STEER_BUCKETS; bucket++) {
        add(&program, BPF_JMP | BPF_JEQ | BPF_K, bucket, 1, 0);
        uint16_t over = program.count;
        add(&program, BPF_JMP | BPF_JA, 0, 0, 0);
        add_bucket(&program, bucket, entries, count);
        steps[over].k = (uint32_t)program.count - over - 1;
    }
    add(&program, BPF_RET | BPF_K, 0, 0, 0);
    return program.count;
}

int udp_steer_attach(int fd, const struct udp_steer *entries, uint32_t count)
{
    struct sock_filter *steps = calloc(UDP_STEER_STEPS(count), sizeof *steps);
    if (steps == NULL)
        return lh_fail(LH_ENOMEM, "no memory to steer packets of %u channels", count);
    struct sock_fprog program = {.filter = steps};
    program.len = udp_steer_make(entries, count, steps);
    int failed = setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program);
    int error = errno;
    free(steps);
    return failed == 0 ? 0
                       : lh_fail(LH_ESYSTEM, "cannot steer packets among UDP sockets: %s", strerror(error));
}

/* ---- socket ---------------------------------------------------------------------------------------- */

#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

/* The lowest two bits of the type of service and of the traffic class (RFC 3168). */
#define ECN_MASK    3
#define ECN_CAPABLE 2 /* ECT(0) */
#define ECN_MARKED  3

#define SEND_BUFFER_BYTES ((uint64_t)4 << 20)

static int set_option(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof value);
}

/* The forced option needs a privilege; the plain one stops at net.core.[rw]mem_max. */
static void ask_buffer(int fd, int forced, int plain, uint64_t bytes)
{
    int value = (int)(bytes < UDP_SOCKET_BUFFER_MAX ? bytes : UDP_SOCKET_BUFFER_MAX);
    if (set_option(fd, SOL_SOCKET, forced, value) != 0)
        set_option(fd, SOL_SOCKET, plain, value);
}

/* The kernel doubles what it was asked for, to cover its own bookkeeping. */
static uint64_t granted_receive_bytes(int fd)
{
    int doubled = 0;
    socklen_t size = sizeof doubled;
    if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &doubled, &size) != 0 || doubled < 0)
        return 0;
    return (uint64_t)doubled / 2;
}

/* Never fragment, whatever ICMP reports: an oversize packet is EMSGSIZE. See the top of udp_socket.h for
 * IPv4. */
static int set_path_options(int fd, bool ipv4)
{
    if (ipv4)
        return set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
    if (set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1) != 0)
        return -1;
    /* RoCE hardware and Soft-RoCE send UDP checksum 0, which IPv6 drops unless set otherwise. */
    if (set_option(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1) != 0)
        return -1;
    if (set_option(fd, IPPROTO_IPV6, IPV6_DONTFRAG, 1) != 0)
        return -1;
    return set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
}

/* Without it we know less, nothing worse. */
static void show_marks(int fd, bool ipv4)
{
    if (ipv4)
        set_option(fd, IPPROTO_IP, IP_RECVTOS, 1);
    else
        set_option(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
}

static int make_socket(const union udp_address *local, uint64_t receive_bytes, struct udp_socket *made)
{
    made->fd = socket(local->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP);
    if (made->fd < 0)
        return lh_fail(LH_ESYSTEM, "cannot make a UDP socket: %s", strerror(errno));
    if (set_path_options(made->fd, udp_address_is_ipv4(local)) != 0) {
        int error = lh_fail(LH_ESYSTEM, "UDP socket option refused by the kernel: %s", strerror(errno));
        close(made->fd);
        return error;
    }
    show_marks(made->fd, udp_address_is_ipv4(local));
    ask_buffer(made->fd, SO_RCVBUFFORCE, SO_RCVBUF, receive_bytes);
    ask_buffer(made->fd, SO_SNDBUFFORCE, SO_SNDBUF, SEND_BUFFER_BYTES);
    made->receive_bytes = granted_receive_bytes(made->fd);
    udp_socket_ago(made->fd); /* the kernel stamps what comes after it was asked the first time */
    return 0;
}

/* 0, or an errno. */
static int bind_port(int fd, const union udp_address *local, uint16_t port)
{
    union udp_address address = *local;
    udp_address_set_port(&address, port);
    return bind(fd, &address.any, udp_address_size(&address)) == 0 ? 0 : errno;
}

static int bind_failed(const union udp_address *local, int error)
{
    char text[UDP_ADDRESS_TEXT_MAX];
    return lh_fail(LH_EADDR, "cannot bind to %s: %s (use an address of this machine)",
                   udp_address_format(local, text), strerror(error));
}

static int bind_data_port(struct udp_socket *made, const union udp_address *local)
{
    const uint32_t ports = UDP_DATA_PORT_MAX - UDP_DATA_PORT_MIN + 1;
    uint32_t start;
    int error = fabric_random(&start, sizeof start);
    if (error != 0)
        return error;
    for (uint32_t i = 0; i < ports; i++) {
        uint16_t port = (uint16_t)(UDP_DATA_PORT_MIN + (start % ports + i) % ports);
        int failed = bind_port(made->fd, local, port);
        if (failed == 0) {
            made->port = port;
            return 0;
        }
        if (failed != EADDRINUSE)
            return bind_failed(local, failed);
    }
    return lh_fail(LH_EADDR, "all UDP ports from %u to %u are in use (close some sockets)",
                   UDP_DATA_PORT_MIN, UDP_DATA_PORT_MAX);
}

/*
 * Lets further sockets onto the port, which only the owner's own user could bring there: the kernel sends
 * what comes to the first one, until it is told otherwise. The program that says so needs two sockets to be
 * accepted, and must be there before a second one stays. Where this fails, no other socket gets in.
 */
static void admit_others(const struct udp_socket *first, const union udp_address *local)
{
    int second = socket(local->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP);
    bool admitted = second >= 0 &&
                    (udp_address_is_ipv4(local) || set_option(second, IPPROTO_IPV6, IPV6_V6ONLY, 1) == 0) &&
                    set_option(second, SOL_SOCKET, SO_REUSEPORT, 1) == 0 &&
                    set_option(first->fd, SOL_SOCKET, SO_REUSEPORT, 1) == 0 &&
                    bind_port(second, local, first->port) == 0 && udp_steer_attach(first->fd, NULL, 0) == 0;
    if (second >= 0)
        close(second);
    if (!admitted)
        set_option(first->fd, SOL_SOCKET, SO_REUSEPORT, 0);
}

int udp_socket_open_shared(const union udp_address *local, uint64_t receive_bytes, struct udp_socket *made)
{
    struct udp_socket fresh = {0};
    int error = make_socket(local, receive_bytes, &fresh);
    if (error != 0)
        return error;
    error = bind_data_port(&fresh, local);
    if (error != 0) {
        close(fresh.fd);
        return error;
    }
    admit_others(&fresh, local);
    set_option(fresh.fd, IPPROTO_UDP, UDP_GRO, 1); /* without it we are slower, nothing worse */
    *made = fresh;
    return 0;
}

int udp_socket_open_direct(const union udp_address *local, uint16_t port, uint64_t receive_bytes,
                           struct udp_socket *made)
{
    struct udp_socket fresh = {0};
    int error = make_socket(local, receive_bytes, &fresh);
    if (error != 0)
        return error;
    fresh.port = port;
    error = udp_filter_attach(fresh.fd, NULL);
    if (error == 0 && set_option(fresh.fd, SOL_SOCKET, SO_REUSEPORT, 1) != 0)
        error = lh_fail(LH_ESYSTEM, "UDP socket option refused by the kernel: %s", strerror(errno));
    int failed = error == 0 ? bind_port(fresh.fd, local, port) : 0;
    if (failed != 0)
        error = bind_failed(local, failed);
    if (error != 0) {
        close(fresh.fd);
        return error;
    }
    /* Without these we are slower (GRO) or know less (drop counts), nothing worse. */
    set_option(fresh.fd, IPPROTO_UDP, UDP_GRO, 1);
    set_option(fresh.fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
    *made = fresh;
    return 0;
}

int udp_socket_open_front(const union udp_address *local, uint64_t receive_bytes, struct udp_socket *made)
{
    struct udp_socket fresh = {0};
    int error = make_socket(local, receive_bytes, &fresh);
    if (error != 0)
        return error;
    fresh.port = ROCE_UDP_PORT;
    int failed = bind_port(fresh.fd, local, ROCE_UDP_PORT);
    if (failed == EADDRINUSE)
        error = bind_data_port(&fresh, local);
    else if (failed != 0)
        error = bind_failed(local, failed);
    if (error != 0) {
        close(fresh.fd);
        return error;
    }
    set_option(fresh.fd, IPPROTO_UDP, UDP_GRO, 1); /* without it we are slower, nothing worse */
    *made = fresh;
    return 0;
}

/* The kernel stamps with the wall clock. */
lh_time udp_socket_ago(int fd)
{
    struct timespec stamp, wall;
    if (ioctl(fd, SIOCGSTAMPNS, &stamp) != 0 || clock_gettime(CLOCK_REALTIME, &wall) != 0)
        return 0;
    int64_t ago_ns = (wall.tv_sec - stamp.tv_sec) * (int64_t)LH_NS_PER_S + wall.tv_nsec - stamp.tv_nsec;
    /* Somebody may set that clock. */
    return ago_ns > 0 && ago_ns < (int64_t)LH_NS_PER_S ? (lh_time)ago_ns : 0;
}

void udp_socket_close(struct udp_socket *socket)
{
    if (socket->fd >= 0)
        close(socket->fd);
    socket->fd = -1;
}

void udp_cmsg_set_ecn(struct cmsghdr *cmsg, bool ipv4)
{
    const int ecn = ECN_CAPABLE;
    cmsg->cmsg_level = ipv4 ? IPPROTO_IP : IPPROTO_IPV6;
    cmsg->cmsg_type = ipv4 ? IP_TOS : IPV6_TCLASS;
    cmsg->cmsg_len = CMSG_LEN(sizeof ecn);
    memcpy(CMSG_DATA(cmsg), &ecn, sizeof ecn);
}

void udp_socket_set_rate(const struct udp_socket *socket, uint64_t rate_bps)
{
    /* Bytes a second; all ones is the kernel's "no rate". */
    unsigned long rate = rate_bps == UINT64_MAX ? ~0ul : (unsigned long)(rate_bps / 8);
    setsockopt(socket->fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate);
}

bool udp_cmsg_is_marked(const struct cmsghdr *cmsg)
{
    int tos = 0;
    if (cmsg->cmsg_level == IPPROTO_IPV6 && cmsg->cmsg_type == IPV6_TCLASS)
        memcpy(&tos, CMSG_DATA(cmsg), sizeof tos);
    else if (cmsg->cmsg_level == IPPROTO_IP && cmsg->cmsg_type == IP_TOS)
        tos = *CMSG_DATA(cmsg); /* one byte there */
    return (tos & ECN_MASK) == ECN_MARKED;
}

int udp_path_mtu(const union udp_address *local, const union udp_address *peer, uint32_t *bytes)
{
    bool ipv4 = udp_address_is_ipv4(local);
    int fd = socket(local->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);
    if (fd < 0)
        return lh_fail(LH_ESYSTEM, "cannot make a UDP socket: %s", strerror(errno));
    int mtu = 0;
    socklen_t size = sizeof mtu;
    int failed = bind_port(fd, local, 0);
    if (failed == 0 && connect(fd, &peer->any, udp_address_size(peer)) != 0)
        failed = errno;
    if (failed == 0 &&
        getsockopt(fd, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_MTU : IPV6_MTU, &mtu, &size) != 0)
        failed = errno;
    close(fd);
    if (failed != 0 || mtu <= 0) {
        char from[UDP_ADDRESS_TEXT_MAX], to[UDP_ADDRESS_TEXT_MAX];
        return lh_fail(LH_EADDR, "no route from %s to %s: %s (check the routing table)",
                       udp_address_format(local, from), udp_address_format(peer, to), strerror(failed));
    }
    *bytes = (uint32_t)mtu;
    return 0;
}
