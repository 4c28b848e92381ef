/*
 * The reference for everything over UDP on loopback: packets of 32 + 4,096 + 4 bytes by GSO and GRO, with
 * scatter lists on both sides as the udp fabric has them, and nothing else: no iCRC, no checks, no bitmap.
 *
 * usage: bench_udp_raw [--json FILE]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "report.h"
#include "two_cores.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define SEGMENTS     15u
#define HEADER       32u
#define TRAILER      4u
#define PACKET_BYTES (HEADER + BENCH_MTU + TRAILER)
#define BUFFER_BYTES (32 << 20)

struct raw {
    struct bench_credit credit;
    int sender_fd;
    int receiver_fd;
    struct sockaddr_in6 to;
    uint8_t *source;
    uint8_t *destination;
};

static int make_socket(struct sockaddr_in6 *address)
{
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    int bytes = BUFFER_BYTES;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) != 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    *address = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    socklen_t size = sizeof *address;
    if (fd < 0 || bind(fd, (struct sockaddr *)address, size) != 0 ||
        getsockname(fd, (struct sockaddr *)address, &size) != 0) {
        perror("bench_udp_raw: socket");
        exit(1);
    }
    return fd;
}

/* Headers and trailers on their own, payloads in the message. */
static size_t lay_out(struct iovec *iov, uint8_t (*records)[HEADER + TRAILER], uint8_t *message,
                      uint32_t packet, uint32_t count)
{
    struct iovec *next = iov;
    for (uint32_t i = 0; i < count; i++) {
        *next++ = (struct iovec){records[i], HEADER};
        *next++ = (struct iovec){message + (size_t)(packet + i) * BENCH_MTU, BENCH_MTU};
        *next++ = (struct iovec){records[i] + HEADER, TRAILER};
    }
    return (size_t)(next - iov);
}

static void *send_all(void *context)
{
    struct raw *raw = context;
    static uint8_t records[SEGMENTS][HEADER + TRAILER];
    struct iovec iov[3 * SEGMENTS];
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(uint16_t))] = {0};
    uint32_t packet = 0;
    uint64_t sent = 0;
    while (bench_may_send(&raw->credit, sent)) {
        uint32_t left = BENCH_MESSAGE_PACKETS - packet;
        uint32_t count = left < SEGMENTS ? left : SEGMENTS;
        struct msghdr message = {
            .msg_name = &raw->to,
            .msg_namelen = sizeof raw->to,
            .msg_iov = iov,
            .msg_iovlen = lay_out(iov, records, raw->source, packet, count),
            .msg_control = control,
            .msg_controllen = sizeof control,
        };
        struct cmsghdr *segment = CMSG_FIRSTHDR(&message);
        segment->cmsg_level = IPPROTO_UDP;
        segment->cmsg_type = UDP_SEGMENT;
        segment->cmsg_len = CMSG_LEN(sizeof(uint16_t));
        memcpy(CMSG_DATA(segment), &(uint16_t){PACKET_BYTES}, sizeof(uint16_t));
        if (sendmsg(raw->sender_fd, &message, 0) < 0) {
            if (errno == EAGAIN || errno == ENOBUFS)
                continue;
            perror("bench_udp_raw: sendmsg");
            exit(1);
        }
        sent += count;
        packet = (packet + count) % BENCH_MESSAGE_PACKETS;
    }
    return NULL;
}

static void *receive_all(void *context)
{
    struct raw *raw = context;
    static uint8_t records[SEGMENTS][HEADER + TRAILER];
    struct iovec iov[3 * SEGMENTS];
    uint32_t packet = 0;
    uint64_t arrived = 0;
    while (!atomic_load_explicit(&raw->credit.over, memory_order_relaxed)) {
        uint32_t left = BENCH_MESSAGE_PACKETS - packet;
        uint32_t count = left < SEGMENTS ? left : SEGMENTS;
        struct msghdr message = {
            .msg_iov = iov,
            .msg_iovlen = lay_out(iov, records, raw->destination, packet, count),
        };
        ssize_t got = recvmsg(raw->receiver_fd, &message, MSG_DONTWAIT);
        if (got <= 0)
            continue;
        uint32_t packets = (uint32_t)got / PACKET_BYTES;
        packet = (packet + packets) % BENCH_MESSAGE_PACKETS;
        arrived += packets;
        atomic_store_explicit(&raw->credit.arrived, arrived, memory_order_release);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static struct raw raw;
    struct sockaddr_in6 unused;
    int on = 1;
    raw.receiver_fd = make_socket(&raw.to);
    raw.sender_fd = make_socket(&unused);
    setsockopt(raw.receiver_fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on);
    raw.source = malloc(BENCH_MESSAGE_BYTES);
    raw.destination = malloc(BENCH_MESSAGE_BYTES);
    if (raw.source == NULL || raw.destination == NULL)
        return 1;
    memset(raw.source, 1, BENCH_MESSAGE_BYTES);
    memset(raw.destination, 2, BENCH_MESSAGE_BYTES);
    double gbps = bench_run(&raw.credit, send_all, receive_all, &raw);
    printf("raw GSO/GRO, scatter lists on both sides: %.1f Gbit/s\n", gbps);
    FILE *json = report_open(argc, argv);
    report_line(json, "udp_raw", gbps, "Gbit/s", "", 0, 1);
    if (json != NULL)
        fclose(json);
    return 0;
}
