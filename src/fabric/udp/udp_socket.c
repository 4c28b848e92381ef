/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/socket.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "fabric/random.h"
#include "fabric/udp/filter.h"
#include "wire/roce.h"

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

/* Never fragment, whatever ICMP reports: an oversize packet is EMSGSIZE. See the top of socket.h for IPv4. */
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
