/*
 * bench_small_udp.c - the floor for small messages over UDP: one message there and back, in datagrams that
 * the kernel cuts and joins (GSO, GRO), from connected sockets; nothing is checked, acknowledged or repeated.
 * Usage: exchange.h, echo with one in flight; HOW is the longest datagram in bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "exchange.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define MESSAGE_MAX 65000u
#define BESIDE      64u /* what the transport adds to a message: headers, checksum, an acknowledgement */

static uint8_t message[MESSAGE_MAX];

static _Noreturn void fail(const char *what)
{
    exchange_die(what, strerror(errno));
}

static int open_socket(const char *address, uint16_t port, uint16_t *bound)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t size = sizeof at;
    int on = 1, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (inet_pton(AF_INET, address, &at.sin_addr) != 1)
        exchange_die(address, "no IPv4 address");
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0 ||
        setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) != 0)
        fail("opening a socket");
    *bound = ntohs(at.sin_port);
    return fd;
}

static void connect_to(int fd, const struct sockaddr_in *peer)
{
    if (connect(fd, (const struct sockaddr *)peer, sizeof *peer) != 0)
        fail("connecting");
}

static void send_message(int fd, uint32_t bytes, uint16_t datagram_bytes)
{
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof datagram_bytes)];
    struct iovec piece = {message, bytes};
    struct msghdr header = {.msg_iov = &piece, .msg_iovlen = 1};
    if (bytes > datagram_bytes) {
        header.msg_control = control;
        header.msg_controllen = sizeof control;
        struct cmsghdr *cut = CMSG_FIRSTHDR(&header);
        *cut = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof datagram_bytes), .cmsg_level = IPPROTO_UDP};
        cut->cmsg_type = UDP_SEGMENT;
        memcpy(CMSG_DATA(cut), &datagram_bytes, sizeof datagram_bytes);
    }
    if (sendmsg(fd, &header, 0) != (ssize_t)bytes)
        fail("sending");
}

/* Bytes; polling asks until there are some. */
static uint32_t receive(int fd, int flags, struct sockaddr_in *from)
{
    socklen_t size = sizeof *from;
    ssize_t got;
    do
        got = recvfrom(fd, message, sizeof message, flags, (struct sockaddr *)from, from ? &size : NULL);
    while (got < 0 && (errno == EAGAIN || errno == EINTR)); /* until the peer sends, or the user ends it */
    if (got < 0)
        fail("receiving");
    return (uint32_t)got;
}

/* Ended by an empty datagram. */
static void serve(const struct exchange_arguments *arguments, uint16_t datagram_bytes, int flags)
{
    struct sockaddr_in from;
    uint16_t port;
    int fd = open_socket(arguments->address, arguments->port, &port);
    printf("listening on %u\n", port);
    fflush(stdout);
    uint32_t bytes = receive(fd, flags, &from);
    connect_to(fd, &from);
    for (; bytes > 0; bytes = receive(fd, flags, NULL))
        send_message(fd, bytes, datagram_bytes);
}

static void measure(int fd, const struct exchange *exchange, uint16_t datagram_bytes, int flags)
{
    struct exchange_times times;
    uint64_t all = exchange->warmup + exchange->messages;
    exchange_begin(&times, exchange);
    for (uint64_t number = 0; number < all; number++) {
        exchange_post(&times, number);
        memcpy(message, &number, sizeof number);
        send_message(fd, exchange->bytes + BESIDE, datagram_bytes);
        for (uint32_t bytes = 0; bytes < exchange->bytes + BESIDE;)
            bytes += receive(fd, flags, NULL);
        exchange_finish(&times, number);
    }
    send_message(fd, 0, datagram_bytes);
    exchange_print(&times);
}

int main(int argc, char **argv)
{
    struct exchange_arguments arguments;
    struct sockaddr_in peer = {.sin_family = AF_INET};
    uint16_t port;
    if (!exchange_parse(argc, argv, &arguments))
        return 2;
    int flags = arguments.polls ? MSG_DONTWAIT : 0;
    unsigned long datagram_bytes = strtoul(arguments.how, NULL, 10);
    if (datagram_bytes < 64 || datagram_bytes > MESSAGE_MAX)
        exchange_die(arguments.how, "datagrams have 64 to 65000 bytes");
    if (arguments.server) {
        serve(&arguments, (uint16_t)datagram_bytes, flags);
        return 0;
    }
    if (!arguments.exchange.echo || arguments.exchange.in_flight != 1 ||
        arguments.exchange.bytes + BESIDE > MESSAGE_MAX)
        exchange_die("exchange", "only echoes, one at a time, of at most 64936 bytes");
    int fd = open_socket(arguments.from, 0, &port);
    peer.sin_port = htons(arguments.port);
    if (inet_pton(AF_INET, arguments.address, &peer.sin_addr) != 1)
        exchange_die(arguments.address, "no IPv4 address");
    connect_to(fd, &peer);
    measure(fd, &arguments.exchange, (uint16_t)datagram_bytes, flags);
    return 0;
}
